"""The gate: each metric's number, bounds, and what is no answer at all."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argosy.api.engine.accuracy import Metric
from argosy_agent.contract.builds import AccuracyReport, BuildFailure, DataSource, Gate
from argosy_builder.accuracy import METRICS, judge
from argosy_builder.accuracy.language import perplexity, token_log_likelihood
from argosy_builder.contract import BuildError
from argosy_builder.data import Samples

Array = np.ndarray[Any, Any]
NOW = "2026-01-02T03:04:05Z"
DATA = DataSource("file:/data")


class Function:
    """A runner that computes, and keeps the sizes of the batches that it was asked with."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.batches: list[int] = []

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self.batches.append(len(inputs["x"]))
        output = self._function(inputs["x"])
        return output if isinstance(output, dict) else {"y": output}


def samples(*rows: Any, labels: Any = None) -> Samples:
    values = [{"x": np.asarray(row, np.float32)} for row in rows]
    return Samples(values, "sha256:d", None if labels is None else np.asarray(labels))


def report_of(
    metric: str, data: Samples, baseline: Any, engine: Any, *, batch: int = 4, **bounds: float
) -> AccuracyReport:
    return judge(Gate(DATA, metric, **bounds), data, Function(baseline), Function(engine), NOW, batch=batch)


def test_the_builder_measures_what_the_api_offers() -> None:
    assert set(METRICS) == set(map(str, Metric))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("max_absolute_error", 2.0),
        ("mean_absolute_error", 1.0),
        ("mean_squared_error", 2.0),
        ("cosine_similarity", (1 + 1 / math.sqrt(2)) / 2),
        ("top1_agreement", 0.5),
    ],
)
def test_outputs_are_compared_with_one_another(metric: str, value: float) -> None:
    engines = {0.0: [0.0, 0.0], 1.0: [2.0, 2.0]}
    baselines = {0.0: [0.0, 0.0], 1.0: [0.0, 2.0]}
    if metric in ("mean_absolute_error", "mean_squared_error"):
        baselines = {0.0: [0.0, 0.0], 1.0: [0.0, 0.0]}
    report = report_of(
        metric,
        samples([0.0], [1.0]),
        lambda x: np.asarray([baselines[float(value)] for value in x[:, 0]]),
        lambda x: np.asarray([engines[float(value)] for value in x[:, 0]]),
    )
    assert report.value == pytest.approx(value)
    assert report.samples == 2
    assert report.at == NOW
    assert report.data_digest == "sha256:d"


@pytest.mark.parametrize(
    ("bounds", "passes"),
    [({"maximum": 1.0}, True), ({"maximum": 0.99}, False), ({"minimum": 1.0}, True), ({"minimum": 1.01}, False)],
)
def test_bounds_hold_at_their_value(bounds: dict[str, float], passes: bool) -> None:
    report = report_of("max_absolute_error", samples([1.0]), lambda x: x, lambda x: x + 1, **bounds)
    assert (report.passed, report.minimum, report.maximum) == (passes, bounds.get("minimum"), bounds.get("maximum"))


def test_the_worst_output_decides() -> None:
    report = report_of(
        "mean_absolute_error",
        samples([1.0]),
        lambda x: {"a": x, "b": x},
        lambda x: {"a": x, "b": x + 3},
    )
    assert report.value == 3
    assert report.details["max_absolute_error"] == 3


def test_scores_are_of_labels_and_the_drop_decides() -> None:
    data = samples([0.0], [1.0], [2.0], [3.0], labels=[0, 1, 0, 1])

    def right(x: Array) -> Array:
        return np.eye(2)[(x[:, 0] % 2).astype(int)]

    def half(x: Array) -> Array:
        return np.eye(2)[np.zeros(len(x), int)]

    report = report_of("accuracy_drop", data, right, half, maximum=0.1)
    assert (report.baseline, report.engine, report.delta, report.value) == (1.0, 0.5, -0.5, 0.5)
    assert not report.passed
    assert report_of("f1_drop", data, right, half).engine == pytest.approx((2 / 3 + 0) / 2)


def test_scores_need_labels() -> None:
    with pytest.raises(BuildError, match="add an array or key `labels`"):
        report_of("accuracy_drop", samples([0.0]), lambda x: x, lambda x: x)


