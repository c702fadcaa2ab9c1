"""Why each replica is where it is: the first rule that decided it, and all that it had to keep to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from argosy.api.values.identity import PoolKey
from argosy.planning.amounts import gib, listed, percent, quantity
from argosy.planning.explanation.difference import Running
from argosy.planning.explanation.remedies.devices import PoolDevices, shared_demand
from argosy.planning.explanation.remedies.trial import Trial
from argosy.planning.facts import CurrentServer, Group, Node, PoolFacts
from argosy.planning.nodes.device_names import device_of, devices_of
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.plan import FleetPlan, PoolPlan, ServerPlan
from argosy.planning.spreading import HOSTNAME

_NAMED = 4
"""Nodes or groups that a reason names."""


class Rule(StrEnum):
    """What decided where a replica is, the strongest first."""

    MISPLACED = "Misplaced"
    PINNED = "Pinned"
    STAYS = "Stays"
    ONLY_NODES = "OnlyNodes"
    SHARES_SERVER = "SharesServer"
    FULL_GPUS = "FullGpus"
    SPREAD = "Spread"
    FEWEST_GPUS = "FewestGpus"


@dataclass(frozen=True, slots=True)
class ExplainedReplica:
    """One replica of a group, where it is and why. `devices`: what its GPUs are called. `reasons`: sentences by rule,
    of which the first one decided.
    """

    pool: PoolKey
    group: str
    models: tuple[str, ...]
    server: str
    node: str
    gpus: tuple[int, ...]
    devices: str
    reasons: tuple[tuple[Rule, str], ...]


def explained_replicas(
    facts: Sequence[PoolFacts], plan: FleetPlan, running: Running | None = None
) -> list[ExplainedReplica]:
    """Return every placed replica, by pool and group. `running`: the servers that the plan started from."""
    by_pool = {pool.pool: pool for pool in facts}
    current = {pool.pool: pool.current for pool in plan.pools}
    result = list[ExplainedReplica]()
    for pool in plan.pools:
        others = {key: servers for key, servers in current.items() if key != pool.pool}
        before = {server.name: server for server in (running or {}).get(pool.pool, ())}
        result += _PoolReplicas(by_pool[pool.pool], pool, others, before).every()
    return result


class _PoolReplicas:
    """The replicas of one pool; what several of them need is derived once."""

    def __init__(
        self,
        facts: PoolFacts,
        plan: PoolPlan,
        others: Mapping[PoolKey, Sequence[CurrentServer]],
        before: Mapping[str, CurrentServer],
    ) -> None:
        self._plan, self._before = plan, before
        self._trial = Trial.of(facts, plan, others, Budget(0), largest=0)
        self._devices = PoolDevices(self._trial)
        self._nodes = {node.name: node for node in facts.nodes}
        self._hosts: dict[str, list[str]] = {}
        for server in plan.servers:
            for name in server.groups:
                self._hosts.setdefault(name, []).append(server.node)

    def every(self) -> list[ExplainedReplica]:
        """Return all replicas, by group."""
        seats = [(name, server) for server in self._plan.servers for name in server.groups]
        return [self._explained(self._trial.groups[name], server) for name, server in sorted(seats, key=_order)]

    def _explained(self, group: Group, server: ServerPlan) -> ExplainedReplica:
        mine = [placement for placement in server.placements if placement.group == group.name]
        gpus = tuple(sorted({gpu for placement in mine for gpu in placement.gpus}))
        models = tuple(placement.model for placement in mine)
        devices = devices_of(self._nodes[server.node], gpus)
        reasons = tuple(self._reasons(group, server, gpus, devices, misplaced=any(one.misplaced for one in mine)))
        return ExplainedReplica(self._plan.pool, group.name, models, server.name, server.node, gpus, devices, reasons)

    def _reasons(
        self, group: Group, server: ServerPlan, gpus: tuple[int, ...], devices: str, *, misplaced: bool
    ) -> Iterator[tuple[Rule, str]]:
        if misplaced:
            yield Rule.MISPLACED, "it may not be here, and stays for lack of another place"
        yield from self._of_requirements(group, Rule.PINNED)
        if self._stays(group, server):
            yield Rule.STAYS, f"it ran on server {server.name} before, and nothing has to move"
        yield from self._of_requirements(group, Rule.ONLY_NODES)
        if len(group.demands) > 1:
            models = listed((demand.model for demand in group.demands), _NAMED, ", ")
            yield Rule.SHARES_SERVER, f"one server has all of {models}, by an ensemble or an affinity"
        yield from _of_full_gpus(group, devices)
        yield from self._of_spread(group, server)
        yield Rule.FEWEST_GPUS, self._of_gpus(group, server, gpus, devices)

    def _stays(self, group: Group, server: ServerPlan) -> bool:
        before = self._before.get(server.name)
        placed = before.placed if before is not None else {}
        now = server.current.placed
        return all(placed.get(demand.model) == now.get(demand.model) for demand in group.demands)

    def _of_requirements(self, group: Group, rule: Rule) -> Iterator[tuple[Rule, str]]:
        """Yield which nodes a group may have: a pin to one of them, or what some of them have."""
        nodes = list(self._trial.nodes.values())
        able = [node for node in nodes if group.runs_on(node)]
        pin = next((value for d in group.demands for key, value in d.requires.labels if key == HOSTNAME), "")
        if len(able) == len(nodes) or bool(pin) != (rule is Rule.PINNED):
            return
        if pin:
            yield Rule.PINNED, f"its nodeSelector names node {pin}"
            return
        names = listed((node.name for node in able), _NAMED, ", ")
        count = f"{len(able)} of {quantity(len(nodes), 'node')}"
        yield Rule.ONLY_NODES, f"{count} will do ({names}): {listed(_requirements(group, nodes), _NAMED, ', ')}"

    def _of_spread(self, group: Group, server: ServerPlan) -> Iterator[tuple[Rule, str]]:
        others = list(self._hosts[group.name])
        others.remove(server.node)
        if others:
            nodes = listed(sorted(set(others)), _NAMED, ", ")
            required = listed((spread.key for spread in group.spread if spread.required), _NAMED, ", ")
            how = f"by {required}" if required else "on other nodes where there are any"
            yield Rule.SPREAD, f"replicas are apart, {how}; its others are on {nodes}"
        if group.separated:
            apart = listed(sorted(group.not_on_server | group.not_on_node), _NAMED, ", ")
            yield Rule.SPREAD, f"antiAffinity keeps it apart from {apart}"

    def _of_gpus(self, group: Group, server: ServerPlan, gpus: tuple[int, ...], devices: str) -> str:
        if not gpus:
            return "it needs no GPU, and runs on the CPU of its server"
        uses = [use for gpu in gpus if (use := self._devices.devices.get((server.node, gpu))) is not None]
        others = sorted({name for use in uses for name in use.groups} - {group.name})
        if others:
            return f"it fills {devices} with {listed(others, _NAMED, ', ')}, which takes no further GPU"
        demand = shared_demand(group)
        if demand is None:
            return f"it has {devices} alone"
        need = demand.footprint
        used = [use for use in self._devices.devices.values() if use.on and use not in uses and group.runs_on(use.node)]
        free = [use for use in used if use.left.takes(need) and group.name not in use.groups]
        if free:
            where = f"{device_of(free[0].node, free[0].index)} of node {free[0].node.name}"
            return f"it has {devices} alone; {where} would have space for it, and is that of another server"
        amount = gib(need.settled) + (f" and {percent(need.compute)} of compute" if need.compute else "")
        return f"it has {devices} alone: no other GPU in use has {amount} left for it"


def _order(seat: tuple[str, ServerPlan]) -> tuple[str, str]:
    return seat[0], seat[1].name


def _of_full_gpus(group: Group, devices: str) -> Iterator[tuple[Rule, str]]:
    for demand in group.demands:
        need = demand.footprint
        if need.exclusive:
            joined = " that NVLink joins" if need.gpus > 1 else ""
            why = ", since it declares no footprint" if need.assumed else ""
            yield Rule.FULL_GPUS, f"{demand.model} takes {quantity(need.gpus, 'GPU')}{joined} for itself{why}"
        elif need.shares > 1:
            yield Rule.FULL_GPUS, f"instances of {demand.model} are divided among {devices}"


def _requirements(group: Group, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield what keeps a group from some of the nodes, in words."""
    for demand in group.demands:
        if any(not node.meets(demand.requires) for node in nodes):
            labels = [f"{key}={value}" for key, value in demand.requires.labels]
            yield from ([f"nodeSelector {' '.join(labels)}"] if labels else [])
            yield from ([demand.requires.gpus_text] if demand.requires.gpus_text else [])
        if any(not demand.has_engine_for(node) for node in nodes):
            yield f"{demand.model} has engines for {listed(sorted(demand.architectures or ()), _NAMED, ', ')}"
