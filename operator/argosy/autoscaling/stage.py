"""A stage: what is known of one model, what it asks for, and what its replicas are set to in place."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, structs

from argosy.autoscaling.capacity.options import Option
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.load import Load, load_of, most_instances, options_of
from argosy.autoscaling.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.out_of_memory import Lowered, lowered
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.recommend import Recommended, recommended, unserved

ANYWHERE = SpareCapacity()


class Stage(Struct, frozen=True):
    """One model of an ensemble. Of its policy the instances, the window and the targets other than latency count; its
    allocation's replicas are the ensemble's. `spare`: its own instances.
    """

    policy: Policy
    allocation: Allocation
    signals: Signals | None
    spare: SpareCapacity = ANYWHERE


class Part(Struct, frozen=True):
    """A stage with what was estimated: its `load`, the `options` of a replica, and what is `recommended`. `signals` are
    None where they are of no use, which `error` explains.
    """

    policy: Policy
    before: Allocation
    signals: Signals | None
    error: str
    spare: SpareCapacity
    lowered: Lowered
    load: Load
    options: tuple[Option, ...] = ()
    recommended: Recommended | None = None

    @property
    def memory(self) -> Memory:
        """What is known of it."""
        return self.lowered.memory

    @property
    def present(self) -> Allocation:
        """What it has, within bounds and within what memory allows."""
        return self.lowered.allocation

    @property
    def expected(self) -> float:
        """Requests a second that the recommendation is for."""
        return self.load.rate / self.load.rows

    @property
    def holds(self) -> float | None:
        """Requests a second that a replica holds at its best; None where that is not known."""
        return self.options[-1].rate / self.load.rows if self.options and self.options[-1].rate else None

    def recommending(self, queries: Mapping[str, float], now: datetime) -> "Part":
        """Return the part with what it asks for."""
        options = options_of(self.policy, self.present, self.spare, self.memory)
        if self.signals is None:
            recommendation = unserved(self.present, self.memory, self.load, options)
            return structs.replace(self, options=options, recommended=recommendation)
        recommendation = recommended(
            self.policy, self.present, self.signals, self.memory, self.load, options, queries, now
        )
        return structs.replace(self, options=options, recommended=recommendation)

    def set(self, replicas: int, memory: Memory, *, down: bool) -> Allocation:
        """Return the allocation with so many replicas, of which only those that were measured take requests now.
        `down`: whether less is allowed. `memory` has what is recommended now.
        """
        option = self._option(replicas, memory, down=down) if self.recommended is not None and replicas else None
        if option is None:
            return structs.replace(self.present, replicas=replicas)
        after = Allocation(replicas, option.instances, option.window_s, self.present.max_batch)
        return self.present if after == self.present else after

    def _option(self, replicas: int, memory: Memory, *, down: bool) -> Option | None:
        """Return what replicas are to be set to; None to leave them. Up at once, since it costs no GPU."""
        if not self.options or self.signals is None:
            return None
        serving = max(1, min(self.signals.servers or replicas, self.present.replicas, replicas))
        needed = _first(self.options, self.load.rate / serving)
        most = max(self.load.rate, *(past.rate for past in memory.recommendations))
        enough = max(needed, _first(self.options, most / replicas))
        here = self._here()
        if self.load.rate > serving * self.options[-1].rate and (more := self._untried(memory)) is not None:
            return more
        if here is None:
            return self.options[enough] if down and not self._is_on_trial(memory) else None
        fewer = replicas < self.present.replicas and here < enough
        if here < needed or fewer or (down and here > enough):
            return self.options[enough]
        return None

    def _is_on_trial(self, memory: Memory) -> bool:
        """Return whether it has more instances than were ever measured at work, and not for a whole window yet."""
        change, measured = memory.change, memory.measured.at
        if memory.estimates.engine is not None or self.present.instances <= memory.estimates.experience.busiest:
            return False
        tried_s = (measured - change.at).total_seconds() if change is not None and measured is not None else 0.0
        return tried_s <= self.policy.pace.stabilization_s

    def _here(self) -> int | None:
        """Return the present setting's index; None where it is not among those of use."""
        for index, option in enumerate(self.options):
            if (option.instances, option.window_s) == (self.present.instances, self.present.window_s):
                return index
        return None

    def _untried(self, memory: Memory) -> Option | None:
        """Return one instance more than was ever measured at work, as long as the last one was worth it: what it holds
        counts once it is measured.
        """
        best, measured = self.options[-1], memory.estimates.experience.busiest
        if memory.estimates.engine is not None or best.instances < measured or self.present.instances > measured:
            return None
        if measured + 1 > most_instances(self.policy, self.present, self.spare, memory):
            return None
        return Option(measured + 1, best.window_s, best.rate)


def part_of(
    policy: Policy,
    allocation: Allocation,
    signals: Signals | None,
    error: str,
    spare: SpareCapacity,
    memory: Memory,
    queued: int,
    now: datetime,
) -> Part:
    """Return the part of a stage, after what want of memory and bounds leave of its allocation."""
    present = allocation.within(policy.bounds)
    less = lowered(policy, present, signals, memory, now) if signals is not None else Lowered(present, memory)
    load = load_of(policy, signals, less.memory, queued)
    return Part(policy, allocation, signals, error, spare, less, load)


def _first(options: tuple[Option, ...], rate: float) -> int:
    """Return the index of the cheapest option that holds the rate, or of the best."""
    for index, option in enumerate(options):
        if option.rate >= rate:
            return index
    return len(options) - 1
