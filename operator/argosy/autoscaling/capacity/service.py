"""How long an execution takes, learnt from what was measured.

`seconds = (fixed + per_row * rows) * (1 + contention * (busy - 1))`: a part that every batch pays, a part for each row,
and what instances on one device cost each other (0: nothing, 1: they only take turns).
"""

from math import log2

from msgspec import Struct, structs

_MOST_EVIDENCE = 500.0
"""Executions of one kind that are remembered: what was measured before these fades."""
_WEIGHT = 20.0
"""Executions of one kind, of which more tell nothing new: what is left is what the straight line is wrong by."""
_ASSUMED_PER_ROW = 0.05
"""Of the time of one row alone: what the row costs, as long as nobody saw batches of different sizes. Too little is
soon found out, by the larger batches that it leads to; too much never is.
"""
_PRIOR_ROWS = 0.05
"""How much batches must differ, as a share of their mean, before what differs between them outweighs the assumption."""
_ASSUMED_CONTENTION = 0.3
_PRIOR_EXECUTIONS = 2.0
"""Executions that are wrong by all of their time weigh as much as contention that is wrong by one."""
_CONTENTIONS = tuple(step / 20 for step in range(21))
_LEAST_FIXED = 0.02
_LEAST_OF_STEPS = 0.1
"""Of the time of an engine's step: so much is its own, whatever prompts take."""
_AS_FORESEEN = 0.03
"""What takes as long as foreseen, but for this share, changes nothing that is known."""
_CHANGED = 0.5
"""A batch that takes so much more or less than others of its kind may be of another model, or another device."""
_CONVINCED = 8
"""So many surprises one after the other, and it is."""


class Service(Struct, frozen=True):
    """A model's service time in seconds, by the rows of a batch and the instances of a device that are busy."""

    fixed: float
    per_row: float
    contention: float = 0.0

    def seconds(self, rows: float, busy: float = 1.0) -> float:
        """Of one execution."""
        return (self.fixed + self.per_row * rows) * (1 + self.contention * max(0.0, busy - 1))

    def near(self, other: "Service", rows: float, busy: float, within: float) -> bool:
        """Return whether both tell nearly the same, for one row alone and for a full batch with all instances busy."""
        return all(
            abs(self.seconds(*point) - other.seconds(*point)) <= within * other.seconds(*point)
            for point in ((1.0, 1.0), (rows, busy))
        )


class Batches(Struct, frozen=True):
    """Batches of about one size beside about as many others: their mean rows, instances of the device that were busy,
    and seconds, and how many there were. Of an engine's steps also how many `prompts` each waited for, on average.
    """

    rows: float
    busy: float
    seconds: float
    executions: float
    prompts: float = 0.0

    @property
    def kind(self) -> tuple[int, int]:
        """Each size is about 1.4 times the one before."""
        return round(2 * log2(max(1.0, self.rows))), round(2 * self.busy)

    @property
    def weight(self) -> float:
        """How much it counts beside other kinds."""
        return min(self.executions, _WEIGHT)

    def mixed(self, new: "Batches") -> "Batches":
        """With more of the same kind."""
        share = new.executions / (self.executions + new.executions)
        return Batches(
            self.rows + share * (new.rows - self.rows),
            self.busy + share * (new.busy - self.busy),
            self.seconds + share * (new.seconds - self.seconds),
            min(self.executions + new.executions, _MOST_EVIDENCE),
            self.prompts + share * (new.prompts - self.prompts),
        )

    def without(self, prompt_s: float) -> "Batches":
        """Less what prompts took, each of which takes so long."""
        seconds = max(_LEAST_OF_STEPS * self.seconds, self.seconds - self.prompts * prompt_s)
        return structs.replace(self, seconds=seconds) if self.prompts else self


class Experience(Struct, frozen=True):
    """Batches by kind, so that a quiet hour does not wipe out what a busy one taught. `surprises`: so many of the
    latest were not as others of their kind.
    """

    batches: tuple[Batches, ...] = ()
    surprises: int = 0

    @property
    def busiest(self) -> int:
        """The most instances of a device that were seen at work together."""
        return round(max((each.busy for each in self.batches), default=1.0))

    def learnt(self, new: Batches, prompt_s: float = 0.0) -> "Experience":
        """After more batches; a prompt of an engine takes `prompt_s`."""
        if new.executions <= 0 or new.rows <= 0 or new.seconds <= 0:
            return self
        new = structs.replace(new, executions=min(new.executions, _MOST_EVIDENCE))
        before = next((each for each in self.batches if each.kind == new.kind), None)
        if before is None:
            return Experience((*self.batches, new))
        if abs(new.without(prompt_s).seconds / before.without(prompt_s).seconds - 1) > _CHANGED:
            if self.surprises >= _CONVINCED:
                return Experience((new,))
            return structs.replace(self, surprises=self.surprises + 1)
        return Experience((*(each for each in self.batches if each is not before), before.mixed(new)))

    def as_foreseen(self, new: Batches, service: Service | None, prompt_s: float = 0.0) -> bool:
        """Return whether these take as long as was reckoned with, and are of a kind that was seen before."""
        if service is None or all(each.kind != new.kind for each in self.batches):
            return False
        return abs(new.without(prompt_s).seconds / service.seconds(new.rows, new.busy) - 1) <= _AS_FORESEEN

    def service(self, prompt_s: float = 0.0) -> Service | None:
        """Return what fits best, without prompts, each of which takes so long; None before anything was measured."""
        if not self.batches:
            return None
        if prompt_s:
            return Experience(tuple(each.without(prompt_s) for each in self.batches)).service()
        if all(each.busy <= 1 for each in self.batches):
            return self._fitted(_ASSUMED_CONTENTION)
        return min((self._fitted(each) for each in _CONTENTIONS), key=self._wrong)

    def _fitted(self, contention: float) -> Service:
        """The straight line through what each would have taken alone."""
        count = sum(each.weight for each in self.batches)
        alone = [(each, each.seconds / (1 + contention * max(0.0, each.busy - 1))) for each in self.batches]
        rows = sum(each.weight * each.rows for each in self.batches) / count
        seconds = sum(each.weight * took for each, took in alone) / count
        varied = sum(each.weight * (each.rows - rows) ** 2 for each in self.batches) / count
        together = sum(each.weight * (each.rows - rows) * (took - seconds) for each, took in alone) / count
        prior = (_PRIOR_ROWS * rows) ** 2
        assumed = seconds * _ASSUMED_PER_ROW / (_ASSUMED_PER_ROW * rows + 1 - _ASSUMED_PER_ROW)
        per_row = (together + prior * assumed) / (varied + prior)
        per_row = min(max(0.0, per_row), (1 - _LEAST_FIXED) * seconds / rows)
        return Service(seconds - per_row * rows, per_row, contention)

    def _wrong(self, service: Service) -> float:
        """The squares of what it is wrong by, as shares."""
        assumed = _PRIOR_EXECUTIONS * (service.contention - _ASSUMED_CONTENTION) ** 2
        return assumed + sum(
            each.weight * (service.seconds(each.rows, each.busy) / each.seconds - 1) ** 2 for each in self.batches
        )
