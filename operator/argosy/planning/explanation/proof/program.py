"""A pool as a constraint program: each model on GPUs of its node, of which the fewest are to be used.

The program is looser than the planner's rules, so that what it proves holds for all plans: replicas are apart by GPUs
and not by servers, and limits of servers, required spreads and antiAffinity by nodes are left out. What it finds is
planned with before it counts.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from argosy.planning.facts import CurrentServer, Demand, Device, Group, Node, PoolFacts
from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_of
from argosy.planning.packing.layout import Topology

Variable = Any
Item = tuple[str, int]
"""A group, and the number of its replica."""
Seats = Mapping[Item, Mapping[str, tuple[str, tuple[int, ...]]]]
"""The node and the GPUs of each model of each replica that needs some."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What was found. `seats`: where everything is, None if nothing better was found; `bound`: GPUs that no plan does
    without.
    """

    seats: Seats | None
    bound: int


class Program:
    """The program of one pool. `optional` replicas of groups may stay without a place, the others may not.

    `fixed`: the GPUs of what stays where it runs. `most`: the most GPUs that are of interest.
    """

    def __init__(
        self, facts: PoolFacts, replicas: Mapping[str, int], optional: Mapping[str, int], fixed: Seats, most: int
    ) -> None:
        from ortools.sat.python import cp_model

        self._cp, self._model = cp_model, cp_model.CpModel()
        self._facts, self._optional = facts, optional
        self._topology = Topology.of(facts)
        self._nodes = self._considered(fixed, most)
        self._used = {device: self._model.new_bool_var("") for node in self._nodes for device in self._devices(node)}
        self._items = {
            (group.name, number): group
            for group in facts.groups
            if not group.on_cpu
            for number in range(replicas.get(group.name, 0) + optional.get(group.name, 0))
        }
        self._placed: dict[Item, Variable] = {}
        self._where: dict[tuple[Item, str], dict[Device, Variable]] = {}
        for item, group in self._items.items():
            self._add(item, group, required=item[1] < replicas.get(group.name, 0))
        self._capacities()
        self._apart()
        self._order({node for seats in fixed.values() for node, _ in seats.values()})
        for item, seats in fixed.items():
            for model, (node, gpus) in seats.items():
                for gpu in gpus:
                    self._model.add(self._where[item, model][node, gpu] == 1)
        self._total = sum(self._used.values())

    @property
    def size(self) -> int:
        """The number of its variables."""
        return sum(map(len, self._where.values())) + len(self._used)

    def most_placed(self, effort: float) -> Solution:
        """Search for the most optional replicas. The bound is that of replicas which have no place in any plan."""
        self._model.maximize(sum(self._placed.values()))
        return self._solved(effort, unknown=len(self._placed), none=len(self._placed))

    def fewest_gpus(self, effort: float, below: int) -> Solution:
        """Search for fewer GPUs than `below`."""
        self._model.add(self._total <= below - 1)
        self._model.minimize(self._total)
        return self._solved(effort, unknown=0, none=below)

    def _solved(self, effort: float, unknown: int, none: int) -> Solution:
        """Search. The bound is `unknown` where nothing was proven, and `none` where there is no solution."""
        solver = self._cp.CpSolver()
        solver.parameters.max_deterministic_time = effort
        solver.parameters.num_workers = 1
        # Several strategies take turns in one thread, always in the same order.
        solver.parameters.interleave_search = True
        status = solver.solve(self._model)
        if status == self._cp.INFEASIBLE:
            return Solution(None, none)
        bound = round(solver.best_objective_bound) if status != self._cp.UNKNOWN else unknown
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return Solution(None, bound)
        return Solution(self._seats(solver), bound)

    def _seats(self, solver: Any) -> Seats:
        seats: dict[Item, dict[str, tuple[str, tuple[int, ...]]]] = {}
        for (item, model), slots in self._where.items():
            devices = sorted(device for device, variable in slots.items() if solver.value(variable))
            if devices:
                seats.setdefault(item, {})[model] = (devices[0][0], tuple(gpu for _, gpu in devices))
        for item, placed in seats.items():
            node = next(iter(placed.values()))[0]
            placed |= {one.model: (node, ()) for one in self._items[item].demands if one.footprint.on_cpu}
        return seats

    def _considered(self, fixed: Seats, most: int) -> list[Node]:
        """Return the nodes of which a plan could use some: of those that are alike, no more than it may have GPUs."""
        here = {node for seats in fixed.values() for node, _ in seats.values()}
        alike: dict[int, int] = {}
        nodes = list[Node]()
        for node in self._topology.nodes.values():
            kind = self._topology.kinds[node.name]
            alike[kind] = alike.get(kind, 0) + 1
            if node.name in here or (node.schedulable and alike[kind] <= most):
                nodes.append(node)
        return nodes

    def _devices(self, node: Node) -> Iterator[Device]:
        yield from ((node.name, gpu.index) for gpu in gpus_of(node) if gpu.index in self._topology.usable[node.name])

    def _add(self, item: Item, group: Group, *, required: bool) -> None:
        """Add the variables of a replica: one for each model and GPU, and where it is."""
        needing = [demand for demand in group.demands if not demand.footprint.on_cpu]
        nodes = [node for node in self._nodes if group.runs_on(node)]
        here = {node.name: self._model.new_bool_var("") for node in nodes}
        placed: Variable = 1
        if not required:
            placed = self._placed[item] = self._model.new_bool_var("")
        self._model.add(sum(here.values()) == placed)
        for demand in needing:
            self._add_model(item, demand, nodes, here)

    def _add_model(self, item: Item, demand: Demand, nodes: Iterable[Node], here: Mapping[str, Variable]) -> None:
        need, slots = demand.footprint, dict[Device, Variable]()
        for node in nodes:
            able = [device for device in self._devices(node) if self._could(demand, device)]
            mine = {device: self._model.new_bool_var("") for device in able}
            slots |= mine
            count = need.gpus if need.exclusive else need.shares
            self._model.add(sum(mine.values()) == count * here[node.name])
            if need.gpus > 1:
                self._join(node, mine, here[node.name])
        self._where[item, demand.model] = slots

    def _could(self, demand: Demand, device: Device) -> bool:
        need, (node, index) = demand.footprint, device
        left = self._topology.empty_gpu(node, index)
        return need.memory <= left.memory and need.compute <= left.compute and not (need.exclusive and is_slice(index))

    def _join(self, node: Node, mine: Mapping[Device, Variable], here: Variable) -> None:
        """Keep a model's GPUs within one NVLink domain."""
        domains = {joined: self._model.new_bool_var("") for joined in node.nvlink}
        self._model.add(sum(domains.values()) == here)
        for (_, gpu), variable in mine.items():
            self._model.add(variable <= sum(chosen for joined, chosen in domains.items() if gpu in joined))

    def _capacities(self) -> None:
        memory: dict[Device, list[Variable]] = {device: [] for device in self._used}
        compute: dict[Device, list[Variable]] = {device: [] for device in self._used}
        demands = {demand.model: demand for group in self._facts.groups for demand in group.demands}
        for (_, model), slots in self._where.items():
            need = demands[model].footprint
            for device, variable in slots.items():
                left = self._topology.empty_gpu(*device)
                memory[device].append((left.memory if need.exclusive else need.memory) * variable)
                compute[device].append((FULL_COMPUTE if need.exclusive else need.compute) * variable)
                self._model.add_implication(variable, self._used[device])
        for device, used in self._used.items():
            left = self._topology.empty_gpu(*device)
            self._model.add(sum(memory[device]) <= left.memory * used)
            self._model.add(sum(compute[device]) <= left.compute * used)

    def _order(self, in_use: Collection[str]) -> None:
        """Use nodes and GPUs that are alike in their order, so that no plan is tried twice."""
        previous: dict[int, Variable] = {}
        for node in (node for node in self._nodes if node.name not in in_use):
            devices = list(self._devices(node))
            sizes = {self._topology.usable[node.name][gpu] for _, gpu in devices}
            joined = all(len(domain) >= len(devices) for domain in node.nvlink)
            if len(sizes) == 1 and joined:
                for one, other in pairwise(devices):
                    self._model.add(self._used[one] >= self._used[other])
            used, kind = sum(self._used[device] for device in devices), self._topology.kinds[node.name]
            if kind in previous:
                self._model.add(previous[kind] >= used)
            previous[kind] = used

    def _apart(self) -> None:
        """Keep replicas of a group on different GPUs."""
        for group in self._facts.groups:
            numbers = [item for item in self._items if item[0] == group.name]
            for demand in group.demands if len(numbers) > 1 else ():
                for device in self._used:
                    here = [self._where.get((item, demand.model), {}).get(device) for item in numbers]
                    self._model.add_at_most_one(variable for variable in here if variable is not None)


