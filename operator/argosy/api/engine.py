"""Building an engine: compiling a model for the GPUs it will run on, and the accuracy it must keep."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from argosy.api.base import ApiModel, Fault, Number, Rule
from argosy.api.quantity import Duration, Quantity
from argosy.api.storage import StorageUri


class Builder(StrEnum):
    """The compiler."""

    TENSORRT_LLM = "tensorrt_llm"
    TENSORRT = "tensorrt"
    ONNXRUNTIME = "onnxruntime"
    AOTINDUCTOR = "aotinductor"

    @property
    def reads(self) -> str:
        """The model format that it compiles."""
        return _COMPILES[self][0]

    @property
    def backend(self) -> str:
        """The backend that serves what it makes."""
        return _COMPILES[self][1]


_COMPILES = {
    Builder.TENSORRT_LLM: ("huggingface", "tensorrtllm"),
    Builder.TENSORRT: ("onnx", "tensorrt"),
    Builder.ONNXRUNTIME: ("onnx", "onnxruntime"),
    Builder.AOTINDUCTOR: ("pytorch", "pytorch"),
}


class Precision(StrEnum):
    """The arithmetic that an engine uses."""

    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"
    INT4 = "int4"


_BITS = {
    Precision.FP32: 32,
    Precision.TF32: 19,
    Precision.BF16: 16,
    Precision.FP16: 16,
    Precision.FP8: 8,
    Precision.INT8: 8,
    Precision.FP4: 4,
    Precision.INT4: 4,
}
QUANTIZED = tuple(precision for precision, bits in _BITS.items() if bits < 16)
"""The precisions that need an accuracy gate."""


class Metric(StrEnum):
    """How an engine's answers are compared with the baseline's."""

    MAX_ABSOLUTE_ERROR = "max_absolute_error"
    MEAN_SQUARED_ERROR = "mean_squared_error"
    COSINE_SIMILARITY = "cosine_similarity"
    TOP1_AGREEMENT = "top1_agreement"
    PERPLEXITY_RATIO = "perplexity_ratio"

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is closer to the baseline."""
        return self in (Metric.COSINE_SIMILARITY, Metric.TOP1_AGREEMENT)


class Accuracy(ApiModel):
    """The gate: the engine's answers on given data, compared with those of a baseline."""

    data_uri: StorageUri = Field(description="The inputs to compare on, by the same schemes as storageUri.")
    metric: Metric = Field(
        default=Metric.COSINE_SIMILARITY, description="How answers are compared. Default: cosine_similarity."
    )
    threshold: Number = Field(
        ge=0,
        description="The least value that passes for similarity and agreement, the greatest for errors and ratios.",
    )
    baseline_precision: Precision = Field(
        default=Precision.FP16, description="The precision of the baseline. Default: fp16."
    )


def _quantized_is_gated(engine: "Engine") -> Iterator[Fault]:
    if engine.precision in QUANTIZED and engine.accuracy is None:
        yield Fault(
            f"{engine.precision} is below a baseline of 16 bits, so its accuracy must be shown "
            f"before it serves: "
            "set engine.accuracy {dataUri, threshold}",
            ("accuracy",),
        )


def _baseline_is_finer(engine: "Engine") -> Iterator[Fault]:
    if engine.accuracy is None or engine.precision is None:
        return
    baseline = engine.accuracy.baseline_precision
    if _BITS[baseline] < _BITS[engine.precision]:
        yield Fault(
            f"the baseline {baseline} is coarser than the engine's {engine.precision}; compare with a finer one",
            ("accuracy", "baselinePrecision"),
        )


_GATED = " || ".join(f"self.precision == '{precision}'" for precision in QUANTIZED)


class Engine(ApiModel):
    """An engine to build before the model serves."""

    builder: Builder = Field(description="The compiler: tensorrt_llm, tensorrt, onnxruntime or aotinductor.")
    precision: Precision | None = Field(
        default=None,
        description="The engine's arithmetic. Default: as the model is stored. Below 16 bits, accuracy is required.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="The builder's own options, by its own names.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    accuracy: Accuracy | None = Field(
        default=None, description="What the engine must show before it serves. Default: nothing."
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        description="The image of the build Job. Default: the builder's own.",
    )
    timeout: Duration = Field(
        default=4 * 3600,
        description="How long a build may take, such as 2h. Default: 4h.",
        json_schema_extra={"default": "4h"},
    )
    memory: Quantity | None = Field(
        default=None, description="Host memory of the build Job, such as 64Gi. Default: no request."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("precision", "accuracy"),
            _quantized_is_gated,
            cel=f"!has(self.precision) || !({_GATED}) || has(self.accuracy)",
            says="a precision below 16 bits needs accuracy {dataUri, threshold}",
        ),
        Rule(("precision", "accuracy"), _baseline_is_finer),
    )
