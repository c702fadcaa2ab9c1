"""The verdict on a candidate: every measurement of its analysis, and what they say together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from argosy.analysis.errors import confidence, error_rate
from argosy.analysis.evidence import Evidence
from argosy.analysis.immediate import immediate_failures
from argosy.analysis.limits import DurationLimit
from argosy.analysis.percentiles import SHARES, baseline, percentile
from argosy.analysis.queries import QueryResults, query_measurements
from argosy.analysis.service_time import service_time
from argosy.analysis.shadow.mirrored import answers, paired, without_verdict
from argosy.analysis.shadow.status import to_status
from argosy.analysis.unanswered import unanswered
from argosy.api.model.rollout.analysis import Analysis, AnalysisQuery
from argosy.api.model.rollout.shadow import Shadow
from argosy.autoscaling.metrics.shadow_counts import ShadowSignals
from argosy.rollout.verdict import Measurement, Outcome, Verdict

NO_EVIDENCE, TEMPLATE = "NoEvidence", "templateRef"
_ORDER = (Outcome.FAILED, Outcome.ERROR, Outcome.INCONCLUSIVE)
"""The outcome of which one measurement is enough, the first first."""


def verdict(
    analysis: Analysis,
    evidence: Evidence,
    queries: Sequence[AnalysisQuery] = (),
    results: QueryResults | None = None,
    error: str = "",
    missing: str = "",
    shadow: Shadow | None = None,
) -> Verdict:
    """Return the verdict on the evidence. `results`: None before the queries are judged. `error`: why not all servers
    could be read, which is part of the message while there is no verdict. `missing`: why the queries are not complete.
    `shadow`: how mirrored requests are judged, while requests are mirrored.
    """
    dry_run = {query.name for query in queries if query.dry_run}
    every = list(_measured(analysis, evidence, shadow))
    measured = [one for one in every if one.name not in analysis.dry_run]
    reported = [replace(one, test=f"{one.test}, dry run") for one in every if one.name in analysis.dry_run]
    queried = list(query_measurements(queries, results)) if results is not None else []
    if missing:
        measured.append(Measurement(TEMPLATE, outcome=Outcome.ERROR, message=missing))
    deciding = [*measured, *(measurement for measurement in queried if measurement.name not in dry_run)]
    outcome = together(deciding)
    has_requests = evidence.counts.requests > 0
    if outcome is Outcome.SUCCESSFUL and (not has_requests or (queries and results is None)):
        outcome = Outcome.INCONCLUSIVE
    decisive = [measurement for measurement in deciding if measurement.outcome is outcome]
    reason = "" if outcome is Outcome.SUCCESSFUL else _reason(decisive, {query.name for query in queries})
    if outcome is not Outcome.FAILED and not has_requests:
        reason = NO_EVIDENCE
    message = "; ".join(f"{measurement.name}: {measurement.message}" for measurement in decisive)
    if error and outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR):
        message = f"{message}; {error}" if message else error
    mirrored = to_status(evidence.shadow) if evidence.shadow is not None else None
    return Verdict(outcome, evidence.analysis, reason, message, (*measured, *reported, *queried), mirrored)


def _measured(analysis: Analysis, evidence: Evidence, shadow: Shadow | None) -> Iterator[Measurement]:
    """Yield what follows from the servers' metrics."""
    candidate, stable, sure = evidence.of_candidate, evidence.of_stable, confidence(analysis)
    yield from immediate_failures(candidate, stable)
    yield error_rate(analysis, candidate, stable, evidence.restored)
    if (silent := unanswered(analysis, candidate, stable, evidence.earlier)) is not None:
        yield silent
    if shadow is not None:
        yield from answers(shadow, evidence.shadow or ShadowSignals(), sure)
    waits_for_others = shadow is not None and evidence.shadow is not None and evidence.shadow.calls > 0
    for measurement in _durations(analysis, evidence, is_mirrored=shadow is not None):
        yield without_verdict(measurement) if waits_for_others else measurement


def _durations(analysis: Analysis, evidence: Evidence, is_mirrored: bool) -> Iterator[Measurement]:
    candidate, stable, sure = evidence.of_candidate, evidence.of_stable, confidence(analysis)
    limits, tolerance_s = analysis.latency, analysis.latency.tolerance / 1000
    if limits.service_time is not None:
        yield service_time(DurationLimit(limits.service_time, tolerance_s), sure, candidate, stable, evidence.earlier)
    present, mirrored = baseline(stable), paired(candidate) if is_mirrored else ()
    baselines = mirrored or (*evidence.baselines, *([present] if present is not None else []))
    for name in SHARES:
        limit = getattr(limits, name)
        if limit is not None:
            allowed = DurationLimit(limit, tolerance_s)
            yield percentile(name, allowed, sure, candidate, baselines, None if mirrored else present)


def together(measurements: Iterable[Measurement]) -> Outcome:
    """Return what measurements say together. One without an outcome decides nothing."""
    outcomes = {measurement.outcome for measurement in measurements}
    return next((outcome for outcome in _ORDER if outcome in outcomes), Outcome.SUCCESSFUL)


def _reason(decisive: Sequence[Measurement], queries: set[str]) -> str:
    """Return the first measurement that decided, as one word."""
    if not decisive:
        return ""
    name = decisive[0].name
    return "Query" if name in queries else name[0].upper() + name[1:]