def servers_of(seats: Seats, running: Sequence[CurrentServer], base: str, taken: Iterable[str]) -> list[CurrentServer]:
    """Return servers with these seats. GPUs that a replica ties together are those of one server."""
    parts: list[tuple[str, set[Device], dict[str, tuple[int, ...]]]] = [
        (server.name, {(server.node, gpu) for gpu in server.gpus}, {}) for server in running if server.gpus
    ]
    for item in sorted(seats):
        placed = {model: gpus for model, (_, gpus) in seats[item].items()}
        devices = {(node, gpu) for node, gpus in seats[item].values() for gpu in gpus}
        names = ""
        for part in [part for part in parts if part[1] & devices]:
            parts.remove(part)
            names, devices, placed = names or part[0], devices | part[1], {**part[2], **placed}
        parts.append((names, devices, placed))
    used, result = set(taken), list[CurrentServer]()
    for name, devices, placed in sorted(parts, key=lambda part: (not part[0], sorted(part[1]))):
        own = name or next(f"{base}-{at}" for at in range(len(used) + 1) if f"{base}-{at}" not in used)
        used.add(own)
        if placed:
            gpus = tuple(sorted({gpu for of_model in placed.values() for gpu in of_model}))
            result.append(CurrentServer(own, min(devices)[0], gpus, placed))
    return result
