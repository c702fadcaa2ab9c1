"""Which evidence of one rollout the next one may use: that of the revision that is stable then, and of no other."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from tests.operator.analysis.versions import durations, total

from argosy.analysis.evidence import Evidence
from argosy.autoscaling.metrics.shadow_counts import ShadowSignals
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.rollout.state import Phase, Revision, RolloutState

STEPPING = RolloutState(
    Phase.STEPPING, datetime(2030, 1, 1, tzinfo=UTC), stable=Revision("one", 1), candidate=Revision("two", 2), number=1
)
PROMOTED = replace(STEPPING, phase=Phase.PROMOTED, stable=Revision("two", 2), candidate=None)
HELD = replace(STEPPING, phase=Phase.HELD, candidate=None)


def requests(rate: int, milliseconds: float) -> VersionSignals:
    """Return ten readings of a second with so many requests each."""
    latency = durations(np.full(rate, milliseconds / 1000))
    return total(*[VersionSignals(1.0, rate, latency=latency).as_reading() for _ in range(10)])


def test_a_promoted_candidate_is_the_baseline_of_the_next_one_by_its_own_steps() -> None:
    evidence = Evidence().follow(STEPPING).add({1: requests(90, 5), 2: requests(10, 8)})
    evidence = evidence.follow(replace(STEPPING, step=1)).add({1: requests(50, 5), 2: requests(50, 8)})
    evidence = evidence.follow(PROMOTED)
    assert [one.rate for one in evidence.baselines] == [10, 50], "none of the former stable revision"
    assert evidence.earlier.requests == 600
    assert (evidence.of_stable.requests, evidence.of_candidate.requests) == (0, 0)
    latest = replace(PROMOTED, phase=Phase.STEPPING, number=2, candidate=Revision("three", 3))
    evidence = evidence.add({2: requests(100, 8)}).follow(latest)
    assert [one.rate for one in evidence.baselines] == [10, 50, 100]
    assert evidence.proven.baselines == ()


def test_mirrored_requests_are_no_baseline() -> None:
    shadowing = replace(STEPPING, phase=Phase.SHADOWING)
    shadow = ShadowSignals({"equal": 100.0}, candidate=durations(np.full(100, 0.008)))
    evidence = Evidence().follow(shadowing).add({1: requests(100, 5), 2: VersionSignals(10.0, shadow=shadow)})
    assert evidence.of_candidate.requests == 100
    assert evidence.follow(PROMOTED).baselines == ()


def test_a_candidate_that_was_taken_back_leaves_nothing() -> None:
    evidence = Evidence().follow(STEPPING).add({1: requests(90, 5), 2: requests(10, 8)}).follow(HELD)
    assert [one.rate for one in evidence.baselines] == [90]
    assert evidence.proven.baselines == ()
    again = evidence.follow(replace(STEPPING, number=2, candidate=Revision("three", 3)))
    assert again.add({3: requests(10, 8)}).follow(replace(PROMOTED, stable=Revision("two", 2))).baselines == ()


def test_a_version_that_became_stable_otherwise_begins_without_baselines() -> None:
    evidence = Evidence().follow(STEPPING).add({1: requests(90, 5), 2: requests(10, 8)})
    undone = evidence.follow(replace(PROMOTED, stable=Revision("zero", 7)))
    assert (undone.baselines, undone.earlier.requests) == ((), 0)
