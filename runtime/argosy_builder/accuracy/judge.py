"""Both models answer the same samples; one number says whether the engine is good enough."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from argosy_agent.contract.builds import AccuracyReport, BuildFailure, Gate
from argosy_builder.contract import Array, BuildError, Runner
from argosy_builder.data import Purpose, Samples

from .language import LanguageRunner, answered, perplexity
from .metrics import (
    METRICS,
    OF_LABELS,
    OF_OUTPUTS,
    OF_TEXTS,
    Answer,
    Answers,
    Measure,
    non_finite,
    non_finite_differences,
)
from .scripts import score

SCRIPT = "script"
"""The metric's name in the report where a script measured."""
Progress = Callable[[int], None]
"""Progress of samples that both have answered."""


def judge(
    gate: Gate,
    samples: Samples,
    baseline: Runner,
    engine: Runner,
    now: str,
    script: Path | None = None,
    batch: int = 0,
    progress: Progress = lambda _: None,
) -> AccuracyReport:
    """Hold the engine against the baseline on the samples; `now` is RFC 3339.

    `batch` is the largest that both take, 0 where they have no batch axis. Raises BuildError: ACCURACY_DATA_INVALID
    where the data does not do for the metric, ACCURACY_TOO_LOW where the engine's NaN and infinities are
    not the baseline's.
    """
    metric = SCRIPT if script is not None else gate.metric
    if metric == OF_TEXTS and not samples.rows:
        measure, details = _perplexities(samples, baseline, engine, progress), {}
    else:
        ours, theirs = _answers(samples, baseline, engine, batch, progress)
        _comparable(ours, theirs)
        measure = _measured(metric, samples, ours, theirs, script)
        details = _details(ours, theirs)
    return AccuracyReport(
        metric=metric,
        value=measure.value,
        passed=_within(measure.value, gate),
        samples=len(samples),
        data_digest=samples.digest,
        at=now,
        baseline=measure.baseline,
        engine=measure.engine,
        delta=measure.delta,
        minimum=gate.minimum,
        maximum=gate.maximum,
        details=details,
    )


def _measured(metric: str, samples: Samples, baseline: Answers, engine: Answers, script: Path | None) -> Measure:
    if script is not None:
        return Measure(score(script, samples, baseline, engine))
    if metric in OF_OUTPUTS:
        return Measure(OF_OUTPUTS[metric](baseline, engine))
    if metric in OF_LABELS:
        return _scores(metric, samples, baseline, engine)
    if metric == OF_TEXTS:
        return _ratio(*(_of_logits(samples, answers) for answers in (baseline, engine)))
    raise BuildError(
        BuildFailure.INVALID_OPTIONS, f"spec.engine.accuracy.metric: {metric!r} is none of {', '.join(METRICS)}"
    )


def _scores(metric: str, samples: Samples, baseline: Answers, engine: Answers) -> Measure:
    if samples.labels is None:
        raise Purpose.ACCURACY.error(f"{metric} needs the right answers; add an array or key `labels`, one a sample")
    before, after = (OF_LABELS[metric](answers, samples.labels) for answers in (baseline, engine))
    return Measure(before - after, before, after)


def _of_logits(samples: Samples, answers: Answers) -> list[tuple[float, int]]:
    try:
        return [answered(row, answer) for row, answer in zip(samples.rows, answers, strict=True)]
    except (KeyError, IndexError) as error:
        raise Purpose.ACCURACY.error(
            f"{OF_TEXTS} needs the input input_ids and the output logits [tokens, vocabulary]: {error} does not fit"
        ) from error


def _perplexities(samples: Samples, baseline: Runner, engine: Runner, progress: Progress) -> Measure:
    """Measure the perplexities of both sides on full texts."""
    if not isinstance(baseline, LanguageRunner) or not isinstance(engine, LanguageRunner):
        raise Purpose.ACCURACY.error("holds texts, which this builder's models do not read; give their input tensors")
    both = []
    for at, text in enumerate(samples.texts, 1):
        both.append((baseline.log_likelihood(text), engine.log_likelihood(text)))
        progress(at)
    return _ratio([one for one, _ in both], [other for _, other in both])


