"""How long an execution takes, estimated from what was measured.

`seconds = (fixed + per_row * rows) * (1 + contention * (busy - 1))`: a part that every batch pays, a part for each row,
and what the busy instances of one device cost each other (0: nothing, 1: they only take turns).
"""

from math import ceil, log2

from msgspec import Struct, structs

from argosy.autoscaling.settings import CHANGED, CHANGES, EVIDENCE, ROW_SHARE, SAME, WEIGHT

_CONTENTIONS = tuple(step / 20 for step in range(21))


class Service(Struct, frozen=True):
    """A model's service time in seconds, by the rows of a batch and the instances of a device that are busy."""

    fixed: float
    per_row: float
    contention: float = 1.0

    def seconds(self, rows: float, busy: float = 1.0) -> float:
        """Return the seconds of one execution."""
        return (self.fixed + self.per_row * rows) * (1 + self.contention * max(0.0, busy - 1))

    def is_near(self, other: "Service", rows: float, busy: float) -> bool:
        """Return whether both say the same of one row alone, and of a full batch with all instances busy."""
        return all(
            abs(self.seconds(*point) - other.seconds(*point)) <= SAME * other.seconds(*point)
            for point in ((1.0, 1.0), (rows, busy))
        )


class Batches(Struct, frozen=True):
    """Batches of about one size next to about as many others: their mean rows, busy instances of the device and
    seconds, and how many there were. Of an engine's steps also how many `prompts` each waited for, on average.
    """

    rows: float
    busy: float
    seconds: float
    executions: float
    prompts: float = 0.0

    @property
    def kind(self) -> tuple[int, int]:
        """The size class, each about 1.4 times the one before, and that of busy instances."""
        return round(2 * log2(max(1.0, self.rows))), round(2 * self.busy)

    @property
    def weight(self) -> float:
        """How much it counts in the fit."""
        return min(self.executions, WEIGHT)

    def mixed(self, new: "Batches") -> "Batches":
        """Return the means with more of the same kind."""
        share = new.executions / (self.executions + new.executions)
        return Batches(
            self.rows + share * (new.rows - self.rows),
            self.busy + share * (new.busy - self.busy),
            self.seconds + share * (new.seconds - self.seconds),
            min(self.executions + new.executions, EVIDENCE),
            self.prompts + share * (new.prompts - self.prompts),
        )

    def without(self, prompt_s: float) -> "Batches":
        """Return them less what prompts took, each of which takes so long; at least the usual share is the step's."""
        seconds = max(SAME * self.seconds, self.seconds - self.prompts * prompt_s)
        return structs.replace(self, seconds=seconds) if self.prompts else self


class Experience(Struct, frozen=True):
    """Batches by kind, so that an idle hour does not wipe out what a busy one showed. `changes`: so many of the latest
    measurements differed too much from others of their kind.
    """

    batches: tuple[Batches, ...] = ()
    changes: int = 0

    @property
    def busiest(self) -> int:
        """The most instances of a device that were measured at work together, on average, rounded up."""
        return ceil(max((batches.busy for batches in self.batches), default=1.0) - 0.05)

    def after(self, new: Batches, prompt_s: float = 0.0) -> "Experience":
        """Return the experience with more batches; a prompt of an engine takes `prompt_s`."""
        if new.executions <= 0 or new.rows <= 0 or new.seconds <= 0:
            return self
        new = structs.replace(new, executions=min(new.executions, EVIDENCE))
        before = next((batches for batches in self.batches if batches.kind == new.kind), None)
        if before is None:
            return Experience((*self.batches, new))
        if abs(new.without(prompt_s).seconds / before.without(prompt_s).seconds - 1) > CHANGED:
            if self.changes >= CHANGES:
                return Experience((new,))
            return structs.replace(self, changes=self.changes + 1)
        return Experience((*(batches for batches in self.batches if batches is not before), before.mixed(new)))

    def explains(self, new: Batches, service: Service | None, prompt_s: float = 0.0) -> bool:
        """Return whether these are of a known kind and take nearly as long as `service` says, so that no fit is due."""
        if service is None or all(batches.kind != new.kind for batches in self.batches):
            return False
        return abs(new.without(prompt_s).seconds / service.seconds(new.rows, new.busy) - 1) <= SAME / 3

    def service(self, prompt_s: float = 0.0) -> Service | None:
        """Return what fits best, without prompts, each of which takes so long; None before anything was measured.

        Instances are taken to gain nothing until several were measured at work.
        """
        if not self.batches:
            return None
        batches = tuple(kind.without(prompt_s) for kind in self.batches)
        if self.busiest <= 1:
            return _fitted(batches, 1.0)
        return min((_fitted(batches, contention) for contention in _CONTENTIONS), key=lambda fit: _wrong(batches, fit))


def _fitted(batches: tuple[Batches, ...], contention: float) -> Service:
    """Return the straight line through what each kind would have taken alone, drawn to the usual share of a row."""
    count = sum(kind.weight for kind in batches)
    alone = [(kind, kind.seconds / (1 + contention * max(0.0, kind.busy - 1))) for kind in batches]
    rows = sum(kind.weight * kind.rows for kind in batches) / count
    seconds = sum(kind.weight * took for kind, took in alone) / count
    varied = sum(kind.weight * (kind.rows - rows) ** 2 for kind in batches) / count
    together = sum(kind.weight * (kind.rows - rows) * (took - seconds) for kind, took in alone) / count
    prior = (ROW_SHARE * rows) ** 2
    usual = seconds * ROW_SHARE / (ROW_SHARE * rows + 1 - 0.05)
    per_row = min(max(0.0, (together + prior * usual) / (varied + prior)), seconds / rows)
    return Service(seconds - per_row * rows, per_row, contention)


def _wrong(batches: tuple[Batches, ...], service: Service) -> float:
    """Return the sum of squares of the shares by which the fit is wrong."""
    return sum(kind.weight * (service.seconds(kind.rows, kind.busy) / kind.seconds - 1) ** 2 for kind in batches)
