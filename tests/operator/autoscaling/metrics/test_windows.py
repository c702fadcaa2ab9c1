"""What servers exposed, one time after another, to rates, means and percentiles: in virtual time."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.autoscaling.metrics.histograms import SHARES, UNMEASURED, Histogram
from argosy.autoscaling.metrics.names import Counter, Failure, Gauge, HistogramName
from argosy.autoscaling.metrics.pool_signals import pool_signals
from argosy.autoscaling.metrics.signals import PoolSignals, ServerQueue, Signals
from argosy.autoscaling.metrics.windows import GAP_S, WINDOW_S, Exposed, ServerWindow
from argosy.signals.samples import LABELS as LABELS_OF_SOURCES
from argosy.signals.samples import Sample, exposed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LABELS = {"model": "m", "version": "1"}


def reading(at: float, model: str = "m", **values: float) -> Exposed:
    """Return a reading; `success=3` is nv_inference_request_success, and so on."""
    names = {
        "success": "nv_inference_request_success",
        "canceled": "nv_inference_request_failure",
        "spent_us": "nv_inference_request_duration_us",
        "waited_us": "nv_inference_queue_duration_us",
        "rows": "nv_inference_count",
        "executions": "nv_inference_exec_count",
        "pending": "nv_inference_pending_request_count",
        "busy_s": "argosy_instance_busy_seconds_total",
        "instances": "argosy_instances",
        "kv": "vllm:kv_cache_usage_perc",
    }
    labels = {**LABELS, "model": model}
    reasons = {"canceled": {"reason": "CANCELED"}}
    return exposed((Sample(names[item], labels | reasons.get(item, {}), value) for item, value in values.items()), at)


def after(readings: Iterable[Exposed]) -> ServerWindow:
    window = ServerWindow()
    for other in readings:
        window = window.after(other)
    return window


def pool(*windows: ServerWindow, clock: float | None = None) -> PoolSignals:
    """Return the signals of servers that each serve the model `m`."""
    named = {f"s-{index}": window for index, window in enumerate(windows)}
    at = windows[0].latest.at if clock is None else clock
    return pool_signals({name: {"m": "m"} for name in named}, named, at, NOW)


def of(*windows: ServerWindow) -> Signals:
    return pool(*windows).members["m"]


def test_rates_are_over_the_window() -> None:
    window = after(reading(at, success=at * 7) for at in range(0, 100, 5))
    assert of(window).completions == pytest.approx(7)
    assert of(window).window_s == WINDOW_S


def test_with_readings_further_apart_than_the_window_the_last_two_count() -> None:
    window = after([reading(0, success=0), reading(60, success=6), reading(120, success=126)])
    assert of(window).completions == pytest.approx(2)
    assert of(window).window_s == 60


def test_every_server_has_its_own_queue() -> None:
    one = after([reading(0, success=0, pending=1), reading(30, success=3, pending=7)])
    other = after([reading(0, success=0, pending=0), reading(30, success=3, pending=2)])
    unknown = after([reading(0, success=0), reading(30, success=3)])
    queues = (ServerQueue("s-0", 7.0), ServerQueue("s-1", 2.0))
    assert of(one, other).queues == queues
    assert of(one, other, unknown).queues == queues


def test_one_reading_tells_nothing() -> None:
    assert pool(after([reading(0, success=5)])).members == {}


def test_a_counter_that_restarts_counts_from_zero() -> None:
    window = after([reading(0, success=1000), reading(5, success=1010), reading(10, success=4)])
    assert of(window).completions == pytest.approx(14 / 10)


def test_a_model_that_is_loaded_later_came_from_zero() -> None:
    window = after([reading(0, "other", success=3), reading(10, success=20)])
    assert of(window).completions == pytest.approx(2)


@pytest.mark.parametrize("jump", [-3600.0, -GAP_S - 10, GAP_S + 10, 3600.0])
def test_a_clock_that_jumps_says_nothing_of_the_time_between(jump: float) -> None:
    window = after([reading(5000, success=0), reading(5005, success=50)])
    jumped = window.after(reading(5010 + jump, success=100))
    assert jumped.readings == (reading(5010 + jump, success=100),)
    assert pool(jumped).members == {}
    assert of(jumped.after(reading(5015 + jump, success=110))).completions == pytest.approx(2)


def test_an_older_reading_is_passed_over() -> None:
    window = after([reading(0, success=0), reading(10, success=10)])
    assert window.after(reading(5, success=5)) is window


@pytest.mark.parametrize("value", [nan, -1.0, inf])
def test_what_cannot_be_is_unknown(value: float) -> None:
    window = after([reading(0, success=1, rows=1), reading(5, success=2, rows=value), reading(10, success=3, rows=3)])
    signals = of(window)
    assert signals.completions == pytest.approx(0.2)
    assert signals.batch is None


def test_a_share_above_one_is_unknown() -> None:
    assert of(after([reading(0, kv=0.5), reading(5, kv=1.7)])).kv_cache is None


def test_what_is_stale_is_unknown_and_its_server_counts() -> None:
    old = after([reading(0, success=0), reading(5, success=5)])
    fresh = after([reading(100, success=0), reading(105, success=10)])
    result = pool(fresh, old).members["m"]
    assert (result.servers, result.unmeasured, result.completions) == (1, 1, pytest.approx(2))
    assert pool(old, clock=3600).members == {}


def test_readings_far_in_the_future_are_unknown() -> None:
    assert pool(after([reading(0, success=0), reading(5, success=5)]), clock=-3600).members == {}


def test_arrivals_have_what_queues_up() -> None:
    window = after([reading(0, success=0, pending=0), reading(10, success=50, pending=30)])
    assert of(window).arrivals == pytest.approx(8)
    assert of(window).completions == pytest.approx(5)
    assert of(window).growth == pytest.approx(3)


def test_what_clients_take_back_comes_and_fills_nothing() -> None:
    window = after([reading(0, success=0, canceled=0, pending=10), reading(10, success=50, canceled=40, pending=10)])
    assert (of(window).arrivals, of(window).completions) == (pytest.approx(9), pytest.approx(5))
    assert of(window).growth == 0


def test_means_are_of_all_requests_and_not_of_servers() -> None:
    one = after([reading(0, success=0, spent_us=0), reading(10, success=1, spent_us=1e6)])
    other = after([reading(0, success=0, spent_us=0), reading(10, success=9, spent_us=0)])
    assert of(one, other).latency.mean == pytest.approx(0.1)


def test_the_busy_share_is_of_all_instances() -> None:
    one = after([reading(0, busy_s=0, instances=1), reading(10, busy_s=10, instances=1)])
    other = after([reading(0, busy_s=0, instances=3), reading(10, busy_s=6, instances=3)])
    assert of(one, other).busy == pytest.approx(0.4)


def test_a_sum_without_one_of_its_servers_is_unknown() -> None:
    one = after([reading(0, success=0, instances=1), reading(10, success=10, instances=1)])
    other = after([reading(0, success=0), reading(10, success=10)])
    assert of(one, other).instances is None


def test_versions_are_added() -> None:
    def both(at: float) -> Exposed:
        second = exposed([Sample("nv_inference_request_success", {"model": "m", "version": "2"}, 3 * at)], at)
        first = reading(at, success=at)
        return replace(first, models={**first.models, **second.models})

    signals = of(after(both(at) for at in (0, 10, 20)))
    assert signals.completions == pytest.approx(4)
    assert signals.servers == 1


def test_versions_that_run_out_of_memory_are_named() -> None:
    def failed(at: float, *failures: float) -> Exposed:
        labels = ({**LABELS, "version": str(version), "reason": "OUT_OF_MEMORY"} for version in range(1, 4))
        name = "argosy_request_failures_total"
        return exposed((Sample(name, *pair) for pair in zip(labels, failures, strict=True)), at)

    signals = of(after([failed(0, 5, 0, 0), failed(10, 5, 1, 2)]))
    assert signals.failing == (2, 3)
    assert signals.out_of_memory == pytest.approx(0.3)


def test_a_server_that_exposes_everything_has_all_signals() -> None:
    def everything(at: float) -> Exposed:
        values = [
            Sample(source.partition("{")[0], {**LABELS, **_label(source)}, min(at, 1.0))
            for metric in (*Counter, *Failure, *Gauge)
            for source in metric.value
        ]
        histograms = [source for name in HistogramName for source in name.value]
        buckets = [Sample(f"{name}_bucket", {**LABELS, "le": "+Inf"}, at) for name in histograms]
        return exposed([*values, *buckets, *(Sample(f"{name}_sum", LABELS, at) for name in histograms)], at)

    signals = of(after([everything(0), everything(1)]))
    assert {name for name in signals.__dataclass_fields__ if getattr(signals, name) in (None, UNMEASURED)} == set()


def _label(source: str) -> dict[str, str]:
    name, _, value = source.partition("{")
    return {LABELS_OF_SOURCES[name][0]: value.removesuffix("}")} if value else {}


def test_idle_models_cost_no_memory() -> None:
    window = after(reading(at, success=5) for at in range(0, 30, 5))
    assert len({id(one.models["m", 1]) for one in window.readings}) == 1
    assert of(window).completions == 0


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.data())
def test_resets_never_make_a_rate_negative_or_more_than_what_came(amounts: list[int], data: st.DataObject) -> None:
    count, came, window = 0, 0, ServerWindow((reading(0, success=0),))
    for at, amount in enumerate(amounts, 1):
        if data.draw(st.booleans()):
            count = 0
        count, came = count + amount, came + amount
        window = window.after(reading(at, success=count))
    completions = of(window).completions
    assert completions is not None
    assert 0 <= completions * len(amounts) <= came + 1e-6


BOUNDS = (0.001, 0.01, 0.1, 1.0, inf)
durations = st.lists(st.floats(0, 5), min_size=1, max_size=50)


def histogram(values: list[float], bounds: tuple[float, ...] = BOUNDS) -> Histogram:
    return Histogram(bounds, tuple(float(sum(value <= bound for value in values)) for bound in bounds), sum(values))


@given(durations, st.floats(0.01, 1))
def test_a_percentile_lies_in_the_bucket_of_the_true_one(values: list[float], share: float) -> None:
    result = histogram(values).quantile(share)
    rank = max(1, -int(-share * len(values) // 1))
    true = sorted(values)[min(rank, len(values)) - 1]
    above = next(bound for bound in BOUNDS if true <= bound)
    below = max((bound for bound in BOUNDS if bound < true), default=0.0)
    assert result is not None
    assert below - 1e-9 <= result <= (1.0 if above == inf else above) + 1e-9


@given(durations, durations)
def test_several_servers_are_as_one_that_had_all_of_it(one: list[float], other: list[float]) -> None:
    assert histogram(one) + histogram(other) == replace(histogram(one + other), total_s=pytest.approx(sum(one + other)))
    coarse = (0.01, 1.0, inf)
    mixed = histogram(one) + histogram(other, coarse)
    assert (mixed.bounds, mixed.counts) == (coarse, histogram(one + other, coarse).counts)


@given(durations)
def test_percentiles_rise(values: list[float]) -> None:
    result = histogram(values).distribution()
    percentiles = [share for name in SHARES if (share := result.percentile(name)) is not None]
    assert len(percentiles) == len(SHARES)
    assert percentiles == sorted(percentiles)


def test_of_nothing_there_is_no_percentile() -> None:
    assert Histogram(BOUNDS, (0.0,) * 5).distribution().p99 is None


def test_without_a_common_bound_there_is_no_percentile() -> None:
    result = (histogram([0.2, 0.4], (0.1, inf)) + histogram([0.6], (0.5, inf))).distribution()
    assert (result.mean, result.p99) == (pytest.approx(0.4), None)


def test_the_newest_arrivals_are_apart_from_the_full_window() -> None:
    steady = [reading(at, success=at * 2) for at in (0, 5, 10, 15, 20, 25, 30)]
    result = of(after([*steady, reading(35, success=160, pending=0), reading(40, success=260, pending=0)]))
    assert result.recent == pytest.approx(20)
    assert result.recent_s == 5
    assert result.arrivals is not None
    assert result.arrivals < 10


def test_of_the_least_there_is_a_percentile() -> None:
    distribution = Histogram((0.1, 1.0, inf), (0.0, 0.0, 5e-324), 0.0).distribution()
    assert (distribution.p50, distribution.p999) == (0.0, 1.0)
