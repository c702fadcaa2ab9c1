"""The basis of a plan: a layout of some nodes with all of the last plan that stays on them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from argosy.planning.facts import Group, PoolFacts
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server, Topology
from argosy.planning.packing.layout.limits import Limits
from argosy.planning.packing.nearby.spare import Seat
from argosy.planning.packing.servers import server_plans
from argosy.planning.plan import Placement, PoolPlan, ServerPlan


@dataclass(frozen=True, slots=True)
class Basis:
    """A pool and its last plan, of which all stays but the `changed` groups. `limits`: those of changed groups."""

    facts: PoolFacts
    plan: PoolPlan
    changed: frozenset[str]
    limits: Mapping[str, Limits]

    @classmethod
    def of(cls, facts: PoolFacts, plan: PoolPlan, changed: frozenset[str]) -> "Basis":
        """Return what stays of a plan."""
        spread = tuple(group for group in facts.groups if group.name in changed and group.spread_required)
        limits = Topology.of(replace(facts, groups=spread)).limits if spread else {}
        return cls(facts, plan, changed, limits)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The changed groups that there still are, by name."""
        changed = (group for group in self.facts.groups if group.name in self.changed)
        return tuple(sorted(changed, key=lambda group: group.name))

    def nodes(self) -> frozenset[str]:
        """Return the nodes on which the changed groups are, by the plan or by now."""
        models = {demand.model for group in self.groups for demand in group.demands}
        planned = {server.name: server for server in self.plan.servers}
        now = {server.node for server in self.facts.current if not models.isdisjoint(server.placed)}
        gone = {server.node for server in self.facts.current if server.name not in planned}
        hosts = (server for server in self.plan.servers if not self.changed.isdisjoint(server.groups))
        left = {server.node for server in hosts}
        return frozenset(now | gone | left)

    def layout(self, nodes: Collection[str]) -> Layout | None:
        """Return the layout of these nodes; None where something on them is not as it would be planned."""
        servers = [server for server in self.plan.servers if server.node in nodes]
        names = self.changed.union(*(server.groups for server in servers))
        groups = {group.name: group for group in self.facts.groups if group.name in names}
        empty = Layout.empty(self._topology(nodes, groups)).without_leaving
        servers_before = [(Server(server.name, server.node), self._placed(server, groups)) for server in servers]
        if any(server.node not in empty.unallocated for server, placed in servers_before if placed):
            return None
        layout = empty.with_servers((server, placed) for server, placed in servers_before if placed)
        return layout if self._is_as_planned(layout, servers) else None

    def _topology(self, nodes: Collection[str], groups: Mapping[str, Group]) -> Topology:
        facts = self.facts.part(nodes, list(groups.values()))
        return replace(Topology.of(facts), cpu_only=False, limits=self.limits)

    def _placed(self, server: ServerPlan, groups: Mapping[str, Group]) -> tuple[PlacedReplica, ...]:
        by_group: dict[str, dict[str, tuple[int, ...]]] = {}
        for placement in self._unchanged(server):
            by_group.setdefault(placement.group, {})[placement.model] = placement.gpus
        return tuple(
            PlacedReplica(Replica(groups[name], 0), tuple(gpus[demand.model] for demand in groups[name].demands))
            for name, gpus in sorted(by_group.items())
        )

    def _unchanged(self, server: ServerPlan) -> tuple[Placement, ...]:
        return tuple(placement for placement in server.placements if placement.group not in self.changed)

    def _is_as_planned(self, layout: Layout, servers: Iterable[ServerPlan]) -> bool:
        """Return whether a layout's servers would be planned as they are: what runs with less than it asks for, or
        where it may not, waits for more.
        """
        again = {server.name: server.placements for server in server_plans(layout)}
        return all(again.get(server.name, ()) == self._unchanged(server) for server in servers)

    def seats(self, layout: Layout) -> Iterator[Seat]:
        """Yield what models take on nodes that a layout has not."""
        for server in self.plan.servers:
            if server.node not in layout.unallocated:
                for one in server.placements:
                    yield Seat(server.node, one.gpus, one.memory, one.compute, one.exclusive)
