"""A model's shape together with what is declared of it and what the nodes offer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from argosy.api import InferenceModel
from argosy.api.model.footprint import Traffic
from argosy.planning.facts import Node
from argosy.planning.topology.memory import PLAIN_BITS, TOKENS_A_STEP, Budget, Split, budget, has_weights
from argosy_agent.contract.builds import ModelShape
from argosy_agent.contract.engine_options.precisions import BITS, Precision

LENGTH = 8192
"""Tokens of the longest sequence where `max_seq_len` does not say: a model that could do more is seldom asked to."""
_STORED = {BITS[Precision.TF32]: 32}
"""Bits in which weights are kept of an arithmetic that reads fewer of them."""
_CACHE_BITS = {"fp8": 8, "int8": 8, "nvfp4": 4, "fp4": 4, "float32": 32, "fp32": 32}


@dataclass(frozen=True, slots=True)
class Machine:
    """GPUs of one node: how many, the most of them that NVLink joins, and the bytes of one that models may take."""

    gpus: int
    joined: int
    usable: int

    @classmethod
    def best_of(cls, nodes: Iterable[Node], headroom: int = 0) -> "Machine | None":
        """Return the node that joins the most GPUs by NVLink, then the one with the largest GPUs; None without GPUs.

        `headroom` is thousandths of memory kept free.
        """
        machines = (cls._of(node, headroom) for node in nodes if any(not gpu.is_cpu for gpu in node.gpus))
        return max(machines, key=lambda machine: (machine.joined, machine.usable), default=None)

    @classmethod
    def _of(cls, node: Node, headroom: int) -> "Machine":
        memory = [gpu.memory for gpu in node.gpus if not gpu.is_cpu]
        joined = max((len(group) for group in node.nvlink), default=1)
        return cls(len(memory), joined, min(memory) * (1000 - headroom) // 1000)


@dataclass(frozen=True)
class Deployment:
    """A model of a shape, split as declared, on the best machine there is; None where none has GPUs."""

    shape: ModelShape
    split: Split = field(default_factory=Split)
    machine: Machine | None = None
    traffic: Traffic | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: InferenceModel, shape: ModelShape, machine: Machine | None = None) -> "Deployment":
        """Return what is declared of a model, with the defaults of trtllm-build where an option is not set."""
        engine = model.spec.engine
        options = engine.options if engine else {}
        precision = engine.precision if engine else None
        split = Split(
            tensor=model.spec.parallelism.tensor,
            pipeline=model.spec.parallelism.pipeline,
            weight_bits=_STORED.get(BITS[precision], BITS[precision]) if precision else PLAIN_BITS,
            cache_bits=_CACHE_BITS.get(str(options.get("kv_cache_dtype", "")), PLAIN_BITS),
            length=_divides(options, "max_seq_len") or _usual_length(shape, model.spec.traffic),
            sequences=_divides(options, "max_batch_size") or model.spec.max_batch_size or 1,
            step_tokens=_divides(options, "max_num_tokens") or TOKENS_A_STEP,
        )
        return cls(shape, split, machine, model.spec.traffic, options)

    @cached_property
    def budget(self) -> Budget | None:
        """What it takes of each GPU; None where its weights were not counted, or there are no GPUs."""
        return self.at(self.split)

    def at(self, split: Split) -> Budget | None:
        """Return the same, split otherwise."""
        if self.machine is None or not has_weights(self.shape):
            return None
        return budget(self.shape, split, self.machine.usable)

    @cached_property
    def tensors(self) -> tuple[int, ...]:
        """The tensor parallelisms that divide its attention heads, and divide its KV heads or are multiples of them."""
        heads, shared = self.shape.attention_heads, self.shape.key_value_heads
        every = range(1, heads + 1)
        return tuple(t for t in every if heads % t == 0 and (shared % t == 0 or t % shared == 0))

    def smallest_fit(self, most: int, bits: int | None = None) -> int | None:
        """Return the least tensor parallelism up to `most` at which one sequence fits, with weights of `bits` bits."""
        for tensor in (size for size in self.tensors if size <= most):
            candidate = self.at(replace(self.split, tensor=tensor, weight_bits=bits or self.split.weight_bits))
            if candidate is not None and candidate.sequences:
                return tensor
        return None


def _usual_length(shape: ModelShape, traffic: Traffic | None) -> int:
    return min(shape.max_positions or LENGTH, max(LENGTH, traffic.tokens if traffic else 0))


def _divides(options: Mapping[str, Any], name: str) -> int:
    """Return an option if it is an integer above 0, else 0. Validation reports other values."""
    value = options.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
