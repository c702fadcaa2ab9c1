"""A solution of the optimum's model as seats: a GPU of a machine for each of what the model only counts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.packing.fleets.fleet import Fleet, Group, Machine
from benchmarks.packing.placing import Seat

Seated = tuple[str, tuple[int, ...]]
"""A machine, and GPUs of it."""


@dataclass
class Solution:
    """What was chosen: for each model of whole GPUs (group, replica, model, GPUs) its machine and NVLink domain, or -1;
    for each other one its bin. `machines`: those that each bin may be on.
    """

    fleet: Fleet
    exclusive: Mapping[tuple[str, int, str, int], tuple[str, int]]
    shared: Mapping[tuple[str, int, str], int]
    machines: Sequence[Sequence[Machine]]
    free: dict[str, list[int]] = field(init=False)
    bins: dict[int, Seated] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = {machine.name: list(range(machine.gpus)) for machine in self.fleet.machines}

    def seats(self) -> Iterator[Seat]:
        """Yield every replica's seat; whole GPUs are taken first, those of domains before any others."""
        taken = {
            item[:3]: self._exclusive(item[3], *slot) for item, slot in sorted(self.exclusive.items(), key=_most_first)
        }
        taken |= {item: self._shared(number) for item, number in self.shared.items()}
        for group in self.fleet.groups:
            yield from (_seat(group, at, taken) for at in range(group.replicas))

    def _exclusive(self, gpus: int, name: str, domain: int) -> Seated:
        machine = next(one for one in self.fleet.machines if one.name == name)
        joined = machine.domains[domain] if domain >= 0 else range(machine.gpus)
        chosen = [gpu for gpu in self.free[name] if gpu in joined][:gpus]
        self.free[name] = [gpu for gpu in self.free[name] if gpu not in chosen]
        return name, tuple(chosen)

    def _shared(self, number: int) -> Seated:
        if number not in self.bins:
            name = next(machine.name for machine in self.machines[number] if self.free[machine.name])
            self.bins[number] = name, (self.free[name].pop(0),)
        return self.bins[number]


def _most_first(item: tuple[tuple[str, int, str, int], tuple[str, int]]) -> int:
    return -item[0][3]


def _seat(group: Group, at: int, taken: Mapping[tuple[str, int, str], Seated]) -> Seat:
    slots = [taken.get((group.name, at, model.name)) for model in group.models]
    machine = next(slot[0] for slot in slots if slot is not None)
    return Seat(group, machine, tuple(slot[1] if slot is not None else () for slot in slots))
