"""The state of one pool that its migration is decided on: the plan, what runs, and where they differ."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from argosy.api.pool.packing import Preemption
from argosy.api.values.identity import PoolKey
from argosy.api.values.reuse import RoundCache
from argosy.planning.demand.members import Members
from argosy.planning.facts import CurrentServer, Node, PoolFacts
from argosy.planning.migration.bindings import Binding, PlannedBindings
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ModelRevision, ReloadKeys
from argosy.planning.migration.versions import outdated_bindings, target_revisions
from argosy.planning.migration.views.server_views import ServerViews
from argosy.planning.plan import PoolPlan, ServerPlan
from argosy.planning.topology.deployment import Machine


@dataclass(frozen=True, slots=True)
class _Goal:
    """What a server would load next with enough memory, and which of it is loaded in another revision."""

    targets: Mapping[str, ModelRevision]
    outdated: frozenset[Binding]

    @classmethod
    def of(
        cls, server: ServerPlan, keys: ReloadKeys, members: Members, bindings: PlannedBindings, observed: Observed
    ) -> "_Goal":
        """Return the goal of a planned server."""
        return cls(
            target_revisions(server, members, bindings, observed, keys),
            outdated_bindings((server,), members, bindings, observed, keys),
        )


@dataclass(frozen=True, slots=True)
class PoolState:
    """The plan and the observed state of a pool. `current`: its running servers; `nodes`: ready nodes; both by name.

    `machine`: the node of the pool that suits large models best. `targets`: the revisions that each planned server
    would load next with enough memory, by server and name. `priorities`: those of models, by their
    groups; `preempts`: whether what must serve leaves for a higher one; `headroom`: thousandths of memory kept free.
    `views`: what each server follows from alone.
    """

    plan: PoolPlan
    members: Members
    bindings: PlannedBindings
    observed: Observed
    current: Mapping[str, CurrentServer]
    nodes: Mapping[str, Node]
    targets: Mapping[str, Mapping[str, ModelRevision]] = field(default_factory=dict)
    machine: Machine | None = None
    priorities: Mapping[str, int] = field(default_factory=dict)
    preempts: bool = False
    headroom: int = 0
    views: ServerViews | None = None

    @classmethod
    def without_plan(cls, pool: PoolKey, members: Members) -> "PoolState":
        """Return the state of a pool that takes no part: nothing is planned, and nothing runs."""
        plan = PoolPlan(pool, (), (), 0, 0, 0)
        return cls(plan, members, PlannedBindings.of(plan, members), Observed(), {}, {})

    @classmethod
    def of(
        cls,
        plan: PoolPlan,
        facts: PoolFacts,
        members: Members,
        observed: Observed,
        nodes: Iterable[Node],
        keys: ReloadKeys,
        cache: RoundCache | None = None,
    ) -> "PoolState":
        """Return the state of one pool with its plan; `nodes` are those of all pools."""
        bindings = PlannedBindings.of(plan, members)
        views = ServerViews(members, bindings, observed, facts.runtime, cache or RoundCache())

        def goal(server: ServerPlan) -> _Goal:
            return views.value("goals", server, None, partial(_Goal.of, server, keys))

        goals = {server.name: goal(server) for server in plan.servers}
        outdated = frozenset(binding for of_server in goals.values() for binding in of_server.outdated)
        return cls(
            plan=plan,
            members=members,
            bindings=bindings,
            observed=replace(observed, outdated=outdated),
            current={server.name: server for server in facts.current},
            nodes={node.name: node for node in nodes if node.ready},
            targets={name: of_server.targets for name, of_server in goals.items()},
            machine=Machine.best_of(facts.nodes, facts.headroom),
            priorities={demand.model: group.priority for group in facts.groups for demand in group.demands},
            preempts=facts.preemption is Preemption.LOWER_PRIORITY,
            headroom=facts.headroom,
            views=views,
        )

    def priority(self, models: Iterable[str]) -> int:
        """Return the priority of what runs these models."""
        return max((self.priorities.get(model, 0) for model in models), default=0)

    def keeps_its_gpus(self, server: ServerPlan) -> bool:
        """Return whether a planned server runs as planned: with other GPUs, or on another node, it restarts."""
        now = self.current.get(server.name)
        return now is not None and (now.node, now.gpus) == (server.node, server.gpus)

    def restarts(self, name: str) -> bool:
        """Return whether a planned server runs, and is to run with other GPUs or on another node."""
        return name in self.current and not all(self.keeps_its_gpus(s) for s in self.plan.servers if s.name == name)

    def draining_servers(self) -> list[CurrentServer]:
        """Return the servers that run on nodes that are up, and are not planned."""
        planned = {server.name for server in self.plan.servers}
        return [server for server in self.current.values() if server.name not in planned and server.node in self.nodes]

    def surplus(self) -> dict[str, set[str]]:
        """Return what is loaded and not planned, by server. A server that restarts loses it anyway."""
        surplus = {server.name: set(self.observed.loaded_on(server.name)) for server in self.draining_servers()}
        for server in self.plan.servers:
            if self.keeps_its_gpus(server):
                surplus[server.name] = set(self.observed.loaded_on(server.name)) - self.bindings.names[server.name]
        return {server: names for server, names in surplus.items() if names}


@dataclass(frozen=True, slots=True)
class Note:
    """The message of a status on a model on a server; `stuck`: waiting does not change it."""

    message: str
    stuck: bool = False


@dataclass(slots=True)
class Migration:
    """The decisions of one round.

    Names by server: `retained`, loaded though no longer planned; `unrouted`, without requests; `deferred`, planned but
    not loaded yet; `former`, kept at the loaded revision; `unloading`, kept at the versions of it that stay;
    `declared_only`, loaded without former versions. `draining`:
    servers that are no longer planned and still run; `waiting`: planned ones that wait for GPUs. `drain_since`: when
    each draining binding was removed from the routes. `wake`: when the next step is due.
    """

    retained: dict[str, set[str]] = field(default_factory=dict)
    unrouted: dict[str, set[str]] = field(default_factory=dict)
    deferred: dict[str, set[str]] = field(default_factory=dict)
    former: dict[str, set[str]] = field(default_factory=dict)
    unloading: dict[str, set[str]] = field(default_factory=dict)
    declared_only: dict[str, set[str]] = field(default_factory=dict)
    draining: tuple[ServerPlan, ...] = ()
    waiting: frozenset[str] = frozenset()
    drain_since: dict[Binding, datetime] = field(default_factory=dict)
    wake: datetime | None = None
    notes: dict[Binding, Note] = field(default_factory=dict)

    def concerns(self, server: str) -> bool:
        """Return whether something on a server waits, stays longer than planned, or leaves."""
        by_server = (self.retained, self.unrouted, self.deferred, self.former, self.unloading, self.declared_only)
        return any(server in names for names in by_server)
