"""The accuracy that an engine must reach before it serves."""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

from pydantic import Field
from pydantic.alias_generators import to_camel

from argosy.api.values.base import ApiModel, Fault, Int, Number, Rule, in_order
from argosy.api.values.storage import StorageUri
from argosy_agent.contract.engine_options.precisions import Precision


class Metric(StrEnum):
    """How an engine's answers are compared with the baseline's."""

    MAX_ABSOLUTE_ERROR = "max_absolute_error"
    MEAN_ABSOLUTE_ERROR = "mean_absolute_error"
    MEAN_SQUARED_ERROR = "mean_squared_error"
    COSINE_SIMILARITY = "cosine_similarity"
    TOP1_AGREEMENT = "top1_agreement"
    ACCURACY_DROP = "accuracy_drop"
    F1_DROP = "f1_drop"
    PERPLEXITY_RATIO = "perplexity_ratio"

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is closer to the baseline."""
        return self in (Metric.COSINE_SIMILARITY, Metric.TOP1_AGREEMENT)


_SIMILARITIES = [str(metric) for metric in Metric if metric.higher_is_better]


def _skipped_or_shown(accuracy: "Accuracy") -> Iterator[Fault]:
    present = [name for name in _COMPARED if getattr(accuracy, name) is not None]
    if accuracy.skip is not None:
        if present:
            yield Fault(
                f"says that nothing is compared; leave out {', '.join(map(to_camel, present))}, or skip", ("skip",)
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
    """Check that a similarity has a minimum, and an error a maximum."""
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


_COMPARED = ("metric", "min", "max", "data_uri", "samples", "script")


class Accuracy(ApiModel):
    """The accuracy that an engine must reach, compared with the model's, or the reason to skip the comparison."""

    metric: Metric | None = Field(
        default=None, description="How answers are compared. Default: cosine_similarity, unless script is set."
    )
    min: Number | None = Field(
        default=None, description="The lowest passing value of a similarity or of the script's number."
    )
    max: Number | None = Field(
        default=None, description="The highest passing value of an error, a ratio or the script's number."
    )
    data_uri: StorageUri | None = Field(
        default=None,
        description="The URI of samples to compare on, with the schemes of storageUri: .npz, .npy or .jsonl files, by "
        "input; `labels` for the metrics that end in _drop, `text` for perplexity. Required unless skip is "
        "set.",
    )
    samples: Int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="The number of samples to compare. Default: all."
    )
    script: StorageUri | None = Field(
        default=None,
        description="A Python file whose function `score(baseline, engine)` or `score(baseline, engine, data)` "
        "returns a number, in place of a metric. Its arguments are mappings of arrays by tensor, "
        "samples first. Default: none.",
    )
    baseline_precision: Precision = Field(
        default=Precision.FP16, description="The precision of the baseline. Default: fp16."
    )
    skip: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description="The reason to skip the comparison, which the status repeats. Default: the engine is compared.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            (*_COMPARED, "skip"),
            _skipped_or_shown,
            cel="has(self.skip) ? !has(self.metric) && !has(self.min) && !has(self.max) && !has(self.dataUri) && "
            "!has(self.samples) && !has(self.script) : has(self.dataUri) && (has(self.min) || has(self.max))",
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
        """The metric, if there is no script."""
        return self.metric or Metric.COSINE_SIMILARITY
