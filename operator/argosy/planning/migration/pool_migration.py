"""One round of a pool's migration: from what runs to what is planned, in steps that keep serving."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from argosy.planning.demand.members import Members
from argosy.planning.facts import Node, PoolFacts
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.disruption import Disruption, limited
from argosy.planning.migration.migrate import DRAIN_PERIOD, migrate
from argosy.planning.migration.next_step import ServerStep, server_steps
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ReloadKeys
from argosy.planning.migration.state import Migration, Note, PoolState
from argosy.planning.plan import PoolPlan


@dataclass(frozen=True, slots=True)
class PoolMigration:
    """The next `steps` of a pool's servers, with the `state` that they are decided from.

    `notes` say why a model or ensemble waits on a server. `wake`: when the next step is due though nothing changes.
    `disruption`: the servers that the round would have stopped, where the pool does not allow so many.
    """

    state: PoolState
    steps: tuple[ServerStep, ...] = ()
    notes: Mapping[Binding, Note] = field(default_factory=dict)
    wake: datetime | None = None
    disruption: Disruption | None = None

    @classmethod
    def of(
        cls,
        plan: PoolPlan,
        facts: PoolFacts,
        members: Members,
        observed: Observed,
        nodes: Sequence[Node],
        keys: ReloadKeys,
        now: datetime,
        drain_period: timedelta = DRAIN_PERIOD,
    ) -> "PoolMigration":
        """Return the next step of one pool. A suspended pool keeps nothing that is not planned."""
        state = PoolState.of(plan, facts, members, observed, nodes, keys)
        if facts.suspended:
            return cls(state, server_steps(state, Migration(), keys))
        migration = migrate(state, observed.drain_since, now, drain_period)
        disruption = limited(state, migration, facts.max_disruption)
        return cls(state, server_steps(state, migration, keys), migration.notes, migration.wake, disruption)
