"""What a round knows of rollouts from before."""

from dataclasses import replace

from argosy.api import Member
from argosy.api.status import EnsembleStatus, InferenceModelStatus
from argosy.planning.rollouts.member import takes_part
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.planning.rollouts.revision import revision_of
from argosy.planning.rollouts.strategy import ChosenStrategy
from argosy.rollout.statuses import from_status
from argosy.snapshot import FleetSnapshot


def rollout_memories(snapshot: FleetSnapshot) -> dict[str, RolloutMemory]:
    """Return what is known of each rollout, by identity: of this process, or else of its status and its last valid
    spec.
    """
    return {member.identity: _memory(member, snapshot) for member in snapshot.resources if takes_part(member)}


def _memory(member: Member, snapshot: FleetSnapshot) -> RolloutMemory:
    memory = snapshot.rollouts.get(member.identity, RolloutMemory())
    if memory.state is not None:
        return memory
    status, last = snapshot.status(member), snapshot.valid.get(member.identity)
    written = status.rollout if isinstance(status, InferenceModelStatus | EnsembleStatus) else None
    if written is not None:
        chosen = ChosenStrategy.restored(written.strategy, written.strategy_message)
        return replace(memory, state=from_status(written), chosen=chosen)
    if not isinstance(last, Member) or last.metadata.uid != member.metadata.uid:
        return memory
    revision = revision_of(last)
    return RolloutMemory(revisions={**memory.revisions, revision.name: last}, last=revision)
