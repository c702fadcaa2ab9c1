"""Plain rules of packing, with every rule of the fleet obeyed: what a planner must never be worse than.

Replicas come by falling size, whole GPUs first. Each goes where it takes the fewest new GPUs: of several such places,
to the first, to the one with the least left over, or to the one with the most (as Seldon Core chooses servers).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.packing.fleets.fleet import FULL, Fleet, Group, Machine, Model
from benchmarks.packing.placing import Device, Plan, Seat, plan_of

Slack = float
Prefer = Callable[[int, Slack], float]
"""Of a GPU: its number in the order of opening, and what it has left over; less is better."""
RULES: Mapping[str, Prefer] = {
    "first-fit": lambda opened, slack: opened,
    "best-fit": lambda opened, slack: slack,
    "worst-fit": lambda opened, slack: -slack,
}


def baselines(fleet: Fleet) -> dict[str, Plan]:
    """Return the plan of each rule."""
    return {name: packed(fleet, prefer) for name, prefer in RULES.items()}


def one_a_gpu(fleet: Fleet) -> int:
    """Return the GPUs where each replica of each model has its own; a model on the CPU takes none."""
    return sum((model.gpus or bool(model.mib)) * group.replicas for group in fleet.groups for model in group.models)


def packed(fleet: Fleet, prefer: Prefer) -> Plan:
    """Return the plan by one rule."""
    state = _State(fleet, prefer)
    for group in sorted(fleet.groups, key=lambda group: _hardness(fleet, group)):
        for _ in range(group.replicas):
            state.seat_one(group)
    return plan_of(fleet, state.seats)


def _hardness(fleet: Fleet, group: Group) -> tuple[int, float, str]:
    largest = max((fleet.usable(machine) for machine in fleet.machines), default=1)
    size = sum(max(model.mib / largest, model.compute / FULL) for model in group.shared)
    return -sum(model.gpus for model in group.models), -size, group.name


@dataclass
class _State:
    """What is placed so far: `left` has the MiB and the compute left of each open GPU, by order of opening; `servers`
    the GPUs of each GPU's server, and `groups` the groups on it.
    """

    fleet: Fleet
    prefer: Prefer
    seats: list[Seat] = field(default_factory=list)
    left: dict[Device, tuple[int, int]] = field(default_factory=dict)
    pool: dict[Device, str] = field(default_factory=dict)
    servers: dict[Device, set[Device]] = field(default_factory=dict)
    groups: dict[Device, set[str]] = field(default_factory=dict)

    def seat_one(self, group: Group) -> None:
        """Place one more replica, where that is possible."""
        order = {device: at for at, device in enumerate(self.left)}
        best: tuple[tuple[int, float, int], Seat] | None = None
        for at, machine in enumerate(self.fleet.machines_of(group.pool)):
            gpus = self._on(machine, group, order)
            if gpus is not None:
                devices = {(machine.name, gpu) for chosen in gpus for gpu in chosen}
                key = (len(devices - order.keys()), self._preference(group, machine, gpus, order), at)
                if best is None or key < best[0]:
                    best = key, Seat(group, machine.name, gpus)
        if best is not None:
            self._take(best[1])

    def _on(self, machine: Machine, group: Group, order: Mapping[Device, int]) -> tuple[tuple[int, ...], ...] | None:
        """Return the GPUs of each model on this machine; None where they do not fit."""
        left = {gpu: self.left.get((machine.name, gpu)) for gpu in range(machine.gpus)}
        chosen: dict[str, tuple[int, ...]] = {}
        for model in sorted(group.models, key=lambda model: (-model.gpus, -model.mib, -model.compute)):
            taken = {gpu for gpus in chosen.values() for gpu in gpus}
            gpus = self._choice(machine, group, model, left, taken, order)
            if gpus is None:
                return None
            chosen[model.name] = gpus
            for gpu in gpus:
                mib, compute = left[gpu] or (self.fleet.usable(machine), FULL)
                left[gpu] = (0, 0) if model.gpus else (mib - model.mib, compute - model.compute)
        return tuple(chosen[model.name] for model in group.models)

    def _choice(
        self,
        machine: Machine,
        group: Group,
        model: Model,
        left: Mapping[int, tuple[int, int] | None],
        taken: set[int],
        order: Mapping[Device, int],
    ) -> tuple[int, ...] | None:
        """Return GPUs for one model: whole ones that NVLink joins, or an open one, or a new one; None without any."""
        if model.on_cpu:
            return ()
        empty = [gpu for gpu, rest in left.items() if rest is None]
        if model.gpus:
            return _joined(machine, empty, model.gpus)
        fits = [
            gpu
            for gpu, rest in left.items()
            if rest is not None
            and rest[0] >= model.mib
            and rest[1] >= model.compute
            and self._may_join((machine.name, gpu), group, {(machine.name, other) for other in taken})
        ]
        if fits:
            return (min(fits, key=lambda gpu: self._key(machine, gpu, left[gpu] or (0, 0), order)),)
        return (empty[0],) if empty and self.fleet.usable(machine) >= model.mib else None

    def _may_join(self, device: Device, group: Group, others: set[Device]) -> bool:
        """Return whether a GPU is the pool's, and the server that arises has no group twice."""
        if self.pool.get(device, group.pool) != group.pool:
            return False
        parts = {id(self.groups[one]): self.groups[one] for one in {device, *others} if one in self.groups}
        names = [name for part in parts.values() for name in part]
        return group.name not in names and len(names) == len(set(names))

    def _preference(
        self, group: Group, machine: Machine, gpus: tuple[tuple[int, ...], ...], order: Mapping[Device, int]
    ) -> float:
        """Return the preference of a place by its first model that shares an open GPU."""
        pairs = zip(group.models, gpus, strict=True)
        devices = [(machine.name, gpu) for model, chosen in pairs if not model.gpus for gpu in chosen]
        keys = [self._key(machine, gpu, self.left[name, gpu], order) for name, gpu in devices if (name, gpu) in order]
        return sum(keys) / len(keys) if keys else 0.0

    def _key(self, machine: Machine, gpu: int, left: tuple[int, int], order: Mapping[Device, int]) -> float:
        slack = left[0] / self.fleet.usable(machine) + left[1] / FULL
        return self.prefer(order.get((machine.name, gpu), len(order)), slack)

    def _take(self, seat: Seat) -> None:
        self.seats.append(seat)
        machine = next(one for one in self.fleet.machines if one.name == seat.machine)
        for model, gpus in zip(seat.group.models, seat.gpus, strict=True):
            for gpu in gpus:
                mib, compute = self.left.get((seat.machine, gpu), (self.fleet.usable(machine), FULL))
                rest = (-1, -1) if model.gpus else (mib - model.mib, compute - model.compute)
                self.left[seat.machine, gpu] = rest
                self.pool[seat.machine, gpu] = seat.group.pool
        devices = {(seat.machine, gpu) for gpu in seat.devices}
        devices |= {other for device in devices for other in self.servers.get(device, ())}
        names = {seat.group.name}.union(*(self.groups.get(device, set()) for device in devices))
        self.servers |= dict.fromkeys(devices, devices)
        self.groups |= dict.fromkeys(devices, names)


def _joined(machine: Machine, empty: Sequence[int], count: int) -> tuple[int, ...] | None:
    """Return so many empty GPUs that NVLink joins, of the domain with the fewest to spare; None without any."""
    domains = [empty] if count == 1 else [[gpu for gpu in empty if gpu in domain] for domain in machine.domains]
    able = [gpus for gpus in domains if len(gpus) >= count]
    return tuple(min(able, key=len)[:count]) if able else None
