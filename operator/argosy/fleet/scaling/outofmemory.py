"""Out of memory: smaller batches first, then fewer instances. They stay lower; what failed would fail again."""

from dataclasses import dataclass, replace
from datetime import datetime

from argosy.fleet.amounts import counted
from argosy.fleet.scaling.decision import Allocation
from argosy.fleet.scaling.learning.memory import Memory, changed
from argosy.fleet.scaling.policy import Policy
from argosy.fleet.signals.signals import Signals


@dataclass(frozen=True, slots=True)
class Lowered:
    """`why` is empty where nothing was lowered."""

    allocation: Allocation
    memory: Memory
    why: str = ""

    def beside(self, because: str) -> str:
        """What was lowered, where anything was, before what else is decided by."""
        return f"{self.why}; {because}" if self.why else because


def lowered(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Lowered:
    """One step down for each window in which memory ran out: what failed before a step still counts within it. What was
    measured before says nothing of the step.
    """
    last = memory.out_of_memory_at
    if (
        not signals.out_of_memory
        or not memory.anew
        or (last is not None and (now - last).total_seconds() <= signals.window_s)
    ):
        return Lowered(allocation, memory)
    memory = changed(memory, out_of_memory_at=now)
    failed = f"{counted(max(1, round(signals.out_of_memory * signals.window_s)), 'execution')} ran out of memory"
    largest = allocation.max_batch or policy.bounds.max_batch
    if largest > 1:
        smaller = replace(allocation, max_batch=largest // 2)
        return Lowered(smaller, memory, f"{failed}: batches of at most {largest // 2} rows instead of {largest}")
    if allocation.instances > 1:
        fewer = allocation.instances - 1
        memory = changed(memory, most_instances=fewer)
        why = f"{failed} with batches of 1 row: {counted(fewer, 'instance')} instead of {allocation.instances}"
        return Lowered(replace(allocation, instances=fewer), memory, why)
    return Lowered(allocation, memory, f"{failed} with 1 instance and batches of 1 row: nothing smaller is left")
