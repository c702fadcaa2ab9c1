"""Trials: a part of a pool, planned again with a change and one replica more.

All that is on a node of the part is planned with it, and nothing else. What has a place in a part has one in the pool:
what is on other nodes stays there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Demand, Device, Group, Node, PoolFacts, PreemptibleGpu
from argosy.planning.nodes.reservations import reserved
from argosy.planning.packing.capacity import is_cpu_only
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.plan import PoolPlan, ServerPlan, replica_counts

_OVERHEAD = 8
"""What a trial costs in addition to the replicas that it plans."""
Seat = tuple[str, str]
"""A server, and a group that it has a replica of."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a pool with one replica more of a group, of which it had `had`."""

    facts: PoolFacts
    group: str
    had: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part: the node of the further replica, and how many replicas other groups have lost."""

    node: str
    lost: Mapping[str, int]


@dataclass(frozen=True)
class Trial:
    """A pool once its plan is carried out. `facts` has what runs then, with the GPUs that other pools have withheld.

    `budget`: the replicas that all trials together may plan; `largest`: the most that one may; `protected`: GPUs of
    other pools that higher priorities would have if those pools let them.
    """

    facts: PoolFacts
    servers: tuple[ServerPlan, ...]
    budget: Budget
    largest: int
    protected: Mapping[Device, PreemptibleGpu] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        facts: PoolFacts,
        plan: PoolPlan,
        others: Mapping[PoolKey, Sequence[CurrentServer]],
        budget: Budget,
        largest: int,
        protected: Mapping[Device, PreemptibleGpu] | None = None,
    ) -> "Trial":
        """Return the trial of one pool; `others`: the servers of the other pools' plans."""
        nodes = tuple(node for node in reserved(facts.nodes, plan.current, others) if node.ready)
        after = replace(facts, nodes=nodes, current=plan.current, waiting=(), min_servers=0, loaded={})
        return cls(after, plan.servers, budget, largest, protected or {})

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The nodes that take new replicas, by name."""
        return {node.name: node for node in self.facts.nodes if node.schedulable}

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The groups by name."""
        return {group.name: group for group in self.facts.groups}

    @cached_property
    def demands(self) -> dict[str, Demand]:
        """The demands of all groups by model."""
        return {demand.model: demand for group in self.facts.groups for demand in group.demands}

    @cached_property
    def on_node(self) -> dict[str, list[ServerPlan]]:
        """The servers of each node."""
        result: dict[str, list[ServerPlan]] = {}
        for server in self.servers:
            result.setdefault(server.node, []).append(server)
        return result

    @cached_property
    def placed(self) -> Counter[str]:
        """The replicas of each group that have a place."""
        return replica_counts(self.servers)

    def part(
        self, group: Group, nodes: Iterable[str], without: Collection[Seat] = (), further: Sequence[Node] = ()
    ) -> Part:
        """Return the part of these nodes, with `further` ones, a replica more of `group`, and none of those `without`.

        A group that is spread by a required domain is tried in the whole pool.
        """
        spread = group.replicas > 1 and any(one.required for one in group.spread)
        names = {node.name for node in self.facts.nodes} if spread else set(nodes)
        servers = [server for name in sorted(names) for server in self.on_node.get(name, ())]
        here = Counter(name for server, name in _seats(servers) if (server, name) not in without)
        had = here[group.name]
        minimum = None if self.placed[group.name] < group.needed else had
        desired = replace(group, replicas=max(group.replicas, had + 1) if spread else had + 1, minimum=minimum)
        others = [self._of_part(name, count) for name, count in sorted(here.items()) if name != group.name]
        most = self.facts.max_servers
        return Part(
            replace(
                self.facts,
                nodes=(*(node for node in self.facts.nodes if node.name in names), *further),
                groups=tuple(sorted((*others, desired), key=lambda one: one.name)),
                current=tuple(self._without(server, without) for server in servers),
                taken=self.facts.taken | {server.name for server in self.servers},
                max_servers=None if most is None else max(0, most - len(self.servers)) + len(servers),
            ),
            group.name,
            had,
        )

    def _of_part(self, name: str, count: int) -> Group:
        """Return a group with so many replicas, of which as many are optional as of all that have a place."""
        group = self.groups[name]
        optional = min(count, max(0, self.placed[name] - group.needed))
        return replace(group, replicas=count, minimum=count - optional)

    def _without(self, server: ServerPlan, without: Collection[Seat]) -> CurrentServer:
        gone = {one.model for one in server.placements if (server.name, one.group) in without}
        current = server.current
        return replace(current, placed={model: gpus for model, gpus in current.placed.items() if model not in gone})

    def plan(self, part: Part) -> PoolPlan | None:
        """Return the plan of a part; None where that is too much, or CPUs would stand in for GPUs that there are."""
        cost = _OVERHEAD + sum(group.replicas for group in part.facts.groups)
        if cost > min(self.budget.left, self.largest) or is_cpu_only(part.facts) != is_cpu_only(self.facts):
            return None
        self.budget.left -= cost
        return pack_by_priority([part.facts]).plan.pools[0]

    def outcome(self, part: Part) -> Outcome | None:
        """Plan a part. Return what came of it; None if the further replica has no place, or it is not planned."""
        plan = self.plan(part)
        after = replica_counts(plan.servers) if plan is not None else Counter[str]()
        if plan is None or after[part.group] <= part.had:
            return None
        before = {server.name for server in part.facts.current if _hosts(server, part)}
        hosts = (one for one in plan.servers if any(placement.group == part.group for placement in one.placements))
        node = next((one.node for one in hosts if one.name not in before), "")
        lost = {one.name: one.replicas - after[one.name] for one in part.facts.groups if one.name != part.group}
        return Outcome(node, {name: count for name, count in lost.items() if count > 0})

    def fits(self, part: Part) -> str:
        """Return the node on which the further replica has a place while all others keep theirs; empty if there is
        none.
        """
        outcome = self.outcome(part)
        return outcome.node if outcome is not None and not outcome.lost else ""


def _hosts(server: CurrentServer, part: Part) -> bool:
    group = next(one for one in part.facts.groups if one.name == part.group)
    return any(demand.model in server.placed for demand in group.demands)


def _seats(servers: Iterable[ServerPlan]) -> set[Seat]:
    return {(server.name, placement.group) for server in servers for placement in server.placements}