def test_rows_of_one_shape_go_together_up_to_the_batch() -> None:
    baseline, engine = Function(lambda x: x), Function(lambda x: x)
    progress: list[int] = []
    judge(
        Gate(DATA, "max_absolute_error"),
        samples([1.0], [2.0], [3.0], [1.0, 2.0]),
        baseline,
        engine,
        NOW,
        batch=2,
        progress=progress.append,
    )
    assert baseline.batches == engine.batches == [2, 1, 1]
    assert progress == [2, 3, 4]


def test_a_model_without_batches_gets_what_its_dims_say() -> None:
    report = report_of("max_absolute_error", samples([1.0, 2.0]), lambda x: x, lambda x: x, batch=0)
    assert report.value == 0


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (lambda x: x * np.nan, "output y differs from the baseline's in 2 values of NaN or infinity"),
        (lambda x: {"z": x}, "gives z where the baseline gives y"),
        (lambda x: x[:, :1], r"has the shape \[1\] where the baseline's has \[2\]"),
    ],
)
def test_an_engine_that_gives_no_answer_is_too_low(engine: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message) as caught:
        report_of("cosine_similarity", samples([1.0, 2.0]), lambda x: x, engine)
    assert caught.value.failure is BuildFailure.ACCURACY_TOO_LOW


@pytest.mark.parametrize("metric", ["max_absolute_error", "cosine_similarity", "top1_agreement"])
@pytest.mark.parametrize(
    ("baseline", "engine", "differing", "not_finite", "baselines"),
    [
        ([1.0, 2.0, -np.inf], [np.nan, 2.0, -np.inf], 1, 2, 1),
        ([1.0, 2.0, -np.inf], [1.0, 2.0, np.nan], 1, 1, 1),
        ([1.0, 2.0, -np.inf], [1.0, 2.0, np.inf], 1, 1, 1),
        ([1.0, 2.0, np.nan], [1.0, np.inf, 3.0], 2, 1, 1),
        ([1.0, 2.0, np.nan], [1.0, 2.0, 3.0], 1, 0, 1),
        ([1.0, 2.0, 3.0], [1.0, 2.0, -np.inf], 1, 1, 0),
    ],
)
def test_values_that_are_not_finite_must_be_the_same(
    metric: str, baseline: list[float], engine: list[float], differing: int, not_finite: int, baselines: int
) -> None:
    def answers(odd: list[float]) -> Any:
        return lambda x: {"fine": x, "odd": np.asarray([[1.0, 2.0, 3.0] if row[0] == 0 else odd for row in x])}

    message = (
        f"output odd differs from the baseline's in {differing} values of NaN or infinity "
        rf"\(not finite: {not_finite} of 6 in the engine's, {baselines} in the baseline's; first in sample 1\)"
    )
    with pytest.raises(BuildError, match=message) as caught:
        report_of(metric, samples([0.0], [1.0]), answers(baseline), answers(engine))
    assert caught.value.failure is BuildFailure.ACCURACY_TOO_LOW


@pytest.mark.parametrize(
    ("metric", "value"),
    [("max_absolute_error", 4.0), ("mean_absolute_error", 2 / 3), ("mean_squared_error", 8 / 3)],
)
@pytest.mark.parametrize("masked", [-np.inf, np.inf, np.nan])
def test_the_same_values_that_are_not_finite_hide_no_error(metric: str, value: float, masked: float) -> None:
    baselines = np.asarray([[1.0, 2.0, 3.0], [1.0, 2.0, masked]])
    engines = np.asarray([[1.0, 2.0, 3.0], [5.0, 2.0, masked]])
    report = report_of(metric, samples([0.0], [1.0]), lambda x: baselines, lambda x: engines, maximum=0.5)
    assert report.value == pytest.approx(value)
    assert not report.passed


def test_an_unknown_metric_is_named_with_those_there_are() -> None:
    with pytest.raises(BuildError, match="'mood' is none of max_absolute_error"):
        report_of("mood", samples([1.0]), lambda x: x, lambda x: x)


