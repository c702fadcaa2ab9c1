"""Out of memory: smaller batches first, then fewer instances.

They stay lower for the versions, the footprint and the GPUs that memory was short for: what failed would fail again.
With others, all is tried again.
"""

from dataclasses import replace
from datetime import datetime

from msgspec import Struct, structs

from argosy.autoscaling.decision import Allocation, Lowering
from argosy.autoscaling.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy, Served
from argosy.planning.amounts import gib, quantity


class Lowered(Struct, frozen=True):
    """What is left of an allocation for want of memory. `why` is empty where nothing changed."""

    allocation: Allocation
    memory: Memory
    why: str = ""

    def before(self, because: str) -> str:
        """Return what was lowered, where anything was, before what else is decided by."""
        return f"{self.why}; {because}" if self.why else because


def lowered(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Lowered:
    """One step down for each window in which memory ran out: what failed before a step still counts within it. What was
    measured before says nothing of the step. All of it up again once something else is served.
    """
    if allocation.max_batch is not None and memory.lowering is None:  # by a status that does not say for what
        memory = structs.replace(memory, lowering=Lowering(now, _failed(policy.served), "memory ran out before"))
    if memory.lowering is not None and (other := _other(memory.lowering.served, policy.served)):
        memory = structs.replace(memory, lowering=None, lowered_at=now)
        return Lowered(
            structs.replace(allocation, max_batch=None), memory, f"{other}: what ran out of memory is tried again"
        )
    last = memory.lowered_at
    if (
        not signals.out_of_memory
        or not memory.measured.is_new
        or (last is not None and (now - last).total_seconds() <= signals.window_s)
    ):
        return Lowered(allocation, memory)
    return _smaller(policy, allocation, signals, memory, now)


def _smaller(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, now: datetime) -> Lowered:
    failures = round((signals.out_of_memory or 0.0) * signals.window_s)
    failed = f"{quantity(max(1, failures), 'execution')} ran out of memory"
    bounds, most_instances = policy.bounds, memory.most_instances
    largest = allocation.max_batch or bounds.max_batch if bounds.smaller_batches else 0
    single = "batches of 1 row" if bounds.smaller_batches else ""
    if largest > 1:
        allocation = structs.replace(allocation, max_batch=largest // 2)
        why = f"{failed}: batches of at most {quantity(largest // 2, 'row')} instead of {largest}"
    elif allocation.instances > max(1, bounds.min_instances):
        most_instances = allocation.instances - 1
        why = f"{_even(failed, single)}: {quantity(most_instances, 'instance')} instead of {allocation.instances}"
        allocation = structs.replace(allocation, instances=most_instances)
    else:
        why = f"{_even(failed, single, quantity(allocation.instances, 'instance'))}: nothing smaller is left"
    lowering = Lowering(now, _failed(policy.served), why, most_instances)
    return Lowered(allocation, structs.replace(memory, lowering=lowering, lowered_at=now), why)


def _even(failed: str, *least: str) -> str:
    """Say that it failed with the least that there is of these, which say something."""
    parts = " and ".join(filter(None, least))
    return f"{failed} with {parts}" if parts else failed


def _failed(served: Served) -> Served:
    """Of what is served the versions that failed, or all where they cannot be told apart."""
    return replace(served, versions=served.failing or served.versions, failing=())


def _other(failed: Served, served: Served) -> str:
    """Return what is other than it was when memory ran out, in words; empty while any of that is still served, or
    where it is not known.
    """
    if failed.versions and served.versions and not set(failed.versions) & set(served.versions):
        return f"version {_numbers(served.versions)} is served instead of {_numbers(failed.versions)}"
    if failed.footprint and served.footprint and served.footprint != failed.footprint:
        return f"the footprint is {served.footprint} instead of {failed.footprint}"
    if 0 < failed.gpu_memory < served.gpu_memory:
        return f"its GPUs have {gib(served.gpu_memory)} instead of {gib(failed.gpu_memory)}"
    return ""


def _numbers(versions: tuple[int, ...]) -> str:
    return " and ".join(map(str, versions))
