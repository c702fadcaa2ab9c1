"""Which requests are traced: rates, counts, settings of models over global ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ServingError
from argosy_runtime.telemetry.tracing.options import TraceMode, TraceOptions
from argosy_runtime.telemetry.tracing.settings import TraceSetting, TraceSettings
from argosy_runtime.telemetry.tracing.tracer import Tracer
from argosy_runtime.traces import TRACING, TraceLevel

ON = TraceOptions(level=TraceLevel.TIMESTAMPS, rate=1, file="f")


def settings(options: TraceOptions = ON) -> tuple[TraceSettings, list[TraceSetting]]:
    """Return settings, and those that they have replaced."""
    replaced: list[TraceSetting] = []
    return TraceSettings(options, replaced.append), replaced


@given(st.integers(1, 50), st.integers(0, 500))
def test_one_request_in_rate_is_traced_exactly(rate: int, requests: int):
    setting = TraceSetting(TraceOptions(level=TraceLevel.TIMESTAMPS, rate=rate, file="f"))
    chosen = [setting.sample() for _ in range(requests)]
    assert chosen == [number % rate == 0 for number in range(1, requests + 1)]


@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 60))
def test_a_count_runs_out(rate: int, count: int, requests: int):
    setting = TraceSetting(TraceOptions(level=TraceLevel.TIMESTAMPS, rate=rate, count=count, file="f"))
    assert sum(setting.sample() for _ in range(requests)) == min(count, requests // rate)
    assert setting.current.count == count - min(count, requests // rate)


def test_what_a_client_traces_is_traced_whatever_rate_and_count():
    never = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=0, mode=TraceMode.OPENTELEMETRY))
    assert [never.sample(forced) for forced in (False, True, True)] == [False, True, True]
    over = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=1, count=0, mode=TraceMode.OPENTELEMETRY))
    assert [over.sample(forced) for forced in (False, True)] == [False, True]
    assert over.current.count == 0


def test_a_count_or_a_frequency_completes_a_file():
    limited = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=1, count=2, file="f"))
    assert [limited.sample() and limited.collect() for _ in range(2)] == [False, True]
    frequent = TraceSetting(TraceOptions(TraceLevel.TIMESTAMPS, rate=1, log_frequency=2, file="f"))
    assert [frequent.sample() and frequent.collect() for _ in range(5)] == [False, True, False, True, False]
    endless = TraceSetting(ON)
    assert not any(endless.sample() and endless.collect() for _ in range(5))


def test_a_models_setting_overrides_the_global_one_field_by_field():
    these, _ = settings()
    these.change("m", {"rate": 7})
    assert (these.of("m").options.rate, these.of("other").options.rate) == (7, 1)
    these.change("", {"count": 5, "rate": 2})
    assert (these.of("m").options.rate, these.of("m").options.count, these.of("other").options.rate) == (7, 5, 2)
    these.change("m", {"rate": None})
    assert these.of("m") is these.of("other")
    these.change("", {"count": None, "rate": None})
    assert these.of("m").options == ON


def test_remaining_traces_pass_to_the_next_setting():
    these, replaced = settings()
    these.change("", {"count": 3})
    assert these.of("m").sample()
    these.change("", {"log_frequency": 4})
    assert these.of("m").current.count == 2
    assert len(replaced) == 2


def test_a_setting_that_is_on_and_can_trace_nothing_is_refused():
    these, _ = settings(TraceOptions())
    with pytest.raises(ServingError, match=r"^Attempting to set invalid trace setting :trace file name is not given$"):
        these.change("", {"level": TraceLevel.TIMESTAMPS})
    these, _ = settings()
    with pytest.raises(ServingError, match=r"^Attempting to set invalid trace setting :sample rate must be non-zero$"):
        these.change("m", {"rate": 0})
    with pytest.raises(ServingError, match=r"^Attempting to set invalid trace setting :$"):
        these.change("", {"count": 0})
    assert these.of("m").options == ON
    these.change("", {"level": TraceLevel.OFF, "rate": 0})
    assert not these.active


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        (ON, []),
        (TraceOptions(), []),
        (TraceOptions(TraceLevel.TIMESTAMPS), ["--trace-config: no request is traced: trace file name is not given"]),
        (TraceOptions(TraceLevel.TIMESTAMPS, rate=0, mode=TraceMode.OPENTELEMETRY), []),
    ],
)
def test_a_server_that_can_trace_nothing_warns(options: TraceOptions, warned: list[str], caplog, monkeypatch):
    monkeypatch.setattr(TRACING, "on", False)
    Tracer(options)
    assert [record.getMessage() for record in caplog.records] == warned
