"""How long an execution takes, learnt from what was measured.

`seconds = (fixed + per_row * rows) * (1 + contention * (busy - 1))`: a part that every batch pays, a part for each row,
and what instances on one device cost each other (0: nothing, 1: they only take turns).
"""

from dataclasses import dataclass
from math import log2

_MOST_EVIDENCE = 500.0
"""Executions of one size that are remembered: what was measured before these fades."""
_ASSUMED_PER_ROW = 0.5
"""Of the time of one row alone: what the row costs, as long as nobody saw batches of different sizes."""
_PRIOR_ROWS = 0.2
"""How much batches must differ, as a share of their mean, before what differs between them outweighs the assumption."""
_ASSUMED_CONTENTION = 0.5
_PRIOR_BUSY = 0.1
_LEAST_FIXED = 0.02
_CHANGED = 0.3
"""A batch that takes so much more or less than others of its size is of another model, or another device."""


@dataclass(frozen=True, slots=True)
class Service:
    """A model's service time in seconds, by the rows of a batch and the instances of a device that are busy."""

    fixed: float
    per_row: float
    contention: float = 0.0

    def seconds(self, rows: float, busy: float = 1.0) -> float:
        """Of one execution."""
        return (self.fixed + self.per_row * rows) * (1 + self.contention * max(0.0, busy - 1))

    def near(self, other: "Service", rows: float, busy: float, within: float) -> bool:
        """Whether both tell nearly the same, for one row alone and for a full batch with all instances busy."""
        return all(
            abs(self.seconds(*point) - other.seconds(*point)) <= within * other.seconds(*point)
            for point in ((1.0, 1.0), (rows, busy))
        )


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of about one size: their mean rows, what they took alone on the device, and how many there were."""

    rows: float
    seconds: float
    executions: float


@dataclass(frozen=True, slots=True)
class Experience:
    """Batches by size, each size about 1.4 times the one before, so that a quiet hour does not wipe out what a busy one
    taught; and how much slower executions were the more instances were busy.
    """

    sizes: tuple[Batches, ...] = ()
    busy_busy: float = 0.0
    busy_slower: float = 0.0

    def service(self) -> Service | None:
        """The straight line that fits best; None before anything was measured."""
        count = sum(each.executions for each in self.sizes)
        if count <= 0:
            return None
        rows = sum(each.executions * each.rows for each in self.sizes) / count
        seconds = sum(each.executions * each.seconds for each in self.sizes) / count
        varied = sum(each.executions * (each.rows - rows) ** 2 for each in self.sizes) / count
        together = sum(each.executions * (each.rows - rows) * (each.seconds - seconds) for each in self.sizes) / count
        prior = (_PRIOR_ROWS * rows) ** 2
        assumed = seconds * _ASSUMED_PER_ROW / (_ASSUMED_PER_ROW * rows + 1 - _ASSUMED_PER_ROW)
        per_row = (together + prior * assumed) / (varied + prior)
        per_row = min(max(0.0, per_row), (1 - _LEAST_FIXED) * seconds / rows)
        return Service(seconds - per_row * rows, per_row, self.contention())

    def contention(self) -> float:
        """From 0 to 1."""
        measured = (self.busy_slower + _PRIOR_BUSY * _ASSUMED_CONTENTION) / (self.busy_busy + _PRIOR_BUSY)
        return min(1.0, max(0.0, measured))

    def learnt(self, rows: float, seconds: float, busy: float, executions: float) -> "Experience":
        """After `executions` more: their mean `rows` and `seconds`, and the instances of a device busy meanwhile."""
        if executions <= 0 or rows <= 0 or seconds <= 0:
            return self
        beside, known = max(0.0, busy - 1), self.service()
        alone = seconds / (1 + self.contention() * beside)
        sizes = _with(self.sizes, Batches(rows, alone, executions))
        if known is None or beside == 0:
            return Experience(sizes, self.busy_busy, self.busy_slower)
        share = min(1.0, beside) * executions / (executions + _MOST_EVIDENCE)
        slower = seconds / known.seconds(rows) - 1
        return Experience(
            sizes,
            self.busy_busy + share * (beside * beside - self.busy_busy),
            self.busy_slower + share * (beside * slower - self.busy_slower),
        )


def _with(sizes: tuple[Batches, ...], new: Batches) -> tuple[Batches, ...]:
    """Sizes with more batches of one of them. If those changed, the others are taken to have changed alike."""
    size = _size(new)
    before = next((each for each in sizes if _size(each) == size), None)
    others = tuple(each for each in sizes if each is not before)
    if before is None:
        return (*others, Batches(new.rows, new.seconds, min(new.executions, _MOST_EVIDENCE)))
    change = new.seconds / new.rows * before.rows / before.seconds
    if abs(change - 1) > _CHANGED:
        others = tuple(Batches(each.rows, each.seconds * change, each.executions) for each in others)
        return (*others, Batches(new.rows, new.seconds, min(new.executions, _MOST_EVIDENCE)))
    share = new.executions / (before.executions + new.executions)
    mixed = Batches(
        before.rows + share * (new.rows - before.rows),
        before.seconds + share * (new.seconds - before.seconds),
        min(before.executions + new.executions, _MOST_EVIDENCE),
    )
    return (*others, mixed)


def _size(batches: Batches) -> int:
    return round(2 * log2(max(1.0, batches.rows)))
