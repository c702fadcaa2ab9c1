"""The memory budget of a migration: which changes fit next to the loaded models, and what the others wait for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.planning.migration.memory.changes import ModelChange, ServerChanges
from argosy.planning.migration.memory.occupancy import Occupant, planned, taken
from argosy.planning.plan import Placement, ServerPlan, Unreserved


@dataclass(frozen=True, slots=True)
class Shortage:
    """The first GPU on which a new revision does not fit next to the old one: its index, the bytes needed and free
    there.
    """

    gpu: int
    need: int
    free: int


@dataclass(frozen=True, slots=True)
class BlockedChange:
    """A change that has to wait. `blockers`: what of this server it waits for.

    `shortage`: waiting does not help. `fits_alone`: it fits once its own former revision is unloaded; `fits_then`: once
    those of its versions are that leave anyway. `unreserved`: the plan has no memory for it as a candidate.
    """

    change: ModelChange
    blockers: frozenset[str]
    shortage: Shortage | None = None
    fits_alone: bool = False
    fits_then: bool = False
    unreserved: Unreserved | None = None


@dataclass(slots=True)
class MemoryBudget:
    """One server: `memory` by GPU, its `changes`, and the `surplus`: models that are loaded and no longer planned.

    `blocked`: changes without enough memory now, by model. `declared_only`: models that are not loaded here, whose
    former versions do not fit in addition to the planned models.
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
        """Admit what fits, one after the other: what has begun, then what has to change, then what is new."""
        self._used = taken([*self.changes.loaded.values(), *self.surplus], self.memory)
        self._loaded = set(self.changes.loaded)
        for change in map(self._without_former, sorted(self.changes.changes, key=_order)):
            blocked = self._tried(change)
            if blocked is not None:
                self.blocked[change.placement.model] = blocked
            # what waits for room that comes is not forestalled by what would take it
            waits = blocked is not None and change.before is not None and blocked.shortage is None
            if blocked is None or (waits and not change.apart):
                self._take(change)

    def fits_alone(self, model: str) -> bool:
        """Return whether a change finds memory, perhaps only once its own former revision is unloaded."""
        blocked = self.blocked.get(model)
        return blocked is None or blocked.fits_alone

    def _without_former(self, change: ModelChange) -> ModelChange:
        """Return the change, without the versions that served on a former Pod if these do not fit with the planned
        models.
        """
        name, gpus = change.placement.model, change.coming.gpus
        others = [placement for placement in self.server.placements if placement.model != name]
        fits = change.unreserved is None and all(self._holds(gpu, others, change.coming) for gpu in gpus)
        if change.before is not None or fits:
            return change
        self.declared_only.add(name)
        return replace(change, coming=Occupant(name, gpus, change.placement.memory, change.placement.exclusive))

    def _holds(self, gpu: int, others: Sequence[Placement], coming: Occupant) -> bool:
        capacity = self.memory.get(gpu, 0)
        return sum(planned(placement, gpu, capacity) for placement in others) + coming.on(gpu, capacity) <= capacity

    def _tried(self, change: ModelChange) -> BlockedChange | None:
        short = [gpu for gpu in change.coming.gpus if not self._fits(change, gpu)]
        if not short and not change.apart:
            return self._unreserved(change)
        if short and change.leaving and all(self._fits(change, gpu, without_leaving=True) for gpu in short):
            return BlockedChange(change, frozenset(), fits_then=True)
        blockers = frozenset(self._blockers(change.placement.model, set(short)))
        if change.before is None:
            # where nothing will make room it would wait for nothing: let the server try
            return BlockedChange(change, blockers) if blockers else None
        shortage = next((gpu_shortage for gpu in short if (gpu_shortage := self._shortage(change, gpu))), None)
        helps = change.apart or shortage is not None or any(occupant.name in blockers for occupant in self.surplus)
        # Further instances need what is there: it is not taken down for them.
        fits_alone = (
            helps
            and not change.inplace
            and all(self._fits(change, gpu, without_own=True) for gpu in change.coming.gpus)
        )
        lack = change.unreserved if shortage is None and not change.apart else None
        return BlockedChange(change, blockers, shortage, fits_alone, unreserved=lack)

    def _unreserved(self, change: ModelChange) -> BlockedChange | None:
        """Return the change as one that waits, if it is that of a candidate for which the plan has no memory."""
        lack = change.unreserved
        if lack is None or change.before is None:
            return None
        here = {placement.model for placement in self.server.placements}
        return BlockedChange(change, frozenset(here & set(lack.rollouts)), fits_alone=lack.alone, unreserved=lack)

    def _fits(self, change: ModelChange, gpu: int, without_own: bool = False, without_leaving: bool = False) -> bool:
        capacity = self.memory.get(gpu, 0)
        own = taken([change.before], self.memory).get(gpu, 0) if change.before else 0
        others = self._used.get(gpu, 0) - own
        before = 0 if without_own or change.before is None else change.before.on(gpu, capacity)
        before -= min(before, change.leaving) if without_leaving else 0
        if change.coming.alone and others:
            return False
        return others + before + change.coming.on(gpu, capacity) <= capacity

    def _take(self, change: ModelChange) -> None:
        self._loaded.add(change.placement.model)
        for gpu, size in taken([change.coming], self.memory).items():
            self._used[gpu] = self._used.get(gpu, 0) + size

    def _shortage(self, change: ModelChange, gpu: int) -> Shortage | None:
        """Return the memory that is missing on a GPU even once all others are settled and the surplus is gone."""
        capacity, need = self.memory.get(gpu, 0), change.coming.on(gpu, self.memory.get(gpu, 0))
        others = sum(planned(placement, gpu, capacity) for placement in self._others(change.placement.model))
        free = capacity - others - (change.before.on(gpu, capacity) - change.leaving if change.before else 0)
        return Shortage(gpu, need, max(0, free)) if need > free else None

    def _others(self, model: str) -> list[Placement]:
        return [
            placement
            for placement in self.server.placements
            if placement.model in self._loaded and placement.model != model
        ]

    def _blockers(self, model: str, short: set[int]) -> list[str]:
        """Return the names of what takes more of these GPUs now than it will."""
        blockers = [occupant.name for occupant in self.surplus if short & set(occupant.gpus)]
        updates = {update.placement.model: update for update in self.changes.changes if update.before is not None}
        for other in self._others(model):
            name, there = other.model, self.changes.loaded.get(other.model)
            more = {
                gpu
                for gpu in short
                if there and there.on(gpu, self.memory.get(gpu, 0)) > planned(other, gpu, self.memory.get(gpu, 0))
            }
            if more or (name in updates and there and short & {*there.gpus, *updates[name].coming.gpus}):
                blockers.append(name)
        return blockers


def _order(change: ModelChange) -> tuple[int, int, str]:
    return change.priority, -change.coming.memory, change.placement.model
