"""What the servers of a version counted between two readings: exact, or left out where it is uncertain."""

import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import reduce
from math import inf, nan
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.autoscaling.metrics.durations import Durations
from argosy.autoscaling.metrics.histograms import Histogram
from argosy.autoscaling.metrics.names import Failure
from argosy.autoscaling.metrics.unanswered import UnansweredRequests
from argosy.autoscaling.metrics.version_counts import OWN_FAILURES, Executions, VersionSignals
from argosy.autoscaling.metrics.versions import VersionMarks, version_signals
from argosy.autoscaling.metrics.windows import GAP_S, WINDOW_S, Exposed, ServerWindow
from argosy.signals.prometheus import extended
from argosy.signals.samples import Sample, exposed

SERVES = {"a": {"m": "model"}, "b": {"m": "model"}}
WARM_UP_S = 30.0


def reading(at: float, answered: float, version: int = 2, failures: dict[str, float] | None = None, **values: float):
    """Return a reading of one version; `errors=1` is argosy_model_errors_total, and so on."""
    names = {
        "errors": "argosy_model_errors_total",
        "lost": "argosy_instances_lost_total",
        "loads": "argosy_model_load_failure_count",
        "delay": "argosy_max_queue_delay_seconds",
    }
    labels = {"model": "m", "version": str(version)}
    samples = [Sample("nv_inference_request_success", labels, answered)]
    by = {name: values.pop(name) for name in ("weight", "key", "sequence") if name in values}
    samples += [Sample(names[name], labels, value) for name, value in values.items()]
    samples += [Sample("argosy_version_requests_total", labels | {"by": name}, value) for name, value in by.items()]
    reasons = (failures or {}).items()
    samples += [Sample("argosy_request_failures_total", labels | {"reason": name}, value) for name, value in reasons]
    return exposed(samples, at)


def window(*readings: Exposed) -> ServerWindow:
    return reduce(ServerWindow.after, readings, ServerWindow())


class Source:
    """A source of one or two servers, which keeps its windows and marks as the real ones do."""

    def __init__(self, warm_up_s: float = 0.0) -> None:
        self.analyzed = {"model": warm_up_s}
        self._windows: dict[str, ServerWindow] = {}
        self._marks = VersionMarks()

    def read(self, *readings: Exposed, server: str = "a") -> dict[int, VersionSignals]:
        for one in readings:
            self._windows[server] = self._windows.get(server, ServerWindow()).after(one)
        sums, self._marks = version_signals(SERVES, self._windows, self.analyzed, self._marks)
        return sums.get("model", {})


def test_the_first_reading_of_a_server_sets_its_mark_only():
    source = Source()
    assert source.read(reading(0, 500))[2] == VersionSignals()
    assert source.read(reading(1, 507))[2].answered == 7


def test_an_increase_is_reported_once():
    source = Source()
    source.read(reading(0, 0))
    assert source.read(reading(1, 10))[2].answered == 10
    assert source.read()[2].answered == 0
    assert source.read(reading(1, 10))[2].answered == 0
    both = VersionSignals(seconds=2, answered=5, readings=2, unanswered=UnansweredRequests(requests=5, readings=2))
    assert source.read(reading(2, 11), reading(3, 15))[2] == both


def test_versions_and_servers_are_summed_apart_and_together():
    source = Source()
    source.read(reading(0, 0)), source.read(reading(0, 100), server="b")
    source.read(reading(5, 4))
    assert source.read(reading(7, 103), server="b")[2].answered == 3
    both = Source()
    both.read(reading(0, 0, version=1)), both.read(reading(0, 0), server="b")
    assert both.read(reading(1, 2, version=1))[1].answered == 2


def test_a_restart_leaves_its_step_out():
    source = Source()
    source.read(reading(0, 50, failures={"BACKEND": 3}))
    assert source.read(reading(1, 60, failures={"BACKEND": 1}))[2] == VersionSignals()
    assert source.read(reading(2, 61, failures={"BACKEND": 2}))[2].failed == 1


def test_a_gap_and_a_jump_of_the_clock_leave_their_step_out():
    for at in (GAP_S + 1, -GAP_S - 1):
        source = Source()
        source.read(reading(0, 50))
        assert source.read(reading(at, 90))[2] == VersionSignals()
        assert source.read(reading(at + 1, 92))[2].answered == 2


def test_the_version_fails_what_it_caused():
    source = Source()
    none = dict.fromkeys((reason.name for reason in Failure), 0.0) | {"TIMEOUT": 0.0}
    source.read(reading(0, 0, failures=none, errors=0))
    signals = source.read(reading(1, 10, failures=dict.fromkeys(none, 1.0), errors=2))[2]
    assert set(signals.failures) == set(Failure)
    assert (signals.failed, signals.requests) == (len(OWN_FAILURES) + 2, 10 + len(OWN_FAILURES))


