"""The fewest GPUs of a fleet, by CP-SAT (OR-Tools, `argosy[packing]`), and whether that is proven.

Bins are GPUs of one pool at one site. A site is a node where models share servers; otherwise all GPUs of one product,
as then every GPU is a server of its own and it does not matter where it is. Whole GPUs are counted by NVLink domain.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.packing.bounds import lower_bound
from benchmarks.packing.fleets.fleet import FULL, Fleet, Group, Machine, Model
from benchmarks.packing.placing import Plan, faults, plan_of
from benchmarks.packing.solution import Solution

Variable = Any


@dataclass(frozen=True)
class Optimum:
    """The best plan known that places everything, if there is one, the GPUs that none can do without, and whether it
    is proven that there is none with fewer GPUs, or none at all.
    """

    plan: Plan | None
    bound: int
    proven: bool


def optimum(fleet: Fleet, plans: Sequence[Plan], effort: float) -> Optimum:
    """Return the optimum of a fleet, searched for below the best of these plans.

    `effort` is the most of CP-SAT's deterministic time, about seconds of CPU: every machine proves as much. With 0 only
    a plan at the bound is proven.
    """
    bound = lower_bound(fleet)
    best = min((plan for plan in plans if not plan.missing), key=lambda plan: plan.gpus, default=None)
    at_bound = best is not None and best.gpus <= bound
    if at_bound or not effort:
        return Optimum(best, bound, proven=at_bound)
    return _Search(fleet, bound, best).solved(effort)


@dataclass(frozen=True)
class _Site:
    """GPUs that are alike: those of a node, or of all nodes of one product."""

    name: str
    machines: tuple[Machine, ...]

    @property
    def gpus(self) -> int:
        return sum(machine.gpus for machine in self.machines)


@dataclass(frozen=True)
class _Bin:
    """A GPU of one pool at one site."""

    pool: str
    site: _Site
    used: Variable
    server: Variable


class _Search:
    """The model of one fleet."""

    def __init__(self, fleet: Fleet, bound: int, best: Plan | None) -> None:
        from ortools.sat.python import cp_model

        self.cp, self.model = cp_model, cp_model.CpModel()
        self.fleet, self.bound, self.best = fleet, bound, best
        self.tied = any(len(group.models) > 1 for group in fleet.groups)
        self.sites = tuple(self._sites())
        self.most = best.gpus - 1 if best is not None else fleet.gpus
        self.replicas = [(group, at) for group in fleet.groups for at in range(group.replicas)]
        self.bins = list(self._bins())
        self.where = {item: self._slots(*item) for item in self._items()}
        self.exclusive = dict(self._exclusive())
        self._capacities()
        self._servers()
        self._order()

    def solved(self, effort: float) -> Optimum:
        """Search, and return what is known then."""
        solver = self.cp.CpSolver()
        solver.parameters.max_deterministic_time = effort
        solver.parameters.num_workers = 1
        # Several strategies take turns in one thread, always in the same order.
        solver.parameters.interleave_search = True
        status = solver.solve(self.model)
        if status == self.cp.INFEASIBLE:
            return Optimum(self.best, self.best.gpus if self.best else self.bound, proven=True)
        result = self._plan(solver) if status in (self.cp.OPTIMAL, self.cp.FEASIBLE) else self.best
        bound = max(self.bound, round(solver.best_objective_bound)) if status != self.cp.UNKNOWN else self.bound
        return Optimum(result, bound, proven=status == self.cp.OPTIMAL)

    def _sites(self) -> Iterator[_Site]:
        if self.tied:
            yield from (_Site(machine.name, (machine,)) for machine in self.fleet.machines)
            return
        for product in dict.fromkeys(machine.product for machine in self.fleet.machines):
            yield _Site(product, tuple(one for one in self.fleet.machines if one.product == product))

    def _bins(self) -> Iterator[_Bin]:
        """Yield the GPUs that a pool may use at each site, no more than it has models for."""
        for pool in self.fleet.pools:
            mine = {machine.name for machine in self.fleet.machines_of(pool.name)}
            shared = sum(len(group.shared) * group.replicas for group in self.fleet.groups if group.pool == pool.name)
            for at, site in enumerate(self.sites):
                if site.machines[0].name in mine:
                    numbers = range(min(site.gpus, self.most, shared))
                    first = at * self.fleet.gpus
                    for number in numbers:
                        server = self.model.new_int_var(first, first + number, "") if self.tied else None
                        yield _Bin(pool.name, site, self.model.new_bool_var(""), server)

    def _items(self) -> Iterator[tuple[Group, int, Model]]:
        """Yield each shared model of each replica, the largest first."""
        largest = max((self.fleet.usable(machine) for machine in self.fleet.machines), default=1)
        items = ((group, at, model) for group, at in self.replicas for model in group.shared)
        yield from sorted(items, key=lambda item: (-max(item[2].mib / largest, item[2].compute / FULL), item[2].name))

    def _slots(self, group: Group, at: int, model: Model) -> dict[int, Variable]:
        """Return a variable for each bin that may have the model, of which exactly one is true."""
        able = (
            number
            for number, one in enumerate(self.bins)
            if one.pool == group.pool and self.fleet.usable(one.site.machines[0]) >= model.mib
        )
        slots = {number: self.model.new_bool_var("") for number in able}
        self.model.add_exactly_one(slots.values())
        return slots

    def _exclusive(self) -> Iterator[tuple[tuple[str, int, str, int], dict[tuple[str, int], Variable]]]:
        """Yield, for each replica of a model of whole GPUs, a variable for each NVLink domain; -1: any GPU."""
        for group, at in self.replicas:
            for model in group.models:
                if model.gpus:
                    slots = {
                        (machine.name, domain): self.model.new_bool_var("")
                        for machine in self.fleet.machines_of(group.pool)
                        if self.fleet.usable(machine) >= model.mib
                        for domain in (range(len(machine.domains)) if model.gpus > 1 else (-1,))
                    }
                    self.model.add_exactly_one(slots.values())
                    yield (group.name, at, model.name, model.gpus), slots

    def _taken(self, machine: Machine, domain: int | None = None) -> list[Variable]:
        """Return the GPUs that models take whole on a machine, or in one of its domains."""
        return [
            gpus * slots[machine.name, at]
            for (_, _, _, gpus), slots in self.exclusive.items()
            for at in ((domain,) if domain is not None else range(-1, len(machine.domains)))
            if (machine.name, at) in slots
        ]

    def _capacities(self) -> None:
        for number, one in enumerate(self.bins):
            here = [(model, slots[number]) for (_, _, model), slots in self.where.items() if number in slots]
            usable = self.fleet.usable(one.site.machines[0])
            self.model.add(sum(model.mib * slot for model, slot in here) <= usable * one.used)
            self.model.add(sum(model.compute * slot for model, slot in here) <= FULL * one.used)
        for site in self.sites:
            taken = [used for machine in site.machines for used in self._taken(machine)]
            self.model.add(sum(one.used for one in self.bins if one.site == site) + sum(taken) <= site.gpus)
            for machine in site.machines if self.exclusive else ():
                self.model.add(sum(self._taken(machine)) <= machine.gpus)
                for domain, gpus in enumerate(machine.domains):
                    self.model.add(sum(self._taken(machine, domain)) <= len(gpus))
        exclusive = sum(gpus for _, _, _, gpus in self.exclusive)
        total = sum(one.used for one in self.bins) + exclusive
        self.model.add(total >= self.bound)
        self.model.add(total <= self.most)
        self.model.minimize(total)

    def _servers(self) -> None:
        """Keep a group's models on one server, and its replicas on different ones."""
        if not self.tied:
            self._apart()
            return
        labels: dict[str, list[Variable]] = {}
        for group, at in self.replicas:
            if len(group.models) > 1 or group.replicas > 1:
                label = self.model.new_int_var(0, len(self.sites) * self.fleet.gpus, "")
                labels.setdefault(group.name, []).append(label)
                self._tie(group, at, label)
        for replicas in labels.values():
            for one, other in pairwise(replicas):
                self.model.add(one < other)

    def _tie(self, group: Group, at: int, label: Variable) -> None:
        """Put all of a replica's models on the server of this label, whose site is part of the label."""
        for model in group.shared:
            for number, slot in self.where[group, at, model].items():
                self.model.add(self.bins[number].server == label).only_enforce_if(slot)
        sites = {site.name: number for number, site in enumerate(self.sites)}
        for model in group.models:
            for (machine, _), slot in self.exclusive.get((group.name, at, model.name, model.gpus), {}).items():
                first = sites[machine] * self.fleet.gpus
                self.model.add(label >= first).only_enforce_if(slot)
                self.model.add(label < first + self.fleet.gpus).only_enforce_if(slot)

    def _apart(self) -> None:
        """Keep replicas on different GPUs, each of which is a server."""
        for group in self.fleet.groups:
            for model in group.shared if group.replicas > 1 else ():
                for number in range(len(self.bins)):
                    here = [self.where[group, at, model].get(number) for at in range(group.replicas)]
                    self.model.add_at_most_one(slot for slot in here if slot is not None)

    def _order(self) -> None:
        """Use the bins of a pool at a site in their order, as they are alike."""
        for one, other in pairwise(self.bins):
            if (one.pool, one.site) == (other.pool, other.site):
                self.model.add_implication(other.used, one.used)

    def _plan(self, solver: Any) -> Plan:
        """Return the plan that was found. Raises ValueError where it breaks a rule: the model would be wrong."""

        def chosen(slots: Mapping[Any, Variable]) -> Any:
            return next(slot for slot, variable in slots.items() if solver.value(variable))

        exclusive = {item: chosen(slots) for item, slots in self.exclusive.items()}
        shared = {(group.name, at, model.name): chosen(slots) for (group, at, model), slots in self.where.items()}
        solution = Solution(self.fleet, exclusive, shared, [one.site.machines for one in self.bins])
        plan = plan_of(self.fleet, solution.seats())
        broken = faults(self.fleet, plan)
        if broken or plan.missing:
            raise ValueError(f"{self.fleet.name}: {broken or plan.unplaced}")
        return plan
