"""Building an engine: compiling a model for the GPUs it will run on, and the accuracy it must keep."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field
from pydantic.alias_generators import to_camel

from argosy.api.values.base import ApiModel, Fault, Int, Number, Rule
from argosy.api.values.bounds import in_order
from argosy.api.values.quantity import Duration, Quantity
from argosy.api.values.storage import StorageUri


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


_SIMILARITIES = [str(metric) for metric in Metric if metric.higher_is_better]


class Calibration(ApiModel):
    """Data from which a builder finds the ranges of what it quantizes."""

    data_uri: StorageUri = Field(description="Inputs as the model will get them, by the same schemes as storageUri.")
    samples: Int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="How many of them are used. Default: as many as the builder takes.",
    )


def _skipped_or_shown(accuracy: "Accuracy") -> Iterator[Fault]:
    given = [name for name in _COMPARED if getattr(accuracy, name) is not None]
    if accuracy.skip is not None:
        if given:
            yield Fault(
                f"says that nothing is compared; leave out {', '.join(map(to_camel, given))}, or skip", ("skip",)
            )
        return
    if accuracy.data_uri is None:
        yield Fault('is required; or say why nothing is compared, as skip: "measured elsewhere"', ("dataUri",))
    if accuracy.min is None and accuracy.max is None:
        yield Fault(f"set {_bound(accuracy)}: the value that is good enough", (_bound(accuracy).partition(" ")[0],))


def _one_measure(accuracy: "Accuracy") -> Iterator[Fault]:
    if accuracy.metric is not None and accuracy.script is not None:
        yield Fault("metric and script exclude each other: a script gives its own number; keep one", ("script",))


def _bound_of_the_metric(accuracy: "Accuracy") -> Iterator[Fault]:
    """A similarity has a least value that is good enough, an error a greatest."""
    if accuracy.script is not None:
        return
    wrong = "max" if accuracy.compared_by.higher_is_better else "min"
    if getattr(accuracy, wrong) is not None:
        better = "higher" if wrong == "max" else "lower"
        yield Fault(f"a {better} {accuracy.compared_by} is better; set {_bound(accuracy)} instead", (wrong,))


def _bound(accuracy: "Accuracy") -> str:
    if accuracy.script is not None:
        return "min or max"
    return "min" if accuracy.compared_by.higher_is_better else "max"


_COMPARED = ("metric", "min", "max", "data_uri", "script")


class Accuracy(ApiModel):
    """What an engine must show before it serves, held against the model as it was; or why it need not."""

    metric: Metric | None = Field(
        default=None, description="How answers are compared. Default: cosine_similarity, unless there is a script."
    )
    min: Number | None = Field(
        default=None, description="The least that is good enough, of a similarity or of the script's number."
    )
    max: Number | None = Field(
        default=None, description="The most that is good enough, of an error, a ratio or the script's number."
    )
    data_uri: StorageUri | None = Field(
        default=None,
        description="The inputs to compare on, by the same schemes as storageUri. Required unless skipped.",
    )
    script: StorageUri | None = Field(
        default=None,
        description="A Python file with `score(baseline, engine)`, which gives a number of both answers, in place "
        "of a metric. Default: none.",
    )
    baseline_precision: Precision = Field(
        default=Precision.FP16, description="The precision of the baseline. Default: fp16."
    )
    skip: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description="Why nothing is compared, in words; the status repeats it. Default: it is compared.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            (*_COMPARED, "skip"),
            _skipped_or_shown,
            cel="has(self.skip) ? !has(self.metric) && !has(self.min) && !has(self.max) && !has(self.dataUri) && "
            "!has(self.script) : has(self.dataUri) && (has(self.min) || has(self.max))",
            says="set dataUri and min or max, or skip alone, with the reason",
        ),
        Rule(
            ("metric", "script"),
            _one_measure,
            cel="!has(self.metric) || !has(self.script)",
            says="metric and script exclude each other; keep one",
        ),
        Rule(
            ("metric", "script", "min", "max"),
            _bound_of_the_metric,
            cel=f"has(self.script) || ((!has(self.metric) || self.metric in {_SIMILARITIES}) ? !has(self.max) : "
            "!has(self.min))",
            says="a similarity takes min, an error takes max",
        ),
        in_order(),
    )

    @property
    def compared_by(self) -> Metric:
        """The metric where there is no script."""
        return self.metric or Metric.COSINE_SIMILARITY


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
    calibration: Calibration | None = Field(
        default=None, description="Data to quantize with. Default: the builder's own, or none."
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
    )
