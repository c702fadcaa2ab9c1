"""Metrics of two lists of answers to the same samples. Pure.

An answer is the outputs by name, without the batch axis. Figures over several outputs are of the worst of them.
Where both have the same NaN or infinity, there is no difference; the gate refuses answers where these differ.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from argosy_builder.contract import Array

Answer = Mapping[str, Array]
Answers = Sequence[Answer]


@dataclass(frozen=True, slots=True)
class Measure:
    """What was measured. `value` is held against the bounds; both sides' own figures where the metric has them."""

    value: float
    baseline: float | None = None
    engine: float | None = None

    @property
    def delta(self) -> float | None:
        """The engine's figure less the baseline's."""
        return None if self.baseline is None or self.engine is None else self.engine - self.baseline


def max_absolute_error(baseline: Answers, engine: Answers) -> float:
    """Return the largest difference of two numbers of any output."""
    return max(float(np.abs(_floats(one) - _floats(other)).max(initial=0)) for one, other in _pairs(baseline, engine))


def mean_absolute_error(baseline: Answers, engine: Answers) -> float:
    """Return the mean difference of two numbers, of the worst output."""
    return _worst(baseline, engine, lambda one, other: float(np.abs(one - other).mean()), max)


def mean_squared_error(baseline: Answers, engine: Answers) -> float:
    """Return the mean squared difference, of the worst output."""
    return _worst(baseline, engine, lambda one, other: float(((one - other) ** 2).mean()), max)


def cosine_similarity(baseline: Answers, engine: Answers) -> float:
    """Return the mean over the samples of the cosine between both answers as vectors, of the worst output.

    Two vectors of zeros are alike; one of them alone is not.
    """
    return _worst(baseline, engine, _cosine, min)


def top1_agreement(baseline: Answers, engine: Answers) -> float:
    """Return the share of places where both choose the same, of the worst output.

    What is chosen is the largest number along the last axis, or a whole number or text itself.
    """
    return min(
        float(np.mean([_agreement(one[name], other[name]) for one, other in zip(baseline, engine, strict=True)]))
        for name in baseline[0]
    )


def accuracy(answers: Answers, labels: Array) -> float:
    """Return the share of the samples for which the first output chooses the label."""
    return float((chosen(answers) == labels).mean())


def f1(answers: Answers, labels: Array) -> float:
    """Return the mean over the labels' classes of the harmonic mean of precision and recall (macro F1)."""
    guesses = chosen(answers)
    scores = []
    for label in np.unique(labels):
        right = float(((guesses == label) & (labels == label)).sum())
        named = float((guesses == label).sum() + (labels == label).sum())
        scores.append(2 * right / named)
    return float(np.mean(scores))


def chosen(answers: Answers) -> Array:
    """Return what each answer's first output chooses, one a sample."""
    return np.asarray([_choice(next(iter(answer.values()))).reshape(-1)[0] for answer in answers])


def non_finite(array: Array) -> int:
    """Return how many values are NaN or infinite."""
    return int((~np.isfinite(array)).sum()) if array.dtype.kind == "f" else 0


def non_finite_differences(one: Array, other: Array) -> int:
    """Return in how many places one is NaN or infinite and the other is not the same. Shapes are equal."""
    if not non_finite(one) and not non_finite(other):
        return 0
    odd = ~(np.isfinite(one) & np.isfinite(other))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return int((odd & ~same).sum())


OF_OUTPUTS: Mapping[str, Callable[[Answers, Answers], float]] = {
    "max_absolute_error": max_absolute_error,
    "mean_absolute_error": mean_absolute_error,
    "mean_squared_error": mean_squared_error,
    "cosine_similarity": cosine_similarity,
    "top1_agreement": top1_agreement,
}
"""Metrics that hold the outputs of both against each other."""
OF_LABELS: Mapping[str, Callable[[Answers, Array], float]] = {"accuracy_drop": accuracy, "f1_drop": f1}
"""Metrics that hold each side against the right answers: the baseline's score less the engine's."""
OF_TEXTS = "perplexity_ratio"
"""The engine's perplexity over the baseline's."""
METRICS = (*OF_OUTPUTS, *OF_LABELS, OF_TEXTS)


def _pairs(baseline: Answers, engine: Answers) -> list[tuple[Array, Array]]:
    return [(one[name], other[name]) for one, other in zip(baseline, engine, strict=True) for name in one]


def _worst(
    baseline: Answers,
    engine: Answers,
    measured: Callable[[Array, Array], float],
    worst: Callable[[list[float]], float],
) -> float:
    """Return the worst output's mean over the samples."""
    both = list(zip(baseline, engine, strict=True))
    means = [
        float(np.mean([measured(_floats(one[name]), _floats(other[name])) for one, other in both if one[name].size]))
        for name in baseline[0]
        if any(one[name].size for one in baseline)
    ]
    return worst(means) if means else worst([0.0, 1.0])


def _cosine(one: Array, other: Array) -> float:
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    if not all(lengths):
        return float(lengths[0] == lengths[1])
    return float(np.vdot(one, other) / (lengths[0] * lengths[1]))


def _floats(array: Array) -> Array:
    """Return the numbers, with 0 for NaN and infinities: both sides have the same, whose difference would be NaN."""
    return np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _agreement(one: Array, other: Array) -> float:
    return float((_choice(one) == _choice(other)).mean())


def _choice(output: Array) -> Array:
    return np.asarray(output.argmax(axis=-1)) if output.dtype.kind == "f" and output.ndim else output
