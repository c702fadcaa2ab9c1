"""What language models do, as statuses report it: by new measurements, but not by each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argosy.autoscaling.metrics.signals import Signals

NEWER_AFTER = timedelta(seconds=30)
"""Shortest time between two reports, since each is a write of a status; a first or a last token is reported at once."""
REPORTED_AGAIN_AFTER = timedelta(minutes=5)
"""Time after which a report is replaced even if its numbers have changed little."""
STALE = timedelta(minutes=2)
"""Age from which measurements, or their absence, count as there being none."""
NOTICEABLE = 0.1
"""Smallest change of the tokens a second that is reported, as a share of them."""
PERCENTILE = "p95"


@dataclass(frozen=True, slots=True)
class LanguageReport:
    """The engines of a model, all servers together; durations in seconds, None where something is not measured."""

    measured_at: datetime
    tokens: float
    prompt_tokens: float | None = None
    cached: float | None = None
    first_token: float | None = None
    between_tokens: float | None = None
    running: float | None = None
    waiting: float | None = None
    kv_cache: float | None = None


def language_reports(
    before: Mapping[str, LanguageReport], signals: Mapping[str, Signals | None], now: datetime
) -> dict[str, LanguageReport]:
    """Return the report of each language model, by the keys of `signals`, which are those of all models."""
    reports = {name: _next(before.get(name), measured, now) for name, measured in signals.items()}
    return {name: report for name, report in reports.items() if report is not None}


def _next(before: LanguageReport | None, signals: Signals | None, now: datetime) -> LanguageReport | None:
    """Return the report from now on: the former one while a new one is not worth a write, None if it is too old."""
    fresh = signals is not None and signals.tokens is not None and now - signals.at <= STALE
    if signals is None or not fresh:
        return before if before is not None and now - before.measured_at <= STALE else None
    report = _report(signals)
    if before is None or (report.tokens > 0) != (before.tokens > 0):
        return report
    age, change = now - before.measured_at, abs(report.tokens - before.tokens)
    is_due = age >= REPORTED_AGAIN_AFTER or (age >= NEWER_AFTER and change > NOTICEABLE * before.tokens)
    return report if is_due and report != replace(before, measured_at=report.measured_at) else before


def _report(signals: Signals) -> LanguageReport:
    prompts, cached = signals.prompt_tokens, signals.cached_tokens
    return LanguageReport(
        measured_at=signals.at,
        tokens=signals.tokens or 0.0,
        prompt_tokens=prompts,
        cached=min(1.0, cached / prompts) if prompts and cached is not None else None,
        first_token=signals.first_token.percentile(PERCENTILE),
        between_tokens=signals.between_tokens.percentile(PERCENTILE),
        running=signals.engine_running,
        waiting=signals.engine_waiting,
        kv_cache=signals.kv_cache,
    )
