"""A server's GPU memory while it changes: what may be loaded beside all that is there, and what has to wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.planning.migration.memory.changes import Change, ServerChanges
from argosy.planning.migration.memory.occupancy import Occupant, planned, taken
from argosy.planning.plan import Placement, ServerPlan


@dataclass(frozen=True, slots=True)
class Shortage:
    """The first GPU on which a new form will not fit beside the old one: its index, what is needed there, and free."""

    gpu: int
    need: int
    free: int


@dataclass(frozen=True, slots=True)
class BlockedChange:
    """A change that has to wait. `blockers`: what of this server it waits for.

    `shortage`: waiting does not help. `fits_alone`: it fits once its own former form is gone.
    """

    change: Change
    blockers: frozenset[str]
    shortage: Shortage | None = None
    fits_alone: bool = False


@dataclass(slots=True)
class MemoryBudget:
    """One server: `memory` by GPU, its `changes`, and the `surplus`, which is loaded and not planned.

    `blocked`: what finds no memory now, by model. `declared_only`: models that have nothing here, and of which former
    versions find no memory beside all that is planned.
    """

    server: ServerPlan
    memory: Mapping[int, int]
    changes: ServerChanges
    surplus: Sequence[Occupant] = ()
    blocked: dict[str, BlockedChange] = field(default_factory=dict)
    declared_only: set[str] = field(default_factory=set)
    _used: dict[int, int] = field(default_factory=dict)
    _loaded: set[str] = field(default_factory=set)

    def admit(self) -> None:
        """Let in what fits, one after the other: what has begun, then what has to change, then what is new."""
        self._used = taken([*self.changes.loaded.values(), *self.surplus], self.memory)
        self._loaded = set(self.changes.loaded)
        for change in map(self._without_former, sorted(self.changes.changes, key=_order)):
            blocked = self._tried(change)
            if blocked is not None:
                self.blocked[change.placement.model] = blocked
            # what waits for room that comes is not forestalled by what would take it
            if blocked is None or (change.before is not None and blocked.shortage is None):
                self._take(change)

    def fits_alone(self, model: str) -> bool:
        """Return whether a change finds memory, be it only once its own former form is gone."""
        blocked = self.blocked.get(model)
        return blocked is None or blocked.fits_alone

    def _without_former(self, change: Change) -> Change:
        """The change; what served on a former Pod is no part of it where it finds no memory beside the planned."""
        name, gpus = change.placement.model, change.coming.gpus
        others = [each for each in self.server.placements if each.model != name]
        if change.before is not None or all(self._holds(gpu, others, change.coming) for gpu in gpus):
            return change
        self.declared_only.add(name)
        return replace(change, coming=Occupant(name, gpus, change.placement.memory, change.placement.whole))

    def _holds(self, gpu: int, others: Sequence[Placement], coming: Occupant) -> bool:
        capacity = self.memory.get(gpu, 0)
        return sum(planned(each, gpu, capacity) for each in others) + coming.on(gpu, capacity) <= capacity

    def _tried(self, change: Change) -> BlockedChange | None:
        short = [gpu for gpu in change.coming.gpus if not self._fits(change, gpu)]
        if not short:
            return None
        blockers = frozenset(self._blockers(change.placement.model, set(short)))
        if change.before is None:
            # where nothing will make room it would wait for nothing: let the server try
            return BlockedChange(change, blockers) if blockers else None
        shortage = next((found for gpu in short if (found := self._shortage(change, gpu))), None)
        helps = shortage is not None or any(each.name in blockers for each in self.surplus)
        # Further instances need what is there: it is not taken down for them.
        fits_alone = (
            helps
            and not change.in_place
            and all(self._fits(change, gpu, without_own=True) for gpu in change.coming.gpus)
        )
        return BlockedChange(change, blockers, shortage, fits_alone)

    def _fits(self, change: Change, gpu: int, without_own: bool = False) -> bool:
        capacity = self.memory.get(gpu, 0)
        own = taken([change.before], self.memory).get(gpu, 0) if change.before else 0
        others = self._used.get(gpu, 0) - own
        beside = 0 if without_own or change.before is None else change.before.on(gpu, capacity)
        if change.coming.alone and others:
            return False
        return others + beside + change.coming.on(gpu, capacity) <= capacity

    def _take(self, change: Change) -> None:
        self._loaded.add(change.placement.model)
        for gpu, size in taken([change.coming], self.memory).items():
            self._used[gpu] = self._used.get(gpu, 0) + size

    def _shortage(self, change: Change, gpu: int) -> Shortage | None:
        """What lacks though all others are settled, and what leaves is gone."""
        capacity, need = self.memory.get(gpu, 0), change.coming.on(gpu, self.memory.get(gpu, 0))
        others = sum(planned(each, gpu, capacity) for each in self._others(change.placement.model))
        free = capacity - others - (change.before.on(gpu, capacity) if change.before else 0)
        return Shortage(gpu, need, max(0, free)) if need > free else None

    def _others(self, model: str) -> list[Placement]:
        return [each for each in self.server.placements if each.model in self._loaded and each.model != model]

    def _blockers(self, model: str, short: set[int]) -> list[str]:
        """Whoever takes more of these GPUs than it will."""
        found = [each.name for each in self.surplus if short & set(each.gpus)]
        updates = {each.placement.model: each for each in self.changes.changes if each.before is not None}
        for other in self._others(model):
            name, there = other.model, self.changes.loaded.get(other.model)
            more = {
                gpu
                for gpu in short
                if there and there.on(gpu, self.memory.get(gpu, 0)) > planned(other, gpu, self.memory.get(gpu, 0))
            }
            if more or (name in updates and there and short & {*there.gpus, *updates[name].coming.gpus}):
                found.append(name)
        return found


def _order(change: Change) -> tuple[int, int, str]:
    return change.priority, -change.coming.memory, change.placement.model
