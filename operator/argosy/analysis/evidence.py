"""The evidence on a candidate: what was measured since its present analysis began, and earlier baselines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from argosy.analysis.errors import ERROR_RATE, counts_of
from argosy.analysis.percentiles import Baseline, baseline
from argosy.analysis.shadow.mirrored import as_requests
from argosy.analysis.shadow.status import from_status
from argosy.autoscaling.metrics.shadow_counts import ShadowSignals, together
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.state import RolloutState
from argosy.rollout.verdict import Verdict

MOST_BASELINES = 20
_NOTHING = VersionSignals()
_ENOUGH = 20_000
"""Requests after which a baseline of a revision that serves alone begins again, so that it does not become old."""


@dataclass(frozen=True, slots=True)
class Baselines:
    """What a revision did `earlier`, and its latencies at the traffic that it had."""

    earlier: VersionSignals = _NOTHING
    baselines: tuple[Baseline, ...] = ()

    def with_signals(self, signals: VersionSignals) -> "Baselines":
        """Return these with what it did since."""
        return Baselines(self.earlier + signals, self.joined(signals))

    def joined(self, signals: VersionSignals) -> tuple[Baseline, ...]:
        """Return the latencies with the latest."""
        one = baseline(signals)
        return (*self.baselines, one)[-MOST_BASELINES:] if one is not None else self.baselines


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one analysis, by its name (`RolloutState.analysis`; empty while nothing is proven).

    What the versions `stable` and `candidate` counted since it began; `earlier`: what the stable one did before, and
    its `baselines` at other traffic. `shadow`: of the requests that were mirrored to the candidate in this rollout,
    which count as its requests. `restored`: requests and failures of the candidate that a status has of an operator
    before this one. `proven`: what the candidate did with traffic in earlier steps, which it is compared by once it is
    the stable one.
    """

    analysis: str = ""
    stable: int | None = None
    candidate: int | None = None
    of_stable: VersionSignals = _NOTHING
    of_candidate: VersionSignals = _NOTHING
    earlier: VersionSignals = _NOTHING
    baselines: tuple[Baseline, ...] = ()
    shadow: ShadowSignals | None = None
    restored: VersionSignals = _NOTHING
    proven: Baselines = Baselines()

    def add(self, versions: Mapping[int, VersionSignals]) -> "Evidence":
        """Return the evidence with what the versions counted since the reading before."""
        none, stable, candidate, shadow = _NOTHING, self.of_stable, self.of_candidate, self.shadow
        if self.stable is not None:
            stable += versions.get(self.stable, none)
        if self.candidate is not None:
            grown = versions.get(self.candidate, none)
            candidate += as_requests(grown)
            shadow = together(shadow, grown.shadow)
        added = replace(self, of_stable=stable, of_candidate=candidate, shadow=shadow)
        return added._begun(stable) if not self.analysis and stable.requests > _ENOUGH else added

    def follow(self, state: RolloutState) -> "Evidence":
        """Return the evidence for a state: the same while its analysis is, and else new evidence with the baselines of
        the stable version.
        """
        stable = state.stable.version if state.stable is not None else None
        candidate = state.candidate.version if state.candidate is not None and state.analysis else None
        if (self.analysis, self.stable, self.candidate) == (state.analysis, stable, candidate):
            return self
        if self.stable is None or self.stable != stable:
            proven = self._proven() if stable is not None and stable == self.candidate else Baselines()
            return Evidence(state.analysis, stable, candidate, earlier=proven.earlier, baselines=proven.baselines)
        goes_on = _rollout(self.analysis) == _rollout(state.analysis)
        shadow = self.shadow if goes_on else None
        begun = self._begun(self.earlier + self.of_stable)
        proven = self._proven() if candidate == self.candidate else Baselines()
        return replace(begun, analysis=state.analysis, candidate=candidate, shadow=shadow, proven=proven)

    def _proven(self) -> "Baselines":
        """Return what the candidate did with traffic until now. Mirrored requests tell nothing of its latencies."""
        if self.of_candidate.shadow is not None or not self.of_candidate.requests:
            return self.proven
        return self.proven.with_signals(self.of_candidate)

    def _begun(self, earlier: VersionSignals) -> "Evidence":
        """Return new evidence, of which this is a baseline. `earlier`: what it remembers of the stable version."""
        baselines = Baselines(earlier, self.baselines).joined(self.of_stable)
        return replace(
            self,
            of_stable=VersionSignals(),
            of_candidate=VersionSignals(),
            restored=VersionSignals(),
            earlier=earlier,
            baselines=baselines,
        )

    @property
    def counts(self) -> VersionSignals:
        """The candidate's requests and failures, those of an operator before this one included."""
        return self.of_candidate + self.restored


def restored(state: RolloutState) -> Evidence:
    """Return the evidence of a state after a restart: the requests and failures that its verdict has."""
    evidence = Evidence().follow(state)
    if state.verdict is not None and _rollout(state.verdict.analysis) == _rollout(evidence.analysis):
        evidence = replace(evidence, shadow=from_status(state.verdict.shadow))
    return replace(evidence, restored=_counts(state.verdict)) if _is_present(state) else evidence


def _rollout(analysis: str) -> str:
    """Return the part of an analysis' name that all of one rollout have."""
    return analysis.rpartition("/")[0]


def _is_present(state: RolloutState) -> bool:
    return bool(state.analysis) and state.verdict is not None and state.verdict.analysis == state.analysis


def _counts(verdict: Verdict | None) -> VersionSignals:
    measurements = verdict.measurements if verdict is not None else ()
    rates = [counts_of(measurement) for measurement in measurements if measurement.name == ERROR_RATE]
    return rates[0] if rates else VersionSignals()
