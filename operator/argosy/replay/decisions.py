"""Decides the round of a bundle again, and compares the decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.reconcile import reconcile
from argosy.replay.bundle import Bundle, described
from argosy.replay.codec import encoded
from argosy.replay.differences import Difference, differences
from argosy.replay.readings import CandidateReplay, candidate_replays, evidence_differences
from argosy.replay.secrets import without_secrets


@dataclass(frozen=True, slots=True)
class Replay:
    """A round that was decided again: its decisions, or the error that it ended with, and what differs.
    `candidates`: the readings that became its evidence, judged again.
    """

    decisions: dict[str, Any] | None
    error: str
    differences: Sequence[Difference]
    candidates: Sequence[CandidateReplay] = ()

    @property
    def is_same(self) -> bool:
        """Whether the decision is the recorded one."""
        return not self.differences


def replayed(bundle: Bundle) -> Replay:
    """Return the same round, decided by this release on the bundle's snapshot."""
    error, decisions = "", None
    try:
        outcome = reconcile(bundle.snapshot, bundle.now, bundle.drain_period)
    except Exception as fault:  # a round that failed is what some bundles are about
        error = described(fault)
    else:
        decisions = without_secrets(encoded(outcome)).document
    before = {"error": bundle.error, "decisions": bundle.decisions}
    after = {"error": error, "decisions": decisions}
    candidates, judged = _judged(bundle)
    return Replay(decisions, error, (*judged, *differences(before, after)), candidates)


def _judged(bundle: Bundle) -> tuple[Sequence[CandidateReplay], Sequence[Difference]]:
    """Return the recorded readings, judged again, and what differs from the evidence that the round acted upon."""
    try:
        candidates = candidate_replays(bundle.snapshot.recordings)
        return candidates, tuple(evidence_differences(bundle.snapshot, candidates))
    except Exception as fault:
        return (), (Difference("evidence", replayed=described(fault)),)
