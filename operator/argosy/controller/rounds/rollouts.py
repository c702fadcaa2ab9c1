"""What the operator knows of rollouts: of its own rounds, and of the ControllerRevisions that another process wrote.

It is kept for all pools together, so that a member that moves to another pool takes its rollout along.
"""

from collections.abc import Iterable, Iterator

from argosy.api import Member, Resource
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.planning.rollouts.member import takes_part
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.planning.rollouts.rounds.rollouts import Rollouts


class RolloutMemories:
    """The memory of each member's rollout, by identity."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._of: dict[str, RolloutMemory] = {}
        self._uids: dict[str, str] = {}

    def of(self, members: Iterable[Resource]) -> dict[str, RolloutMemory]:
        """Return what is known of the members' rollouts. The specs of former revisions are read once.

        A resource that was deleted and created again has nothing of the former one's.
        """
        taking_part = [member for member in members if takes_part(member)]
        for member in taking_part:
            if member.identity not in self._of or self._uids.get(member.identity) != member.metadata.uid:
                self._uids[member.identity] = member.metadata.uid
                self._of[member.identity] = RolloutMemory(revisions=dict(self._restored(member)))
        return {member.identity: self._of[member.identity] for member in taking_part}

    def after(self, rollouts: Rollouts) -> None:
        """Store the rollouts of a round, and forget those of resources that are gone."""
        self._of.update(rollouts.memory)
        for identity in [identity for identity in self._of if not self._store.declares(identity)]:
            del self._of[identity]
            self._uids.pop(identity, None)

    def _restored(self, member: Member) -> Iterator[tuple[str, Member]]:
        """Yield the specs that another process recorded, by the name of their revision, the newest last."""
        for revision in self._store.recorded(member.metadata.uid):
            resource = parsed_body(revision.body).newest
            if isinstance(resource, Member):
                yield revision.name, resource
