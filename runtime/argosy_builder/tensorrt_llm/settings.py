"""The settings of TensorRT-LLM that a request stands for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy_agent.contract.builds import BuildRequest
from argosy_agent.contract.engine_options.precisions import Precision
from argosy_agent.contract.engine_options.tensorrt_llm.quantization import AWQ, DEVICE_MAPS, WITHOUT_DATA, qformat_of
from argosy_builder.options import read_options

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
"""The `quant_algo` of checkpoints and engines, by format."""
MAX_INPUT_LEN = 1024
"""TensorRT-LLM's default of max_input_len."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one build.

    `dtype` is a name of TensorRT-LLM's; an empty `qformat` leaves the checkpoint as it is. There are `tensor` times
    `pipeline` ranks, `workers` of which are built at once. `options` are those of the request.
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
        """Whether an engine is built, and not only a checkpoint."""
        return bool(self.options.get("backend", "tensorrt") == "tensorrt")

    @property
    def ranks(self) -> int:
        """The parts that the model is split into."""
        return self.tensor * self.pipeline

    @property
    def algorithm(self) -> str | None:
        """The requested `quant_algo`; None: none, or that of the checkpoint."""
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
    def device_map(self) -> str:
        """Where the model is while it is calibrated, as transformers names it."""
        requested = str(self.options.get("device_map", "auto"))
        return DEVICE_MAPS.get(requested, requested)

    @property
    def longest_prompt(self) -> int:
        """The most tokens of a prompt."""
        longest = int(self.options.get("max_seq_len", 0))
        prompt = int(self.options.get("max_input_len", MAX_INPUT_LEN))
        return min(prompt, longest) if longest else prompt


def settings_of(request: BuildRequest) -> Settings:
    """Return the settings of a build. Raises BuildError, INVALID_OPTIONS or CALIBRATION_MISSING."""
    read_options(request)
    options = request.options
    ranks = request.tensor * request.pipeline
    return Settings(
        dtype=DTYPES.get(request.precision, str(options.get("dtype", "auto"))),
        qformat=qformat_of(Precision(request.precision) if request.precision else None, options),
        kv_cache_dtype=options.get("kv_cache_dtype"),
        tensor=request.tensor,
        pipeline=request.pipeline,
        workers=min(int(options.get("workers", ranks)), ranks),
        max_batch_size=int(options.get("max_batch_size", request.max_batch_size)),
        options=options,
    )
