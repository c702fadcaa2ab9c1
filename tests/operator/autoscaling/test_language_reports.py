"""What language models do, in their statuses: reported often enough to be true, and seldom enough to be written."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.operator.autoscaling.loads import START

from argosy.api.scalingstatus import LanguageStatus
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.pool.language import LanguageReport, language_reports
from argosy.status.findings.language import language_status, restored

MODEL = "InferenceModel default/llm"


def signals(tokens: float | None, after_s: float = 0.0, **others: Any) -> Signals:
    return Signals(START + timedelta(seconds=after_s), 30.0, servers=1, tokens=tokens, **others)


def reported(before: LanguageReport | None, measured: Signals | None, after_s: float = 0.0) -> LanguageReport | None:
    """Return the next report of a model."""
    now = START + timedelta(seconds=after_s)
    return language_reports({MODEL: before} if before else {}, {MODEL: measured}, now).get(MODEL)


def test_a_language_model_has_all_that_was_measured() -> None:
    measured = signals(
        812.4, prompt_tokens=4000.0, cached_tokens=1000.0, engine_running=12.0, engine_waiting=3.0, kv_cache=0.4567,
        first_token=Distribution(0.2, p95=0.51234), between_tokens=Distribution(0.02, p95=0.031),
    )  # fmt: skip
    assert language_status(reported(None, measured)) == LanguageStatus(
        tokens_per_second=812, prompt_tokens_per_second=4000, cached=250, first_token=0.512, between_tokens=0.031,
        running=12, waiting=3, kv_cache=457, measured="2026-01-01T12:00:00Z",
    )  # fmt: skip


def test_other_models_and_unmeasured_ones_have_none() -> None:
    assert reported(None, signals(None)) is None
    assert reported(None, None) is None
    assert language_status(None) is None


FIRST = LanguageReport(START, 100.0)


@pytest.mark.parametrize(
    ("tokens", "after_s", "is_new"),
    [
        (150.0, 5.0, False),
        (150.0, 30.0, True),
        (105.0, 60.0, False),
        (105.0, 300.0, True),
        (100.0, 300.0, False),
        (0.0, 5.0, True),
    ],
)
def test_a_new_report_needs_time_and_a_difference_or_a_standstill(tokens: float, after_s: float, is_new: bool) -> None:
    after = reported(FIRST, signals(tokens, after_s), after_s)
    assert after is not None
    assert (after.tokens, after is FIRST) == (tokens if is_new else 100.0, not is_new)


def test_the_first_token_after_a_standstill_is_reported_at_once() -> None:
    after = reported(replace(FIRST, tokens=0.0), signals(7.0, 1.0), 1.0)
    assert after is not None
    assert after.tokens == 7.0


@pytest.mark.parametrize("measured", [None, signals(500.0), signals(None, 119.0)])
def test_what_is_no_longer_measured_is_dropped_after_two_minutes(measured: Signals | None) -> None:
    assert reported(FIRST, None, 120.0) is FIRST
    assert reported(FIRST, measured, 121.0) is None


def test_a_model_that_is_gone_has_no_report() -> None:
    assert language_reports({MODEL: FIRST}, {}, START) == {}


def test_a_new_process_goes_on_from_the_status() -> None:
    report = LanguageReport(START, 100.0, 50.0, 0.25, 0.5, 0.03, 4.0, 1.0, 0.5)
    assert restored(language_status(report)) == report
    assert restored(None) is None
    assert restored(LanguageStatus(tokens_per_second=3)) is None
    assert restored(LanguageStatus(tokens_per_second=3, measured="yesterday")) is None
