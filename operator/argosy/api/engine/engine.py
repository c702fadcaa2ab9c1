"""Building an engine: compiling a model for the GPUs it will run on."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from argosy.api.values.base import ApiModel, Fault, Int, Rule
from argosy.api.values.quantity import Duration, Quantity
from argosy.api.values.storage import StorageUri
from argosy_agent.contract.engine_options.checks import option_faults
from argosy_agent.contract.engine_options.precisions import BITS, QUANTIZED, Precision

from .accuracy import Accuracy


class Builder(StrEnum):
    """The compiler."""

    TENSORRT_LLM = "tensorrt_llm"
    TENSORRT = "tensorrt"
    ONNXRUNTIME = "onnxruntime"
    AOTINDUCTOR = "aotinductor"

    @property
    def reads(self) -> str:
        """The format of models that it compiles."""
        return _COMPILES[self][0]

    @property
    def backend(self) -> str:
        """The backend that serves its engines."""
        return _COMPILES[self][1]


_COMPILES = {
    Builder.TENSORRT_LLM: ("huggingface", "tensorrtllm"),
    Builder.TENSORRT: ("onnx", "tensorrt"),
    Builder.ONNXRUNTIME: ("onnx", "onnxruntime"),
    Builder.AOTINDUCTOR: ("pytorch", "pytorch"),
}


class Calibration(ApiModel):
    """Sample data from which a builder finds ranges for quantization."""

    data_uri: StorageUri = Field(description="The URI of sample inputs, with the schemes of storageUri.")
    samples: Int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="The number of samples to use. Default: as many as the builder takes.",
    )


def _quantized_is_gated(engine: "Engine") -> Iterator[Fault]:
    if engine.precision in QUANTIZED and engine.accuracy is None:
        yield Fault(
            f"{engine.precision} is below a baseline of 16 bits, so its accuracy must be shown before it serves: "
            "set engine.accuracy {dataUri, min}, or say {skip: why not}",
            ("accuracy",),
        )


def _baseline_is_finer(engine: "Engine") -> Iterator[Fault]:
    if engine.accuracy is None or engine.precision is None or engine.accuracy.skip is not None:
        return
    baseline = engine.accuracy.baseline_precision
    if BITS[baseline] < BITS[engine.precision]:
        yield Fault(
            f"the baseline {baseline} is coarser than the engine's {engine.precision}; compare with a finer one",
            ("accuracy", "baselinePrecision"),
        )


def _options(engine: "Engine") -> Iterator[Fault]:
    for fault in option_faults(engine.builder, engine.precision, engine.options, engine.calibration is not None):
        yield Fault(fault.message, fault.path)


_GATED = " || ".join(f"self.precision == '{precision}'" for precision in QUANTIZED)


class Engine(ApiModel):
    """An engine to build before the model serves."""

    builder: Builder = Field(
        description="The compiler: tensorrt_llm, tensorrt, onnxruntime or aotinductor. The first two have never run on "
        "a GPU."
    )
    precision: Precision | None = Field(
        default=None,
        description="The engine's precision. Default: that of the stored model. Below 16 bits, accuracy is required.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="The builder's options, by its own names: docs/reference/engine-options.md. Default: none.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    calibration: Calibration | None = Field(
        default=None, description="Sample data for quantization. Default: the builder's own, or none."
    )
    accuracy: Accuracy | None = Field(
        default=None, description="The accuracy that the engine must reach before it serves. Default: none."
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        description="The image of the build Job. Default: the builder's own.",
    )
    timeout: Duration = Field(
        default=4 * 3_600_000,
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
            says="a precision below 16 bits needs accuracy {dataUri, min}, or {skip: why not}",
        ),
        Rule(("precision", "accuracy"), _baseline_is_finer),
        Rule(("builder", "precision", "options", "calibration"), _options),
    )
