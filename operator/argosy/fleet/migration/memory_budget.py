"""A server's memory while it changes: what may be loaded beside all that is there, and what finds no room yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from argosy.fleet.migration.changes import Change, Present
from argosy.fleet.migration.occupancy import Occupant, planned, taken
from argosy.fleet.plan import Placement, ServerPlan


@dataclass(frozen=True, slots=True)
class Shortage:
    """The first GPU on which a new form will not fit beside the old one: its index, what is needed there, and free."""

    gpu: int
    need: int
    free: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """A change that has to wait. `rivals`: what of this server it waits for.

    `shortage`: waiting does not help. `swaps`: it fits once its own former form is gone.
    """

    change: Change
    rivals: frozenset[str]
    shortage: Shortage | None = None
    swaps: bool = False


@dataclass(slots=True)
class Room:
    """One server: `memory` by GPU, the `present`, what is `leaving`. `blocked`: what finds no room now, by model."""

    server: ServerPlan
    memory: Mapping[int, int]
    present: Present
    leaving: Sequence[Occupant] = ()
    blocked: dict[str, Blocked] = field(default_factory=dict)
    _used: dict[int, int] = field(default_factory=dict)
    _there: set[str] = field(default_factory=set)

    def admit(self) -> None:
        """Let in what fits, one after the other: what has begun, then what has to change, then what is new."""
        self._used = taken([*self.present.there.values(), *self.leaving], self.memory)
        self._there = set(self.present.there)
        for change in sorted(self.present.changes, key=_order):
            blocked = self._tried(change)
            if blocked is not None:
                self.blocked[change.placement.model] = blocked
            # what waits for room that comes is not forestalled by what would take it
            if blocked is None or (change.before is not None and blocked.shortage is None):
                self._take(change)

    def _tried(self, change: Change) -> Blocked | None:
        short = [gpu for gpu in change.coming.gpus if not self._fits(change, gpu)]
        if not short:
            return None
        rivals = frozenset(self._rivals(change.placement.model, set(short)))
        if change.before is None:
            return Blocked(change, rivals) if rivals else None
        shortage = next((found for gpu in short if (found := self._shortage(change, gpu))), None)
        helps = shortage is not None or any(each.name in rivals for each in self.leaving)
        swaps = helps and all(self._fits(change, gpu, without_own=True) for gpu in change.coming.gpus)
        return Blocked(change, rivals, shortage, swaps)

    def _fits(self, change: Change, gpu: int, without_own: bool = False) -> bool:
        capacity = self.memory.get(gpu, 0)
        own = taken([change.before], self.memory).get(gpu, 0) if change.before else 0
        others = self._used.get(gpu, 0) - own
        beside = 0 if without_own or change.before is None else change.before.on(gpu, capacity)
        if change.coming.alone and others:
            return False
        return others + beside + change.coming.on(gpu, capacity) <= capacity

    def _take(self, change: Change) -> None:
        self._there.add(change.placement.model)
        for gpu, size in taken([change.coming], self.memory).items():
            self._used[gpu] = self._used.get(gpu, 0) + size

    def _shortage(self, change: Change, gpu: int) -> Shortage | None:
        """What lacks though all others are settled, and what leaves is gone."""
        capacity, need = self.memory.get(gpu, 0), change.coming.on(gpu, self.memory.get(gpu, 0))
        others = sum(planned(each, gpu, capacity) for each in self._others(change.placement.model))
        free = capacity - others - (change.before.on(gpu, capacity) if change.before else 0)
        return Shortage(gpu, need, max(0, free)) if need > free else None

    def _others(self, model: str) -> list[Placement]:
        return [each for each in self.server.placements if each.model in self._there and each.model != model]

    def _rivals(self, model: str, short: set[int]) -> list[str]:
        """Whoever takes more of these GPUs than it will."""
        found = [each.name for each in self.leaving if short & set(each.gpus)]
        updates = {each.placement.model: each for each in self.present.changes if each.before is not None}
        for other in self._others(model):
            name, there = other.model, self.present.there.get(other.model)
            more = {
                gpu
                for gpu in short
                if there and there.on(gpu, self.memory.get(gpu, 0)) > planned(other, gpu, self.memory.get(gpu, 0))
            }
            if more or (name in updates and there and short & {*there.gpus, *updates[name].coming.gpus}):
                found.append(name)
        return found


def _order(change: Change) -> tuple[int, int, str]:
    return change.turn, -change.coming.memory, change.placement.model
