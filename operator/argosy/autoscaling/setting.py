"""What a replica is set to in place: instances and window. Cheap and quick, so up at once; down as replicas do."""

from argosy.autoscaling.capacity.settings import Setting
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.wanted.needs import MARGIN
from argosy.autoscaling.wanted.replicas import Wanted


def in_place(
    allocation: Allocation, replicas: int, signals: Signals, wanted: Wanted, memory: Memory, *, down: bool
) -> Allocation:
    """Return the allocation with `replicas` that are to be, of which only those of `allocation` that were measured take
    requests now. `down`: whether less is allowed now, which it is once no replica is to go.
    """
    serving = min(signals.servers or allocation.replicas, allocation.replicas)
    setting = _setting(allocation, replicas, serving, wanted, memory, down=down)
    found = Allocation(replicas, setting.instances, setting.window_s, allocation.max_batch)
    return allocation if found == allocation else found


def _setting(
    allocation: Allocation, replicas: int, serving: int, wanted: Wanted, memory: Memory, *, down: bool
) -> Setting:
    ladder = wanted.ladder
    if not ladder or replicas == 0:
        return Setting(allocation.instances, allocation.window_s, 0.0)
    needed = _first(ladder, wanted.load.rate / max(1, min(replicas, serving)))
    most_asked = max(wanted.load.rate, memory.kept_for.rate if memory.kept_for is not None else 0.0)
    enough = max(needed, _first(ladder, MARGIN * most_asked / replicas))
    at_present = _present(ladder, allocation)
    if at_present is None and not down and ladder[needed].instances < allocation.instances:
        # More than seems of use, by what was learnt so far: it goes as everything does that goes down.
        return Setting(allocation.instances, allocation.window_s, ladder[needed].rate)
    fewer = replicas < allocation.replicas and at_present is not None and at_present < enough
    if at_present is None or at_present < needed or fewer:
        return ladder[enough]
    return ladder[enough] if down and at_present > enough else ladder[at_present]


def _first(ladder: tuple[Setting, ...], rate: float) -> int:
    """The place of the cheapest setting that holds the rate, or of the best."""
    for place, each in enumerate(ladder):
        if each.rate >= rate:
            return place
    return len(ladder) - 1


def _present(ladder: tuple[Setting, ...], allocation: Allocation) -> int | None:
    """The place of the present setting; None where it is not among those that are of use."""
    window = allocation.window_s
    for place, each in enumerate(ladder):
        if each.instances == allocation.instances and each.window_s == window:
            return place
    return None
