"""A request, read as what TensorRT-LLM is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import BuildError

from .options import OPTIONS, PYTORCH_OPTIONS

FORMATS = {"fp8": "fp8", "int8": "int8_sq", "int4": "int4_awq", "fp4": "nvfp4"}
"""What a quantized precision means where no `qformat` says it."""
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
ALGORITHMS = {
    "full_prec": None,
    "int8_wo": "W8A16",
    "int4_wo": "W4A16",
    "fp8": "FP8",
    "fp8_pc_pt": "FP8_PER_CHANNEL_PER_TOKEN",
    "int8_sq": "W8A8_SQ_PER_CHANNEL",
    "int4_awq": "W4A16_AWQ",
    "w4a8_awq": "W4A8_AWQ",
    "nvfp4": "NVFP4",
}
"""Each format, and the `quant_algo` that checkpoints and engines call it."""
WITHOUT_DATA = frozenset({"full_prec", "int8_wo", "int4_wo"})
AWQ = frozenset({"int4_awq", "w4a8_awq"})
INPUT = 1024
"""TensorRT-LLM's max_input_len where nobody sets it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked, resolved. `dtype` is TensorRT-LLM's word; `qformat` empty: as the checkpoint is.

    `tensor` times `pipeline` ranks; `workers` of them are built at once. `options` are the request's.
    """

    dtype: str
    qformat: str
    kv_cache_dtype: str | None
    tensor: int
    pipeline: int
    workers: int
    max_batch_size: int
    options: Mapping[str, Any]

    @property
    def is_engine(self) -> bool:
        """Whether an engine is built; else a checkpoint is what is made."""
        return bool(self.options.get("backend", "tensorrt") == "tensorrt")

    @property
    def ranks(self) -> int:
        """The parts that the model is split into."""
        return self.tensor * self.pipeline

    @property
    def algorithm(self) -> str | None:
        """The `quant_algo` of what is asked; None: none, or whatever the checkpoint has."""
        return ALGORITHMS.get(self.qformat)

    @property
    def is_calibrated(self) -> bool:
        """Whether ranges are found in data."""
        return bool(self.qformat and self.qformat not in WITHOUT_DATA) or self.kv_cache_dtype is not None

    @property
    def block(self) -> int:
        """Weights that share a scale, of AWQ's formats; 0 of others."""
        return int(self.options.get("awq_block_size", 128)) if self.qformat in AWQ else 0

    @property
    def longest_prompt(self) -> int:
        """The most tokens of a prompt."""
        longest = int(self.options.get("max_seq_len", 0))
        asked = int(self.options.get("max_input_len", INPUT))
        return min(asked, longest) if longest else asked


def settings_of(request: BuildRequest) -> Settings:
    """Raises BuildError: INVALID_OPTIONS, that names the option."""
    options = request.options
    known = PYTORCH_OPTIONS if options.get("backend") == "pytorch" else OPTIONS
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f"; do you mean {near[0]}?" if near else ""
            raise refused(name, f"tensorrt_llm has no such option{meant}")
    qformat = str(options.get("qformat", FORMATS.get(request.precision, "full_prec" if request.precision else "")))
    if qformat and qformat not in ALGORITHMS:
        raise refused("qformat", f"{qformat!r} is none of {', '.join(ALGORITHMS)}")
    ranks = request.tensor * request.pipeline
    return Settings(
        dtype=DTYPES.get(request.precision, str(options.get("dtype", "auto"))),
        qformat=qformat,
        kv_cache_dtype=options.get("kv_cache_dtype"),
        tensor=request.tensor,
        pipeline=request.pipeline,
        workers=min(int(options.get("workers", ranks)), ranks),
        max_batch_size=int(options.get("max_batch_size", request.max_batch_size)),
        options=options,
    )


def refused(name: str, message: str) -> BuildError:
    """Return the error of an option."""
    return BuildError(BuildFailure.INVALID_OPTIONS, f"spec.engine.options.{name}: {message}")
