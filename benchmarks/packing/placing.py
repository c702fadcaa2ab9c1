"""A plan as the rules see it, and the checker of its rules, which shares no code with the operator."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.packing.fleets.fleet import FULL, Fleet, Group, Machine, Model

Device = tuple[str, int]
"""A machine's name and the index of one of its GPUs."""


@dataclass(frozen=True)
class Server:
    """A server of a pool: the GPUs that it holds, and those of each of its models."""

    pool: str
    machine: str
    gpus: frozenset[int]
    models: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Plan:
    """The servers, and the number of replicas of each group that have no place."""

    servers: tuple[Server, ...]
    unplaced: Mapping[str, int] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        """The GPUs that servers hold."""
        return sum(len(server.gpus) for server in self.servers)

    @property
    def missing(self) -> int:
        """The replicas without a place."""
        return sum(self.unplaced.values())

    @property
    def rank(self) -> tuple[int, int]:
        """How good it is; less is better: what is missing first, then the GPUs."""
        return self.missing, self.gpus


@dataclass(frozen=True)
class Seat:
    """One replica of a group on a machine, with the GPUs of each of its models, in their order."""

    group: Group
    machine: str
    gpus: tuple[tuple[int, ...], ...]

    @property
    def devices(self) -> frozenset[int]:
        """All of its GPUs."""
        return frozenset(gpu for gpus in self.gpus for gpu in gpus)


def plan_of(fleet: Fleet, seats: Iterable[Seat]) -> Plan:
    """Return the plan of these seats: GPUs that a replica ties together are one server's, others are servers alone."""
    parts: dict[Device, tuple[set[Device], list[Seat]]] = {}
    placed: Counter[str] = Counter()
    for seat in seats:
        placed[seat.group.name] += 1
        devices, members = {(seat.machine, gpu) for gpu in seat.devices}, [seat]
        joined = {id(parts[device]): parts[device] for device in devices if device in parts}
        for others, further in joined.values():
            devices |= others
            members += further
        parts |= dict.fromkeys(devices, (devices, members))
    distinct = {id(part): part for part in parts.values()}
    servers = (
        Server(
            members[0].group.pool,
            members[0].machine,
            frozenset(gpu for _, gpu in devices),
            {m.name: gpus for seat in members for m, gpus in zip(seat.group.models, seat.gpus, strict=True)},
        )
        for devices, members in distinct.values()
    )
    missing = {group.name: group.replicas - placed[group.name] for group in fleet.groups}
    return Plan(tuple(servers), {name: count for name, count in missing.items() if count})


def faults(fleet: Fleet, plan: Plan) -> list[str]:
    """Return every rule that the plan breaks; none where it is feasible."""
    return [*_server_faults(fleet, plan), *_gpu_faults(fleet, plan), *_group_faults(fleet, plan)]


def _server_faults(fleet: Fleet, plan: Plan) -> Iterator[str]:
    machines = {machine.name: machine for machine in fleet.machines}
    models = {model.name: model for model in fleet.models}
    holders = Counter((server.machine, gpu) for server in plan.servers for gpu in server.gpus)
    yield from (f"GPU {gpu} of {name} has {count} servers" for (name, gpu), count in holders.items() if count > 1)
    for server in plan.servers:
        machine, product = machines[server.machine], fleet.product_of[server.pool]
        if product not in ("", machine.product):
            yield f"{machine.name} is no node of pool {server.pool}"
        if not server.gpus <= set(range(machine.gpus)):
            yield f"{machine.name} lacks some of the GPUs {sorted(server.gpus)}"
        for name, gpus in server.models.items():
            if models[name].pool != server.pool:
                yield f"{name} is on a server of pool {server.pool}"
            if not set(gpus) <= server.gpus:
                yield f"{name} is on GPUs that its server does not hold"
            yield from _seat_faults(models[name], machine, gpus)


def _seat_faults(model: Model, machine: Machine, gpus: tuple[int, ...]) -> Iterator[str]:
    needed = 0 if model.on_cpu else model.gpus or 1
    if len(set(gpus)) != needed or len(gpus) != needed:
        yield f"{model.name} has {len(gpus)} GPUs and needs {needed}"
    if needed > 1 and not any(set(gpus) <= set(domain) for domain in machine.domains):
        yield f"{model.name} is on GPUs of {machine.name} that NVLink does not join"


def _gpu_faults(fleet: Fleet, plan: Plan) -> Iterator[str]:
    machines = {machine.name: machine for machine in fleet.machines}
    models = {model.name: model for model in fleet.models}
    on: dict[Device, list[Model]] = {}
    for server in plan.servers:
        for name, gpus in server.models.items():
            for gpu in gpus:
                on.setdefault((server.machine, gpu), []).append(models[name])
    for (name, gpu), here in on.items():
        usable, mib = fleet.usable(machines[name]), sum(model.mib for model in here)
        if mib > usable:
            yield f"GPU {gpu} of {name} has {mib} MiB of {usable}"
        if sum(model.compute for model in here) > FULL:
            yield f"GPU {gpu} of {name} has more compute than one GPU"
        if len(here) > 1 and any(model.gpus for model in here):
            yield f"GPU {gpu} of {name} is shared with a model that takes whole GPUs"


def _group_faults(fleet: Fleet, plan: Plan) -> Iterator[str]:
    for group in fleet.groups:
        names = {model.name for model in group.models}
        some = [names & server.models.keys() for server in plan.servers if names & server.models.keys()]
        if any(there != names for there in some):
            yield f"{group.name} is divided over servers"
        missing = plan.unplaced.get(group.name, 0)
        if len(some) + missing != group.replicas:
            yield f"{group.name} has {len(some)} of {group.replicas} replicas, and {missing} unplaced"