@given(arrays(np.float32, (3, 4), elements=st.floats(-10, 10, width=32)))
def test_a_model_is_as_good_as_itself(values: Array) -> None:
    data = samples(*values)
    for metric, best in (("max_absolute_error", 0), ("mean_squared_error", 0), ("top1_agreement", 1)):
        assert report_of(metric, data, lambda x: x, lambda x: x).value == best
    assert report_of("cosine_similarity", data, lambda x: x, lambda x: x).value == pytest.approx(1)


@given(arrays(np.float64, (5, 7), elements=st.floats(-30, 30)), st.lists(st.integers(0, 6), min_size=5, max_size=5))
def test_log_likelihood_is_that_of_softmax(logits: Array, ids: list[int]) -> None:
    likelihood, count = token_log_likelihood(logits, np.asarray(ids))
    exact = sum(
        float(np.log(np.exp(row) / np.exp(row).sum())[token]) for row, token in zip(logits, ids[1:], strict=False)
    )
    assert count == 4
    assert likelihood == pytest.approx(exact)


def test_perplexity_of_even_odds_is_their_number() -> None:
    logits, ids = np.zeros((9, 16)), np.arange(9)
    assert perplexity([token_log_likelihood(logits, ids)]) == pytest.approx(16)
    assert token_log_likelihood(logits, ids, np.asarray([1] * 5 + [0] * 4))[1] == 4


class Reader:
    """A language model that gives each token the same probability."""

    def __init__(self, odds: float) -> None:
        self._odds = odds

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        ids = inputs["input_ids"]
        logits = np.zeros((*ids.shape, 8), np.float32)
        logits[..., 0] = math.log(self._odds)
        return {"logits": logits}

    def log_likelihood(self, text: str) -> tuple[float, int]:
        return -len(text) * math.log(self._odds), len(text)


def test_perplexities_of_texts_and_of_tokens() -> None:
    texts = Samples((), "d", texts=("ab", "c"))
    report = judge(Gate(DATA, "perplexity_ratio", maximum=1.5), texts, Reader(4), Reader(8), NOW)
    assert (report.baseline, report.engine, report.value) == pytest.approx((4, 8, 2))
    assert not report.passed
    tokens = Samples([{"input_ids": np.asarray([1, 0, 0])}], "d")
    report = judge(Gate(DATA, "perplexity_ratio"), tokens, Reader(1), Reader(9), NOW, batch=1)
    assert (report.baseline, report.engine) == pytest.approx((8, 16 / 9))


def test_texts_need_a_model_that_reads() -> None:
    texts = Samples((), "d", texts=("ab",))
    with pytest.raises(BuildError, match="give their input tensors"):
        judge(Gate(DATA, "perplexity_ratio"), texts, Function(None), Function(None), NOW)
    with pytest.raises(BuildError, match="needs the model's input tensors"):
        judge(Gate(DATA, "cosine_similarity"), texts, Reader(1), Reader(1), NOW)


SCRIPTS = {
    "def score(baseline, engine): return abs(baseline['y'] - engine['y']).max()": 1.0,
    "def score(baseline, engine, data): return data['x'].sum() + data['labels'].sum()": 10.0,
}


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_script_measures(tmp_path: Path, text: str) -> None:
    (tmp_path / "score.py").write_text(text)
    report = judge(
        Gate(DATA, minimum=0.5),
        samples([1.0], [2.0], labels=[3, 4]),
        Function(lambda x: x),
        Function(lambda x: x + 1),
        NOW,
        script=tmp_path / "score.py",
        batch=2,
    )
    assert (report.metric, report.value, report.passed) == ("script", SCRIPTS[text], True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r"has no function score\(baseline, engine\)"),
        ("def score(a, b): return a['nix']", "score raised KeyError: 'nix'"),
        ("def score(a, b): return float('nan')", "no finite number"),
        ("def score(a, b): return None", "score raised TypeError"),
        ("def score(", "cannot be run: SyntaxError"),
    ],
)
def test_a_script_that_does_not_measure_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "score.py").write_text(text)
    one = Function(lambda x: x)
    with pytest.raises(BuildError, match=message) as caught:
        judge(Gate(DATA, minimum=0.0), samples([1.0]), one, one, NOW, script=tmp_path / "score.py", batch=1)
    assert caught.value.message.startswith("spec.engine.accuracy.script: score.py")
