"""What a language model does, in its status, and what a new operator process restores from it."""

from argosy.api.scalingstatus import LanguageStatus
from argosy.api.values.quantity import THOUSANDTHS
from argosy.api.values.times import parse_time, timestamp
from argosy.autoscaling.pool.language import LanguageReport

_DIGITS = 3


def language_status(report: LanguageReport | None) -> LanguageStatus | None:
    """Return the report as a status has it; None if there is none."""
    if report is None:
        return None
    return LanguageStatus(
        tokens_per_second=round(report.tokens),
        prompt_tokens_per_second=_integer(report.prompt_tokens),
        cached=_thousandths(report.cached),
        first_token=_rounded(report.first_token),
        between_tokens=_rounded(report.between_tokens),
        running=_integer(report.running),
        waiting=_integer(report.waiting),
        kv_cache=_thousandths(report.kv_cache),
        measured=timestamp(report.measured_at),
    )


def restored(status: LanguageStatus | None) -> LanguageReport | None:
    """Return the report that another process wrote into a status; None without one, or without its time."""
    measured_at = parse_time(status.measured or "") if status is not None else None
    if status is None or measured_at is None:
        return None
    return LanguageReport(
        measured_at,
        status.tokens_per_second,
        status.prompt_tokens_per_second,
        _share(status.cached),
        status.first_token,
        status.between_tokens,
        status.running,
        status.waiting,
        _share(status.kv_cache),
    )


def _integer(value: float | None) -> int | None:
    return None if value is None else round(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _thousandths(share: float | None) -> int | None:
    return None if share is None else round(THOUSANDTHS * share)


def _share(thousandths: int | None) -> float | None:
    return None if thousandths is None else thousandths / THOUSANDTHS