def _ratio(baseline: Sequence[tuple[float, int]], engine: Sequence[tuple[float, int]]) -> Measure:
    if not sum(count for _, count in baseline):
        raise Purpose.ACCURACY.error("no sample has two tokens, so there is nothing to foretell")
    before, after = perplexity(baseline), perplexity(engine)
    if not np.isfinite(before):
        raise Purpose.ACCURACY.error("the baseline's own perplexity is not finite; is this its language?")
    if not np.isfinite(after):
        raise _too_low("the engine's perplexity is not finite")
    return Measure(after / before, before, after)


def _answers(
    samples: Samples, baseline: Runner, engine: Runner, batch: int, progress: Progress
) -> tuple[list[Answer], list[Answer]]:
    ours: list[Answer] = []
    theirs: list[Answer] = []
    if not samples.rows:
        raise Purpose.ACCURACY.error("holds texts; this metric needs the model's input tensors")
    for rows in _batches(samples.rows, batch):
        ours += _requested(baseline, rows, batch)
        theirs += _requested(engine, rows, batch)
        progress(len(ours))
    return ours, theirs


def _batches(rows: Sequence[Mapping[str, Array]], batch: int) -> list[Sequence[Mapping[str, Array]]]:
    """Group neighbouring samples of equal shapes."""
    batches: list[list[Mapping[str, Array]]] = []
    for row in rows:
        if batches and len(batches[-1]) < batch and _shapes(batches[-1][0]) == _shapes(row):
            batches[-1].append(row)
        else:
            batches.append([row])
    return list(batches)


def _shapes(row: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in row.items()}


def _requested(runner: Runner, rows: Sequence[Mapping[str, Array]], batch: int) -> list[Answer]:
    """Return one answer a row, without the batch axis."""
    if not batch:
        return [runner.run(rows[0])]
    outputs = runner.run({name: np.stack([row[name] for row in rows]) for name in rows[0]})
    return [{name: array[at] for name, array in outputs.items()} for at in range(len(rows))]


def _comparable(baseline: Answers, engine: Answers) -> None:
    """Raise where the engine's outputs have other names or shapes, or other values of NaN and infinity."""
    for at, (one, other) in enumerate(zip(baseline, engine, strict=True)):
        if one.keys() != other.keys():
            raise _too_low(f"the engine gives {', '.join(other)} where the baseline gives {', '.join(one)}")
        for name, array in one.items():
            if array.shape != other[name].shape:
                shapes = f"{list(other[name].shape)} where the baseline's has {list(array.shape)}"
                raise _too_low(f"the engine's output {name} has the shape {shapes} (sample {at})")
    for name in baseline[0]:
        _same_non_finite(name, [answer[name] for answer in baseline], [answer[name] for answer in engine])


def _same_non_finite(name: str, baseline: Sequence[Array], engine: Sequence[Array]) -> None:
    """Raise where one side of an output has NaN or an infinity and the other side has something else.

    No metric shows this reliably: the largest of several figures may drop a NaN, and argmax takes it for the largest.
    """
    differing = [non_finite_differences(one, other) for one, other in zip(baseline, engine, strict=True)]
    if not any(differing):
        return
    theirs, ours = (sum(non_finite(array) for array in side) for side in (engine, baseline))
    first = next(at for at, count in enumerate(differing) if count)
    raise _too_low(
        f"the engine's output {name} differs from the baseline's in {sum(differing)} values of NaN or infinity "
        f"(not finite: {theirs} of {sum(array.size for array in engine)} in the engine's, {ours} in the baseline's; "
        f"first in sample {first})"
    )


def _details(baseline: Answers, engine: Answers) -> dict[str, float]:
    """Return every finite figure of the outputs' difference."""
    numeric = all(array.dtype.kind in "fiub" for answer in baseline for array in answer.values())
    if not numeric:
        return {}
    details = {name: measured(baseline, engine) for name, measured in OF_OUTPUTS.items()}
    return {name: value for name, value in details.items() if np.isfinite(value)}


def _within(value: float, gate: Gate) -> bool:
    low = gate.minimum is None or value >= gate.minimum
    return low and (gate.maximum is None or value <= gate.maximum)


def _too_low(message: str) -> BuildError:
    return BuildError(BuildFailure.ACCURACY_TOO_LOW, f"{message}; build it with another precision or calibration")
