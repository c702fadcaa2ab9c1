"""One reading of a pool: the evidence on each of its candidates grows, and verdicts follow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from argosy.analysis.errors import ERROR_RATE
from argosy.analysis.evidence import Evidence, restored
from argosy.analysis.queries import QueryResults
from argosy.analysis.verdicts import verdict
from argosy.api.model.rollout.analysis import Analysis, AnalysisQuery, LatencyRatios
from argosy.api.model.rollout.shadow import Shadow
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.rollout.state import Phase, RolloutState
from argosy.rollout.verdict import Measurement, Outcome, Verdict

REPORT_AGAIN = timedelta(seconds=10)
"""How long a reported verdict stays while only its numbers change: each report is a write of a status."""

STICKY_KEY: Final = "stickyKey"
_FEWEST_ROUTED: Final = 100
"""Requests from which on it is said."""
_MOST_LACKING: Final = 0.5


@dataclass(frozen=True, slots=True)
class AnalysisSubject:
    """A member whose versions are read: its resource's name, the state of its rollout, and what its spec asks.

    `least`: the requests that its present step needs. `error`: why its queries are not all known.
    `shadow`: how mirrored requests are judged, while requests are mirrored. `has_histograms`: whether its servers
    measure durations in histograms; those of NVIDIA's server do not, so that durations are not compared. `sticky`: the
    keys of its requests, in words.
    """

    name: str
    state: RolloutState
    analysis: Analysis
    queries: tuple[AnalysisQuery, ...] = ()
    least: int = 0
    error: str = ""
    shadow: Shadow | None = None
    has_histograms: bool = True
    sticky: tuple[str, ...] = ()

    @property
    def measurable(self) -> Analysis:
        """The analysis, without what its servers do not measure."""
        if self.has_histograms:
            return self.analysis
        return self.analysis.model_copy(update={"latency": LatencyRatios.model_construct()})


@dataclass(frozen=True, slots=True)
class MemberAnalysis:
    """The evidence on a member's candidate, and the verdict as it was last reported. `proven_since`: when it first
    had requests.
    """

    evidence: Evidence = field(default_factory=Evidence)
    verdict: Verdict | None = None
    reported_at: datetime | None = None
    proven_since: datetime | None = None

    @property
    def requests(self) -> int:
        """The candidate's requests of which the reported verdict knows."""
        return _requests(self.verdict)

    @property
    def traffic(self) -> float | None:
        """The candidate's share of the requests without a version since the analysis began; None before there are
        any.
        """
        return _share(self.evidence)


def _share(evidence: Evidence) -> float | None:
    every = evidence.of_stable.routed + evidence.of_candidate.routed
    return evidence.of_candidate.routed / every if every and evidence.analysis else None


def analyzed(
    subjects: Mapping[str, AnalysisSubject], signals: PoolSignals, before: Mapping[str, MemberAnalysis], now: datetime
) -> dict[str, MemberAnalysis]:
    """Return the analysis of each subject after a reading, by identity."""
    return {
        name: judged(subject, signals, before.get(name) or begun(subject.state), now)[0]
        for name, subject in subjects.items()
    }


def begun(state: RolloutState) -> MemberAnalysis:
    """Return the analysis of a member that this operator has not read before."""
    evidence = restored(state)
    verdict_ = state.verdict if state.verdict is not None and state.verdict.analysis == evidence.analysis else None
    return MemberAnalysis(evidence, verdict_)


def judged(
    subject: AnalysisSubject, signals: PoolSignals, before: MemberAnalysis, now: datetime
) -> tuple[MemberAnalysis, Verdict | None]:
    """Return the analysis of a subject after a reading, and the verdict then, whether or not it is reported; None while
    nothing is proven.
    """
    evidence = before.evidence.follow(subject.state).add(signals.versions.get(subject.name, {}))
    if not evidence.analysis:
        return MemberAnalysis(evidence), None
    since = _proven_since(subject.state, before, now)
    warm_up = timedelta(milliseconds=subject.analysis.warm_up)
    has_results = since is not None and now - since >= warm_up
    results = QueryResults.of(subject.name, subject.queries, signals) if has_results else None
    error, missing, shadow = signals.error, subject.error, subject.shadow
    latest = verdict(subject.measurable, evidence, subject.queries, results, error, missing, shadow)
    latest = _with_keys(latest, sticky_key(subject.sticky, evidence))
    if _is_due(before, latest, subject.least, now):
        return MemberAnalysis(evidence, latest, now, since), latest
    return MemberAnalysis(evidence, before.verdict, before.reported_at, since), latest


def _with_keys(latest: Verdict, keys: Measurement | None) -> Verdict:
    """Return the verdict with how many requests have a key to stay by, and in its message if most have none."""
    if keys is None:
        return latest
    message = latest.message
    if is_lacked(keys.value):
        message = "; ".join(filter(None, (message, f"{keys.name}: {keys.message}")))
    return replace(latest, message=message, measurements=(*latest.measurements, keys))


def _proven_since(state: RolloutState, before: MemberAnalysis, now: datetime) -> datetime | None:
    """Return since when the candidate has requests; None while it loads. A clock that was set back begins again."""
    if state.phase is Phase.LOADING:
        return None
    return min(before.proven_since or now, now)


def _is_due(before: MemberAnalysis, latest: Verdict, least: int, now: datetime) -> bool:
    """Return whether a verdict is reported: at once if it says something else, or has the requests that were needed."""
    reported = before.verdict
    if reported is None or before.reported_at is None or _says(reported) != _says(latest):
        return True
    if _requests(reported) < least <= _requests(latest):
        return True
    return reported != latest and abs(now - before.reported_at) >= REPORT_AGAIN


def _says(reported: Verdict) -> tuple[Outcome, str, str, tuple[tuple[str, Outcome | None], ...]]:
    parts = tuple((measurement.name, measurement.outcome) for measurement in reported.measurements)
    return reported.outcome, reported.analysis, reported.reason, parts


def _requests(reported: Verdict | None) -> int:
    measurements: Iterable[Measurement] = reported.measurements if reported is not None else ()
    return next((measurement.samples for measurement in measurements if measurement.name == ERROR_RATE), 0)


def sticky_key(keys: Sequence[str], evidence: Evidence) -> Measurement | None:
    """Return the share of the requests that lack all keys; None without keys, or while requests are few.

    A request without a key is divided like others, so a key that most requests lack keeps nearly nothing together. It
    says nothing of the candidate, and decides nothing.
    """
    routed = evidence.of_stable.routed + evidence.of_candidate.routed
    if not keys or routed < _FEWEST_ROUTED:
        return None
    lacking = evidence.of_stable.by_weight + evidence.of_candidate.by_weight
    message = f"{lacking:.0f} of {routed:.0f} requests have no {', '.join(keys)}, and do not stay with one version"
    return Measurement(
        STICKY_KEY, lacking / routed, f"<= {_MOST_LACKING:.0%}", round(routed), "reported only", None, None, message
    )


def is_lacked(share: float | None) -> bool:
    """Return whether most requests lack the keys, by the measurement's value."""
    return (share or 0.0) > _MOST_LACKING
