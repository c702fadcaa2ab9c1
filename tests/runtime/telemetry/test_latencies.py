"""Summaries, the responses of streams by index, and settings of metrics."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal
from argosy_runtime.messages import InferResponse, Tensor
from argosy_runtime.telemetry.latencies.responses import MOST_INDEXES, ResponseStatistics
from argosy_runtime.telemetry.latencies.settings import DEFAULTS, MetricsSettings
from argosy_runtime.telemetry.latencies.summaries import LatencySummaries, LatencySummary

SECOND = 1_000_000_000


@given(st.lists(st.integers(1, 10**11), min_size=1, max_size=200), st.floats(0.01, 0.999))
def test_a_quantile_is_exact_but_for_a_percent(values, share):
    summary = LatencySummary()
    for value in values:
        summary.add(value)
    exact = sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
    assert summary.quantile(share) == pytest.approx(exact, rel=0.011)
    assert (summary.count, summary.ns) == (len(values), sum(values))


def test_what_took_no_time_is_a_latency_of_zero():
    summary = LatencySummary()
    summary.add(0, 3)
    assert (summary.quantile(0.5), summary.count) == (0, 3)


def test_without_latencies_a_quantile_is_not_a_number():
    assert math.isnan(LatencySummary().quantile(0.5))


def test_quantiles_are_of_the_last_minute_and_counts_of_ever():
    summaries = LatencySummaries()
    summaries.advance(5 * SECOND)
    summaries.add("request", 1000)
    summaries.advance(50 * SECOND)
    summaries.add("request", 1000_000)
    request = summaries.stages["request"]
    assert request.quantile(0.5) == pytest.approx(1000, rel=0.01)
    summaries.advance(70 * SECOND)
    assert request.quantile(0.5) == pytest.approx(1000_000, rel=0.01)
    summaries.advance(1000 * SECOND)
    assert math.isnan(request.quantile(0.5))
    assert (request.count, request.ns) == (2, 1001_000)


def test_its_memory_does_not_grow_with_the_traffic():
    summary = LatencySummary()
    for value in np.geomspace(1, 1e12, 100_000):
        summary.add(int(value))
    assert sum(map(len, summary._slices)) < 3000


def test_responses_count_by_index():
    statistics = ResponseStatistics()
    full = InferResponse(outputs=[Tensor("Y", "INT8", np.zeros(1, np.int8))])
    for index, response in enumerate([full, full, InferResponse()]):
        statistics.add(index, response, 10)
    statistics.add(0, InferResponse(error=internal("no")), 5)
    statistics.add(1, InferResponse(error=ServingError(ErrorKind.CANCELLED, "", FailureReason.CANCELED)), 3)
    counts = {
        index: {field.name: (duration.count, duration.ns) for field, duration in message.ListFields() if duration.count}
        for index, message in statistics.messages().items()
    }
    done = {"compute_output": (1, 0), "success": (1, 10)}
    assert counts == {
        "0": {"compute_infer": (2, 15), "fail": (1, 5), **done},
        "1": {"compute_infer": (1, 10), "cancel": (1, 3), **done},
        "2": {"compute_infer": (1, 10), "empty_response": (1, 10)},
    }


def test_the_indexes_are_limited():
    statistics = ResponseStatistics()
    for index in range(MOST_INDEXES + 10):
        statistics.add(index, InferResponse(), 1)
    messages = statistics.messages()
    assert len(messages) == MOST_INDEXES
    assert messages[str(MOST_INDEXES - 1)].empty_response.count == 11


def test_settings_are_tritons():
    settings = MetricsSettings.of(
        [
            ("counter_latencies", "false"),
            ("summary_latencies", "true"),
            ("summary_quantiles", "0.4:0.1,0.99:0.01,oops,x:y"),
            ("histogram_latencies", "true"),
            ("other", "1"),
        ]
    )
    assert not settings.counters
    assert settings.summaries
    assert settings.histograms
    assert settings.quantiles == ((0.4, 0.1), (0.99, 0.01))
    assert settings.unknown == ("other",)
    assert settings.wrong_quantiles == (
        "Invalid option: [oops]. No ':' delimiter found. Expected format is <quantile>:<error>",
        "Invalid option: [x:y]. Error: could not convert string to float: 'x'",
    )


def test_other_values_leave_the_defaults():
    names = ("counter_latencies", "summary_latencies", "histogram_latencies")
    settings = MetricsSettings.of([(name, "maybe") for name in names])
    assert replace(settings, undecided=()) == DEFAULTS
    assert settings.undecided == tuple(f"{name}=maybe" for name in names)
    assert MetricsSettings.of([("summary_quantiles", "x")]).quantiles == DEFAULTS.quantiles
