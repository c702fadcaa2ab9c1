"""What a round knows of a member's rollout from before: the result of the last round, and of the analysis since."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.api import Member
from argosy.planning.rollouts.strategy import ChosenStrategy
from argosy.rollout.state import Revision, RolloutState
from argosy.rollout.verdict import Verdict

SpecsByRevision = Mapping[str, Member]
"""Specs of a member's revisions, by their names."""


@dataclass(frozen=True, slots=True)
class RolloutMemory:
    """What is known of a member's rollout before a round: its `state`, the specs of its `revisions`, and the `weights`
    that servers were last sent, by version. `last`: the revision that was acted upon before there was a rollout.
    `former_failures`: messages of failures of other files with the candidate's version, which it did not cause.
    """

    state: RolloutState | None = None
    revisions: SpecsByRevision = field(default_factory=dict)
    weights: Mapping[int, int] = field(default_factory=dict)
    last: Revision | None = None
    chosen: ChosenStrategy | None = None
    former_failures: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """What the analysis of a member's present step says: its verdict, and the requests that the candidate answered.

    `traffic`: the candidate's share of the requests without a version; None if none was measured.
    """

    verdict: Verdict | None = None
    requests: int = 0
    traffic: float | None = None
