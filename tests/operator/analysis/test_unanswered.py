"""Requests that are canceled or time out convict a candidate only where the stable version has fewer of them."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.operator.analysis.versions import answered, total

from argosy.analysis.evidence import Evidence
from argosy.analysis.unanswered import UNANSWERED, unanswered
from argosy.analysis.verdicts import verdict
from argosy.api.model.rollout.analysis import Analysis
from argosy.autoscaling.metrics.names import Failure
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.state import Phase, Revision, RolloutState
from argosy.rollout.verdict import Measurement, Outcome

ANALYSIS = Analysis()
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def gone(requests: int, number: int, reason: Failure = Failure.CANCELED) -> VersionSignals:
    """Return a reading of requests of which clients gave up some."""
    return VersionSignals(1.0, requests - number, failures={reason: number}).as_reading()


def clients(seed: int, share: float, requests: int, readings: int = 40, together: int = 1) -> VersionSignals:
    """Return readings in which clients give up a share of the requests, so many `together`."""
    random = np.random.default_rng(seed)
    counts = random.binomial(requests // together, share, readings) * together
    return total(*(gone(requests, int(count)) for count in counts))


def measured(candidate: VersionSignals, stable: VersionSignals) -> Measurement:
    measurement = unanswered(ANALYSIS, candidate, stable)
    assert measurement is not None
    return measurement


@pytest.mark.parametrize("reason", [Failure.CANCELED, Failure.TIMED_OUT])
def test_a_candidate_that_hangs_is_convicted(reason: Failure) -> None:
    hangs = total(*[gone(2, 2, reason)] * 5)
    evidence = Evidence(analysis="1/two/1", stable=1, candidate=2)
    stable = total(*[answered(100).as_reading()] * 20)
    result = verdict(ANALYSIS, evidence.add({1: stable, 2: hangs}))
    assert (result.outcome, result.reason) == (Outcome.FAILED, "Unanswered")
    assert result.message.startswith(
        "unanswered: 10 of 10 requests were canceled or timed out, 0 of 2000 of the stable"
    )


@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.9])
@pytest.mark.parametrize("together", [1, 10])
def test_clients_that_give_up_often_convict_nothing(share: float, together: int) -> None:
    for seed in range(100):
        candidate = clients(2 * seed, share, 50, together=together)
        if candidate.unanswered.count:
            outcome = measured(candidate, clients(2 * seed + 1, share, 500, together=together)).outcome
            assert outcome is None, (share, together, seed)


def test_more_than_of_the_stable_version_convict() -> None:
    convicted = [measured(clients(seed, 0.10, 50), clients(seed + 500, 0.02, 500)).outcome for seed in range(50)]
    assert convicted.count(Outcome.FAILED) >= 48


def test_what_cannot_be_compared_decides_nothing() -> None:
    hangs = total(*[gone(10, 10)] * 10)
    assert measured(hangs, total(*[gone(10, 10)] * 10)).outcome is None
    assert unanswered(ANALYSIS, answered(10).as_reading(), hangs) is None


def switched(before: VersionSignals, after: VersionSignals) -> Measurement:
    """Return the measurement once the stable version was unloaded for the candidate, as under Recreate."""
    at_rest = RolloutState(Phase.STABLE, NOW, stable=Revision("one", 1), number=3)
    stepping = replace(at_rest, phase=Phase.STEPPING, candidate=Revision("two", 2))
    evidence = Evidence().follow(at_rest).add({1: before}).follow(stepping).add({2: after})
    result = verdict(ANALYSIS, evidence)
    return next(one for one in result.measurements if one.name == UNANSWERED)


def test_a_candidate_that_hangs_alone_is_compared_with_the_stable_version_before_it() -> None:
    before = total(*[gone(100, 2)] * 20)
    hangs = switched(before, total(*[gone(10, 10)] * 10))
    assert (hangs.outcome, hangs.stable) == (Outcome.FAILED, 0.02)
    assert hangs.message == "100 of 100 requests were canceled or timed out, 40 of 2000 of the stable revision, before"
    assert switched(before, clients(1, 0.02, 50)).outcome is None
    assert switched(before, clients(2, 0.10, 50)).outcome is Outcome.FAILED


def test_without_any_stable_version_nearly_all_are_too_many() -> None:
    hangs = switched(VersionSignals(), total(*[gone(10, 10)] * 10))
    assert (hangs.outcome, hangs.stable) == (Outcome.FAILED, None)
    assert "an unknown share of the stable revision, so that nearly all are too many" in hangs.message
    assert switched(VersionSignals(), clients(3, 0.45, 50)).outcome is None


def test_a_client_that_ends_with_all_of_its_requests_counts_as_one() -> None:
    stable = total(*[answered(100).as_reading()] * 20)
    burst = [answered(20).as_reading()] * 20
    assert measured(total(*burst, gone(20, 15)), stable).outcome is None
    assert measured(total(gone(20, 15)), stable).outcome is None