def test_the_first_seconds_after_a_load_count_only_what_ends_a_rollout():
    source = Source(WARM_UP_S)
    source.read(Exposed(0.0))
    source.read(reading(10, 0, failures={"BACKEND": 0, "OUT_OF_MEMORY": 0}, lost=0, weight=0, key=0))
    early = source.read(reading(20, 5, failures={"BACKEND": 5, "OUT_OF_MEMORY": 1}, lost=2, weight=4, key=7))[2]
    assert early == VersionSignals(failures={Failure.OUT_OF_MEMORY: 1}, instances_lost=2, routed=11, by_weight=4)
    assert source.read(reading(40, 6, failures={"BACKEND": 6, "OUT_OF_MEMORY": 1}, lost=2))[2].answered == 0
    assert source.read(reading(50, 8, failures={"BACKEND": 6, "OUT_OF_MEMORY": 1}, lost=2))[2].answered == 2


def test_a_version_that_is_loaded_again_warms_up_again():
    for absent in ([Exposed(100.0)], []):
        source = Source(WARM_UP_S)
        source.read(reading(0, 0)), source.read(reading(99, 500))
        source.read(*absent, reading(101, 0))
        assert source.read(reading(110, 5))[2].answered == 0
        source.read(reading(102 + WARM_UP_S, 6))
        assert source.read(reading(103 + WARM_UP_S, 8))[2].answered == 2


def test_samples_that_come_at_once_after_a_slow_prometheus_all_count():
    windows = extended({}, {"a": [reading(0, 0)]})
    sums, marks = version_signals(SERVES, windows, {"model": 0.0}, VersionMarks())
    windows = extended(windows, {"a": [reading(at, at) for at in range(1, 100)]})
    sums, marks = version_signals(SERVES, windows, {"model": 0.0}, marks)
    assert sums["model"][2].answered == 99
    windows = extended(windows, {"a": [reading(100, 103)]})
    assert len(windows["a"].readings) == WINDOW_S + 1
    assert version_signals(SERVES, windows, {"model": 0.0}, marks)[0]["model"][2].answered == 4


def test_members_that_are_not_analyzed_are_not_read():
    source = Source()
    source.analyzed = {}
    assert source.read(reading(0, 0), reading(1, 5)) == {}


def executions(at: float, *batches: tuple[str, float, float, float]) -> Exposed:
    """Return a reading with batches by their bound: how many, their rows, their seconds."""
    labels = {"model": "m", "version": "2"}
    samples = [Sample("nv_inference_request_success", labels, 0)]
    below = 0.0
    for bound, count, rows, seconds in batches:
        below += count
        samples.append(Sample("argosy_batch_rows_bucket", labels | {"le": bound}, below))
        if count:
            samples.append(Sample("argosy_batched_rows_total", labels | {"rows": bound}, rows))
            samples.append(Sample("argosy_batch_seconds_total", labels | {"rows": bound}, seconds))
    return exposed([*samples, Sample("argosy_batch_rows_sum", labels, 0)], at)


def test_executions_are_summed_by_the_size_of_their_batches():
    source = Source()
    source.read(executions(0, ("1", 2, 2, 0.2), ("4", 0, 0, 0), ("+Inf", 0, 0, 0)))
    signals = source.read(executions(1, ("1", 5, 5, 0.5), ("4", 2, 7, 0.5), ("+Inf", 1, 9, 1)))[2]
    assert signals.executions.keys() == {1, 4, inf}
    assert signals.executions[1].seconds == pytest.approx(0.3)
    assert (signals.executions[4], signals.executions[inf]) == (Executions.read(2, 7, 0.5), Executions.read(1, 9, 1))


counts = st.integers(0, 1000).map(float)
histograms = st.none() | st.lists(counts, min_size=3, max_size=3).map(
    lambda numbers: Durations.read(Histogram((0.1, 1.0, inf), tuple(sorted(numbers)), sum(numbers)))
)
signals_of = st.builds(
    VersionSignals,
    seconds=counts,
    answered=counts,
    errors=counts,
    failures=st.dictionaries(st.sampled_from(Failure), counts),
    instances_lost=counts,
    latency=histograms,
    executions=st.dictionaries(st.sampled_from((1.0, 2.0, inf)), st.builds(Executions, counts, counts, counts)),
)


@given(st.lists(signals_of, max_size=6), st.randoms())
def test_the_order_of_readings_does_not_matter(readings: list[VersionSignals], chance: random.Random):
    shuffled = chance.sample(readings, len(readings))
    assert numbers(reduce(add, shuffled, VersionSignals())) == pytest.approx(
        numbers(reduce(add, readings, VersionSignals()))
    )


def numbers(signals: VersionSignals) -> dict[str, float]:
    """Return every number of the signals, by its path."""

    def flat(value: object, path: str) -> Iterator[tuple[str, float]]:
        if is_dataclass(value):
            value = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, tuple):
            value = dict(enumerate(value))
        if isinstance(value, dict):
            for name, part in value.items():
                yield from flat(part, f"{path}/{name}")
        elif value is not None:
            yield path, float(value)

    return dict(flat(signals, ""))


def test_a_value_that_is_no_number_adds_nothing():
    source = Source()
    source.read(reading(0, 3, errors=0))
    signals = source.read(reading(1, nan, errors=1))[2]
    assert (signals.answered, signals.errors) == (0, 1)
