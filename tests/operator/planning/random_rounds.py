"""Rounds of random fleets: pools of every kind of node and group, of which a few groups differ from round to round."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from argosy.api.pool.packing import Preemption
from argosy.api.values.capability import CapabilityRange
from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Demand, DraDevice, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.slices import dra_index, first_index
from argosy.planning.plan import FleetPlan, PoolPlan
from argosy.planning.requirements import NOTHING, NodeRequirements
from argosy.planning.spreading import DEFAULT_SPREAD, HOSTNAME, ZONE, Spread

GIB = 1 << 30
_KINDS = (("L4", "8.9", 24), ("A100", "8.0", 40), ("H100", "9.0", 80))
_ROLES = {"disk": ("ssd", "hdd")}


class Rounds:
    """A fleet that changes. `facts`: those of the present round, one of each pool."""

    def __init__(self, seed: int, groups_per_gpu: float) -> None:
        self.numbers = random.Random(seed)
        self._count = 0
        nodes = [self._node(at) for at in range(self.numbers.randint(3, 14))]
        shared = self.numbers.random() < 0.4
        names = ["a", "b"][: self.numbers.choice((1, 1, 2))]
        self.facts = tuple(
            PoolFacts(
                PoolKey(f"default/{name}"),
                tuple(nodes if shared else nodes[at :: len(names)]),
                (),
                headroom=self.numbers.choice((0, 200)),
                max_gpus_per_server=self.numbers.choice((None, None, None, 2, 4)),
                max_servers=self.numbers.choice((None,) * 9 + (6,)),
                min_servers=self.numbers.choice((0, 0, 0, 1, 2)),
                preemption=self.numbers.choice(tuple(Preemption)),
                placed_bytes=95,
                staying_bytes=100,
            )
            for at, name in enumerate(names)
        )
        gpus = sum(len(node.gpus) for node in nodes)
        for _ in range(int(gpus * groups_per_gpu)):
            self._change(self._add)

    def step(self, plan: FleetPlan) -> None:
        """Carry out a plan, most of the time, and change a few groups, or something else."""
        plans = {one.pool: one for one in plan.pools}
        self.facts = tuple(self._carried_out(facts, plans[facts.pool]) for facts in self.facts)
        if self.numbers.random() < 0.05:
            self._change(self._other_node)
        changes = (self._add, self._remove, self._resize, self._resize, self._scale, self._other, self._rollout)
        for _ in range(self.numbers.choice((0, 1, 1, 1, 2, 3))):
            self._change(self.numbers.choice(changes))

    def shuffled(self) -> list[PoolFacts]:
        """Return the facts in another order of pools, nodes, groups and servers."""
        return self._shuffle(
            replace(
                facts,
                nodes=tuple(self._shuffle(facts.nodes)),
                groups=tuple(self._shuffle(facts.groups)),
                current=tuple(self._shuffle(facts.current)),
            )
            for facts in self.facts
        )

    def _shuffle(self, items: Iterable[Any]) -> list[Any]:
        every = list(items)
        return self.numbers.sample(every, len(every))

    def _change(self, how: Callable[[PoolFacts], PoolFacts]) -> None:
        at = self.numbers.randrange(len(self.facts))
        pools = list(self.facts)
        pools[at] = how(pools[at])
        self.facts = tuple(pools)

    def _carried_out(self, facts: PoolFacts, plan: PoolPlan) -> PoolFacts:
        current = {server.name: server for server in plan.current}
        if self.numbers.random() < 0.15:  # some servers are still as they were
            for server in facts.current:
                if self.numbers.random() < 0.3:
                    current[server.name] = server
        if self.numbers.random() < 0.1 and current:  # a server has ended
            current.pop(self.numbers.choice(sorted(current)))
        if self.numbers.random() < 0.1:  # what its models were placed with is not known
            current = {name: replace(server, needs={}) for name, server in current.items()}
        held, servers = set[tuple[str, int]](), list[CurrentServer]()
        for server in current.values():
            gpus = {(server.node, gpu) for gpu in server.gpus}
            if gpus.isdisjoint(held):
                held |= gpus
                servers.append(server)
        loaded = {server.name: frozenset(server.placed) for server in servers}
        return replace(facts, current=tuple(servers), loaded=loaded)

    def _node(self, at: int) -> Node:
        product, capability, memory = self.numbers.choice(_KINDS)
        count = self.numbers.choice((1, 2, 4, 8))
        gpus = [Gpu(index, memory * GIB) for index in range(count)]
        linked = tuple(
            frozenset(range(first, first + 2)) for first in range(0, count - 1, 2) if self.numbers.random() < 0.7
        )
        if self.numbers.random() < 0.15:
            first = first_index("1g.10gb", single=False) or 0
            gpus += [Gpu(first + slot, 10 * GIB, compute=142) for slot in range(3)]
        if self.numbers.random() < 0.15:
            gpus = [self._dra(slot, memory) for slot in range(count)]
            linked = ()
        if self.numbers.random() < 0.15:
            gpus[0] = replace(gpus[0], withheld_by="Pod n/x")
        labels = {ZONE: self.numbers.choice("xyz"), "disk": self.numbers.choice(_ROLES["disk"])}
        return Node(f"n{at:02}", tuple(gpus), product, capability, linked, labels)

    def _dra(self, slot: int, memory: int) -> Gpu:
        device = DraDevice("gpu.example.com", "p", f"gpu-{slot}", "gpu.example.com", f"uuid == '{slot}'", order=slot)
        return Gpu(dra_index(device.device_class, device.selector, part=False), memory * GIB, device=device)

    def _other_node(self, facts: PoolFacts) -> PoolFacts:
        """Return the facts in which a node is cordoned, lost or back, or is to be left by one GPU, or gone."""
        at, dice = self.numbers.randrange(len(facts.nodes)), self.numbers.random()
        node = facts.nodes[at]
        if dice < 0.4:
            node = replace(node, schedulable=not node.schedulable)
        elif dice < 0.6:
            node = replace(node, lost=not node.lost, schedulable=node.lost)
        elif dice < 0.8:
            gpu = replace(node.gpus[-1], leaving=not node.gpus[-1].leaving)
            node = replace(node, gpus=(*node.gpus[:-1], gpu))
        else:
            node = replace(node, ready=not node.ready)
        changed = (*facts.nodes[:at], node, *facts.nodes[at + 1 :])
        return replace(facts, nodes=changed)

    def _footprint(self) -> Footprint:
        dice = self.numbers.random()
        if dice < 0.1:
            return Footprint(self.numbers.randint(1, 20) * GIB, gpus=self.numbers.choice((1, 1, 2)))
        if dice < 0.15:
            return Footprint()
        if dice < 0.2:
            return Footprint(self.numbers.randint(1, 8) * GIB, 100, shares=2)
        size = self.numbers.choice((1, 2, 3, 5, 8, 13, 21, 34))
        return Footprint(size * GIB, self.numbers.choice((0, 50, 100, 300, 600)), assumed=self.numbers.random() < 0.05)

    def _requires(self) -> NodeRequirements:
        dice = self.numbers.random()
        if dice < 0.75:
            return NOTHING
        if dice < 0.85:
            return NodeRequirements(labels=(("disk", self.numbers.choice(_ROLES["disk"])),))
        if dice < 0.92:
            return NodeRequirements(products=frozenset({self.numbers.choice(_KINDS)[0]}))
        return NodeRequirements(capability=CapabilityRange.parse(">=8.9"))

    def _add(self, facts: PoolFacts) -> PoolFacts:
        self._count += 1
        name = f"g{self._count:03}"
        replicas = self.numbers.choice((1, 1, 1, 1, 2, 3))
        requires, models = self._requires(), self.numbers.choice((1, 1, 1, 2, 3))
        demands = tuple(
            Demand(f"{name}-m{at}", 1, self._footprint(), replicas, requires=requires) for at in range(models)
        )
        spread = self.numbers.choice(
            (DEFAULT_SPREAD,) * 6
            + ((Spread(HOSTNAME), Spread(ZONE, required=True)), (Spread(HOSTNAME, required=True), Spread(ZONE)))
        )
        group = Group(
            name,
            demands,
            replicas,
            self.numbers.choice((None, None, 1)),
            self.numbers.choice((0, 0, 0, 10, 100)),
            self.numbers.choice((0, 5, 10, 30)),
            spread=spread,
        )
        return self._apart(replace(facts, groups=(*facts.groups, group)), name)

    def _apart(self, facts: PoolFacts, name: str) -> PoolFacts:
        """Return the facts in which a group may be kept apart from another one."""
        if self.numbers.random() > 0.1 or len(facts.groups) < 2:
            return facts
        other = self.numbers.choice([group.name for group in facts.groups if group.name != name])
        field = self.numbers.choice(("not_on_server", "not_on_node"))
        pair = {name: other, other: name}
        return replace(
            facts,
            groups=tuple(
                replace(group, **{field: getattr(group, field) | {pair[group.name]}}) if group.name in pair else group
                for group in facts.groups
            ),
        )

    def _remove(self, facts: PoolFacts) -> PoolFacts:
        return replace(facts, groups=facts.groups[1:]) if facts.groups else facts

    def _with(self, facts: PoolFacts, how: Callable[[Group], Group]) -> PoolFacts:
        if not facts.groups:
            return facts
        at = self.numbers.randrange(len(facts.groups))
        return replace(facts, groups=(*facts.groups[:at], how(facts.groups[at]), *facts.groups[at + 1 :]))

    def _resize(self, facts: PoolFacts) -> PoolFacts:
        more = self.numbers.choice((-2, -1, 1, 2, 6)) * GIB
        slower = self.numbers.choice((0, 0, 50, 200))

        def resized(need: Footprint) -> Footprint:
            if need.on_cpu:
                return need
            return replace(need, memory=max(GIB, need.memory + more), compute=min(900, need.compute + slower))

        return self._with(facts, lambda group: group.with_footprints(resized))

    def _scale(self, facts: PoolFacts) -> PoolFacts:
        replicas = self.numbers.randint(1, 4)

        def scaled(group: Group) -> Group:
            demands = tuple(replace(demand, replicas=replicas) for demand in group.demands)
            return replace(group, replicas=replicas, demands=demands)

        return self._with(facts, scaled)

    def _other(self, facts: PoolFacts) -> PoolFacts:
        """Return the facts in which a group has another version, priority, size, requirement, shape, or peak."""
        dice, requires, need = self.numbers.randrange(6), self._requires(), self._footprint()
        crashed = self.numbers.choice((0, 10, 20)) * GIB

        def peaking(own: Footprint) -> Footprint:
            return replace(own, peak=0 if own.exclusive or own.on_cpu else crashed)

        def other(group: Group) -> Group:
            if dice == 0:
                return replace(group, demands=tuple(replace(one, version=one.version + 1) for one in group.demands))
            if dice == 1:
                return replace(group, priority=group.priority + 5)
            if dice == 2:
                return replace(group, size=min(95, group.size + 10))
            if dice == 3:
                return replace(group, demands=tuple(replace(one, requires=requires) for one in group.demands))
            if dice == 4:
                return group.with_footprints(
                    lambda own: replace(own, peak=0 if own.exclusive or own.on_cpu else crashed)
                )
            return replace(group, demands=(replace(group.demands[0], footprint=need), *group.demands[1:]))

        return self._with(facts, other)

    def _rollout(self, facts: PoolFacts) -> PoolFacts:
        """Return the facts in which a rollout begins or ends."""
        dice, surging = self.numbers.random(), self.numbers.random() < 0.5

        def candidate(need: Footprint) -> Footprint:
            if need.exclusive or need.on_cpu:
                return need
            if need.surge or need.promoted:
                return replace(need, surge=0, promoted=0)
            return replace(need, surge=need.memory if dice < 0.6 else 0, promoted=need.memory + GIB)

        return self._with(facts, lambda group: replace(group.with_footprints(candidate), surging=surging))
