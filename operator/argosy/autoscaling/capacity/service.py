"""The time of an execution, estimated from measurements.

`seconds = (fixed + per_row * rows) * (1 + contention * (busy - 1))`: a fixed part, a part per row, and the slowdown by
other busy instances of the device (0: none, 1: they take turns).
"""

from math import ceil, log2

from msgspec import Struct, structs

from argosy.autoscaling.settings import EVIDENCE, ROW_SHARE, SAME, VARIATION, WEIGHT

_MOST = 1e9
"""More rows than a batch has, and more seconds than it takes; the reciprocal is less of either than can be measured."""
_CONTENTIONS = tuple(step / 20 for step in range(21))


class Service(Struct, frozen=True):
    """A model's service time in seconds, by the rows of a batch and the instances of a device that are busy."""

    fixed: float
    per_row: float
    contention: float = 1.0

    def seconds(self, rows: float, busy: float = 1.0) -> float:
        """Return the seconds of one execution."""
        return (self.fixed + self.per_row * rows) * (1 + self.contention * max(0.0, busy - 1))


class Batches(Struct, frozen=True):
    """Executed batches of similar size and similar concurrency: their mean rows, busy instances of the device and
    seconds, and their number. For an engine's steps also the mean number of `prompts` that each waited for.
    """

    rows: float
    busy: float
    seconds: float
    executions: float
    prompts: float = 0.0

    @property
    def kind(self) -> tuple[int, int]:
        """The class of rows, in steps of a factor of 1.4, and the class of busy instances, in steps of a half."""
        return round(2 * log2(max(1.0, self.rows))), round(2 * self.busy)

    @property
    def weight(self) -> float:
        """The weight in the fit."""
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
        """Return the steps without the time of prompts, `prompt_s` each; at least the share `SAME` remains."""
        seconds = max(SAME * self.seconds, self.seconds - self.prompts * prompt_s)
        return structs.replace(self, seconds=seconds) if self.prompts else self

    def error(self, service: Service) -> float:
        """Return the relative difference between the time by `service` and the measured one."""
        return abs(service.seconds(self.rows, self.busy) / self.seconds - 1)


class Experience(Struct, frozen=True):
    """Batches by kind, the newest last, so that an idle hour does not wipe out what a busy one showed."""

    batches: tuple[Batches, ...] = ()

    @property
    def busiest(self) -> int:
        """The largest mean number of busy instances of a device that was measured, rounded up."""
        return ceil(max((batches.busy for batches in self.batches), default=1.0) - 0.05)

    def after(self, new: Batches) -> "Experience":
        """Return the experience with more batches; impossible ones are left out."""
        least = 1 / _MOST
        if not (least <= new.rows <= _MOST and least <= new.seconds <= _MOST and new.executions >= least):
            return self
        before = next((batches for batches in self.batches if batches.kind == new.kind), None)
        others = tuple(batches for batches in self.batches if batches is not before)
        new = structs.replace(new, executions=min(new.executions, EVIDENCE))
        return Experience((*others, new if before is None else before.mixed(new)))

    def service(
        self, used: Service | None = None, prompt_s: float = 0.0, row_share: float = ROW_SHARE
    ) -> Service | None:
        """Return the service curve that fits best without prompts of `prompt_s`; None before the first measurement. The
        curve in use stays as long as it matches the newest batches.

        Until several instances were measured busy, they are assumed to take turns.
        """
        batches = tuple(kind.without(prompt_s) for kind in self.batches)
        if not batches or (used is not None and batches[-1].error(used) <= SAME / 3):
            return used
        contentions = _CONTENTIONS if self.busiest > 1 else (1.0,)
        fits = (_fitted(batches, contention, row_share) for contention in contentions)
        return min(fits, key=lambda fit: sum(kind.weight * kind.error(fit) ** 2 for kind in batches))


def _fitted(batches: tuple[Batches, ...], contention: float, row_share: float) -> Service:
    """Return the regression line of time over rows, without contention, with the prior `row_share` of a row."""
    count = sum(kind.weight for kind in batches)
    alone = [(kind, kind.seconds / (1 + contention * max(0.0, kind.busy - 1))) for kind in batches]
    rows = sum(kind.weight * kind.rows for kind in batches) / count
    seconds = sum(kind.weight * took for kind, took in alone) / count
    varied = sum(kind.weight * (kind.rows - rows) ** 2 for kind in batches) / count
    together = sum(kind.weight * (kind.rows - rows) * (took - seconds) for kind, took in alone) / count
    prior = (VARIATION * rows) ** 2
    usual = seconds * row_share / (row_share * rows + 1 - row_share)
    per_row = min(max(0.0, (together + prior * usual) / (varied + prior)), seconds / rows)
    return Service(seconds - per_row * rows, per_row, contention)
