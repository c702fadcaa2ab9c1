"""The rollouts of a fleet after a round, and the specs that are acted upon by them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.api import Member, Resource
from argosy.planning.rollouts.member import MemberRollout
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.planning.rollouts.strategy import ChosenStrategy
from argosy.planning.validation.accept import Accepted, Check, defer


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The rollouts of a round, by the member's identity."""

    members: Mapping[str, MemberRollout] = field(default_factory=dict)

    @property
    def memory(self) -> dict[str, RolloutMemory]:
        """What the next round is to know."""
        return {
            name: RolloutMemory(
                member.state,
                member.records,
                member.action.weights,
                chosen=member.chosen,
                former_failures=member.former_failures,
            )
            for name, member in self.members.items()
        }

    def with_strategies(self, chosen: Mapping[str, ChosenStrategy]) -> "Rollouts":
        """Return the rollouts with the strategies that were `chosen` now, by identity; the others have none."""
        return Rollouts({name: replace(member, chosen=chosen.get(name)) for name, member in self.members.items()})

    def declared(self, resources: Iterable[Resource]) -> Iterator[Resource]:
        """Yield what is acted upon as it was declared: a candidate's spec in place of the stable one."""
        for resource in resources:
            member = self.members.get(resource.identity)
            yield member.declared if member is not None else resource

    @property
    def specs(self) -> Iterator[Member]:
        """The specs that servers may have loaded: of stable revisions and of candidates."""
        for member in self.members.values():
            yield member.stable
            if member.candidate is not None:
                yield member.candidate

    @property
    def wake(self) -> datetime | None:
        """When one of them is to be advanced though nothing changes."""
        wakes = (member.action.wake for member in self.members.values())
        return min((wake for wake in wakes if wake is not None), default=None)

    def acted_upon(self, accepted: Accepted, last: Mapping[str, Resource], check: Check) -> Accepted:
        """Return what is accepted, with the stable spec of each member whose candidate is not promoted, and with the
        revision of each ensemble that has one.
        """
        acted: dict[str, Resource] = {
            name: member.acted_upon for name, member in self.members.items() if member.acted_upon is not member.declared
        }
        return defer(accepted, acted, {**last, **acted}, check) if acted else accepted
