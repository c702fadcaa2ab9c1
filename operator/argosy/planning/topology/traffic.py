"""Rules for the fit of a split to the requests.

Prompts are computed at once and gain from many GPUs; answers come token by token, and each token waits for every
all-reduce. Each rule has its when, says and do.
"""

from dataclasses import replace

from argosy.planning.amounts import gib
from argosy.planning.topology.deployment import Deployment
from argosy.planning.topology.memory import active_parameters, all_reduces

DECODE_TENSOR = 2
"""The most GPUs that should share a layer where mostly single tokens are decoded."""
PROMPT_HEAVY = 8
"""Prompt tokens for each token of the answer from which on traffic counts as prefill-heavy."""
LONG_PREFILL = 100e12
"""Operations before the first token from which on one GPU is too few: a quarter of a second at 400 TFLOP/s."""
ONE_NODE = 8
"""GPUs that are proposed to share a layer, at most."""


def is_decode_heavy(d: Deployment) -> bool:
    """Return whether answers are as long as prompts, or longer."""
    return d.traffic is not None and d.traffic.output_tokens >= d.traffic.prompt_tokens


def decodes_on_too_many(d: Deployment) -> bool:
    """Return whether traffic that mostly decodes would run on fewer GPUs."""
    return is_decode_heavy(d) and d.split.tensor > DECODE_TENSOR and _fewer(d) is not None


def says_decode(d: Deployment) -> str:
    """Return the share of tokens that are decoded, and how often each waits."""
    tokens, output = (d.traffic.tokens, d.traffic.output_tokens) if d.traffic else (1, 0)
    return (
        f"decode-heavy traffic at parallelism.tensor {d.split.tensor}: {output} of a request's {tokens} tokens "
        f"({100 * output / tokens:.0f} %) are decoded one by one, and each waits for {all_reduces(d.shape)} "
        f"all-reduces over {d.split.tensor} GPUs"
    )


def decode_on_fewer(d: Deployment) -> str:
    """Return the split that fits, and the memory that it leaves for the cache, in words."""
    tensor, bits = _fewer(d) or (DECODE_TENSOR, d.split.weight_bits)
    there = d.at(replace(d.split, tensor=tensor, weight_bits=bits))
    precision = "" if bits == d.split.weight_bits else " with weights of 8 bits"
    leave = f": {gib(there.weights)} of weights leave {gib(there.left)} a GPU for the cache" if there else ""
    return f"take tensor {tensor}{precision}, and more replicas in place of the other GPUs{leave}"


def prefills_on_one(d: Deployment) -> bool:
    """Return whether the prompt takes long, and NVLink joins GPUs that could share it."""
    if d.traffic is None or d.machine is None or d.split.gpus > 1:
        return False
    heavy = d.traffic.prompt_tokens >= PROMPT_HEAVY * d.traffic.output_tokens
    return heavy and _prefill(d) >= LONG_PREFILL and _widest(d) > 1


def says_prefill(d: Deployment) -> str:
    """Return the share of tokens that are prompt, and what they cost."""
    tokens, prompt = (d.traffic.tokens, d.traffic.prompt_tokens) if d.traffic else (1, 0)
    return (
        f"prefill-heavy traffic at parallelism.tensor 1: {prompt} of a request's {tokens} tokens "
        f"({100 * prompt / tokens:.0f} %) are prompt, {_prefill(d) / 1e12:.0f} TFLOP on one GPU before the first token"
    )


def prefill_on_more(d: Deployment) -> str:
    """Return the advice to use as many GPUs as NVLink joins and heads divide."""
    joined = d.machine.joined if d.machine else 1
    seconds = _prefill(d) / _widest(d) / 1e12
    return f"take tensor {_widest(d)} of the {joined} GPUs that NVLink joins: {seconds:.0f} TFLOP on each"


def _fewer(d: Deployment) -> tuple[int, int] | None:
    """Return the tensor parallelism that decoding suits, and the bits of weights, at which the model would fit."""
    for bits in (d.split.weight_bits, 8):
        if bits <= d.split.weight_bits and (tensor := d.smallest_fit(DECODE_TENSOR, bits)):
            return tensor, bits
    return None


def _prefill(d: Deployment) -> float:
    """Return the operations on a prompt: two for each weight that a token passes."""
    return 2.0 * active_parameters(d.shape) * (d.traffic.prompt_tokens if d.traffic else 0)


def _widest(d: Deployment) -> int:
    most = min(ONE_NODE, d.machine.joined if d.machine else 1)
    return max(size for size in d.tensors if size <= most)
