"""Simulated rollouts: Argosy's own state machine and analysis, read each second, on two simulated versions."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from argosy.analysis.errors import error_test
from argosy.analysis.pool_analysis import AnalysisSubject, MemberAnalysis, analyzed
from argosy.api.model.rollout.rollout import Rollout
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.rollout.machine import advance
from argosy.rollout.state import Phase, Revision, RolloutInputs, RolloutState

from .serving import Arrivals, Quality, Version

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
STABLE, CANDIDATE = Revision("stable", 1), Revision("candidate", 2)
SETTINGS = Rollout.model_validate({"steps": [{"traffic": share} for share in ("5%", "25%", "50%")]})
"""Steps of the tutorial; everything else as it is by default."""
LONGEST_S = 7200
WARM_S = 60
"""Seconds of the stable version alone before the rollout begins."""


@dataclass(frozen=True)
class Ending:
    """How a rollout ended: Promoted, Held (rolled back) or Inconclusive, and by what.

    `requests`: of the candidate until then.
    """

    phase: str
    reason: str
    message: str
    requests: int
    seconds: float


def simulated(
    stable: Quality, candidate: Quality, rate: float, seed: int, settings: Rollout = SETTINGS, window_s: float = 0.0
) -> Ending:
    """Return how a rollout ends at so many requests a second."""
    arrivals = Arrivals(rate, seed)
    versions = Version(stable, window_s, 2 * seed), Version(candidate, window_s, 2 * seed + 1)
    state, memory, requests = RolloutState(Phase.STABLE, BEGINNING, stable=STABLE, observed_at=BEGINNING), {}, 0.0
    share = 0.0
    for second in range(LONGEST_S):
        now = BEGINNING + timedelta(seconds=second + 1)
        both = arrivals.between(second, second + 1, share)
        read = [version.read(own, second, second + 1) for version, own in zip(versions, both, strict=True)]
        requests += read[1].requests
        subject = AnalysisSubject("model", state, settings.analysis)
        signals = PoolSignals(versions={"model": {1: read[0], 2: read[1]}})
        memory = analyzed({"model": subject}, signals, memory, now)
        if second < WARM_S:
            continue
        state, share = _advanced(state, settings, memory["model"], now)
        if state.phase in (Phase.ROLLING_BACK, Phase.PROMOTING):
            return _ending(state, requests, second + 1)
    return _ending(state, requests, LONGEST_S)


def _advanced(
    state: RolloutState, settings: Rollout, analysis: MemberAnalysis, now: datetime
) -> tuple[RolloutState, float]:
    """Return the next state, and the candidate's share."""
    inputs = RolloutInputs(
        CANDIDATE,
        now,
        candidate_ready=True,
        candidate_loaded=True,
        verdict=analysis.verdict,
        requests=analysis.requests,
    )
    state, action = advance(state, settings, inputs)
    return state, action.weights.get(CANDIDATE.version, 0) / 1e6


def _ending(state: RolloutState, requests: float, seconds: float) -> Ending:
    phases = {Phase.ROLLING_BACK: "Held", Phase.PROMOTING: "Promoted"}
    verdict = state.verdict
    return Ending(
        phases.get(state.phase, "Inconclusive"),
        verdict.reason if verdict is not None else "",
        verdict.message if verdict is not None else "",
        round(requests),
        seconds,
    )


def fewest(failing: float, settings: Rollout = SETTINGS) -> float:
    """Return the mean number of requests until Wald's test decides, looking after each: exactly."""
    test = error_test(settings.analysis)
    alive: dict[int, float] = {0: 1.0}
    mean, samples = 0.0, 0
    while (left := sum(alive.values())) > 1e-9:
        mean, samples = mean + left, samples + 1
        after: dict[int, float] = {}
        for failures, probability in alive.items():
            for more, chance in ((0, 1 - failing), (1, failing)):
                if test.decide(failures + more, samples).name == "OPEN":
                    after[failures + more] = after.get(failures + more, 0.0) + probability * chance
        alive = after
    return mean
