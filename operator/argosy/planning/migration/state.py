"""One pool as its migration is decided on: the plan, what stands there, and where they differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.api.values.identity import PoolKey
from argosy.planning.demand.members import Members
from argosy.planning.facts import CurrentServer, Node
from argosy.planning.migration.forms import Form
from argosy.planning.migration.observed import Binding, Observed
from argosy.planning.plan import PoolPlan, ServerPlan
from argosy.planning.topology.deployment import Machine


@dataclass(frozen=True, slots=True)
class Places:
    """Where the plan has what. `servers`: by model and ensemble. `names`: by server, its models and ensembles.

    `unschedulable`: the models, and the ensembles of models, of which a replica found no place.
    """

    servers: Mapping[str, tuple[str, ...]]
    names: Mapping[str, frozenset[str]]
    unschedulable: frozenset[str]

    @classmethod
    def of(cls, plan: PoolPlan, members: Members) -> "Places":
        """Return the places of one pool's plan. An ensemble is where all of its models are."""
        names = {server.name: {placement.model for placement in server.placements} for server in plan.servers}
        servers: dict[str, list[str]] = {}
        for server in plan.servers:
            for placement in server.placements:
                servers.setdefault(placement.model, []).append(server.name)
        for ensemble, models in members.runs.items():
            whole = [each for each in servers.get(models[0], ()) if names[each] >= set(models)] if models else []
            servers[ensemble] = whole
            for server_name in whole:
                names[server_name].add(ensemble)
        unplaced = {model for each in plan.unplaced for model in each.models}
        return cls(
            {name: tuple(found) for name, found in servers.items()},
            {server_name: frozenset(found) for server_name, found in names.items()},
            frozenset(unplaced | {name for name, models in members.runs.items() if unplaced & set(models)}),
        )


@dataclass(frozen=True, slots=True)
class PoolState:
    """`current` are the pool's servers as they are, `nodes` those that are up, both by name. `machine`: the node of the
    pool that suits large models best.

    `targets`: by planned server and name, what it would hold next if there were room for all of it.
    """

    plan: PoolPlan
    members: Members
    places: Places
    observed: Observed
    current: Mapping[str, CurrentServer]
    nodes: Mapping[str, Node]
    targets: Mapping[str, Mapping[str, Form]] = field(default_factory=dict)
    machine: Machine | None = None

    @classmethod
    def without_plan(cls, pool: PoolKey, members: Members) -> "PoolState":
        """Return a pool that takes no part: nothing is planned, and nothing stands there."""
        plan = PoolPlan(pool, (), (), 0, 0, 0)
        return cls(plan, members, Places.of(plan, members), Observed(), {}, {})

    def keeps_its_gpus(self, server: ServerPlan) -> bool:
        """Return whether a planned server runs as planned: with other GPUs, or on another node, it starts anew."""
        now = self.current.get(server.name)
        return now is not None and (now.node, now.gpus) == (server.node, server.gpus)

    def starts_anew(self, name: str) -> bool:
        """Return whether a planned server runs, and is to run with other GPUs or on another node."""
        return name in self.current and not all(self.keeps_its_gpus(s) for s in self.plan.servers if s.name == name)

    def draining_servers(self) -> list[CurrentServer]:
        """Return the servers that run on nodes that are up, and are not planned."""
        planned = {server.name for server in self.plan.servers}
        return [each for each in self.current.values() if each.name not in planned and each.node in self.nodes]

    def surplus(self) -> dict[str, set[str]]:
        """By server, what is loaded there and not planned. A server that starts anew loses it anyway."""
        found = {server.name: set(self.observed.held(server.name)) for server in self.draining_servers()}
        for server in self.plan.servers:
            if self.keeps_its_gpus(server):
                found[server.name] = set(self.observed.held(server.name)) - self.places.names[server.name]
        return {server: names for server, names in found.items() if names}


@dataclass(frozen=True, slots=True)
class Note:
    """What a status says of a model on a server; `stuck`: waiting does not change it."""

    message: str
    stuck: bool = False


@dataclass(slots=True)
class Migration:
    """What is decided for one round.

    By server: `kept`, what stays loaded beside the planned; `unrouted`, what is not to be reached; `deferred`, what of
    the planned is not to be loaded yet; `former`, what keeps the form it has; `declared_only`, what is loaded without
    versions that served before. `draining`: the servers that are not
    planned and stay; `waiting`: planned ones that wait for GPUs. `drain_since`: when each binding that drains is or was
    taken from the routes. `wake`: when the next step is due.
    """

    kept: dict[str, set[str]] = field(default_factory=dict)
    unrouted: dict[str, set[str]] = field(default_factory=dict)
    deferred: dict[str, set[str]] = field(default_factory=dict)
    former: dict[str, set[str]] = field(default_factory=dict)
    declared_only: dict[str, set[str]] = field(default_factory=dict)
    draining: tuple[ServerPlan, ...] = ()
    waiting: frozenset[str] = frozenset()
    drain_since: dict[Binding, datetime] = field(default_factory=dict)
    wake: datetime | None = None
    notes: dict[Binding, Note] = field(default_factory=dict)
