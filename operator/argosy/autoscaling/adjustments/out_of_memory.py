"""Reductions after an out-of-memory error: smaller batches first, then fewer instances.

A reduction stays as long as the versions, the footprint and the GPUs are the ones that failed. Once one of them
changes, the full allocation is tried again.
"""

from dataclasses import replace

from msgspec import structs

from argosy.autoscaling.decision import Lowering
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Served
from argosy.autoscaling.stage import Stage
from argosy.planning.amounts import gib, quantity


def lowered(stage: Stage) -> tuple[Stage, str]:
    """Return the stage with its allocation reduced to fit GPU memory, and the reason if that changed in this round.

    There is at most one step per window, since errors from before a step are still in its window. Everything is
    restored once another workload is served.
    """
    signals, memory, served = stage.signals, stage.memory, stage.policy.served
    if signals is None:
        return stage, ""
    lowering = memory.lowering
    if lowering is None and stage.allocation.max_batch is not None:  # by a status that does not say for what
        lowering = Lowering(stage.now, _failed(served, signals), "memory ran out before")
        stage = structs.replace(stage, memory=structs.replace(memory, lowering=lowering))
    if lowering is not None and (other := _other(lowering.served, served)):
        allocation = structs.replace(stage.allocation, max_batch=None)
        why = f"{other}: what ran out of memory is tried again"
        return _with(structs.replace(stage, allocation=allocation), None), why
    is_lowered = (stage.now - memory.lowered_at).total_seconds() <= signals.window_s
    if not signals.out_of_memory or not memory.measured.is_new or is_lowered:
        return stage, ""
    return _smaller(stage, signals)


def _with(stage: Stage, lowering: Lowering | None) -> Stage:
    memory = structs.replace(stage.memory, lowering=lowering, lowered_at=stage.now)
    return structs.replace(stage, memory=memory)


def _smaller(stage: Stage, signals: Signals) -> tuple[Stage, str]:
    failures = round((signals.out_of_memory or 0.0) * signals.window_s)
    failed = f"{quantity(max(1, failures), 'execution')} ran out of memory"
    allocation, bounds, lowering = stage.allocation, stage.policy.bounds, stage.memory.lowering
    most_instances = lowering.most_instances if lowering is not None else None
    largest = stage.largest_batch if bounds.smaller_batches and bounds.max_batch else 0
    single = "batches of 1 row" if bounds.smaller_batches else ""
    instances = quantity(allocation.instances, "instance")
    if largest > 1:
        allocation = structs.replace(allocation, max_batch=largest // 2)
        why = f"{failed}: batches of at most {quantity(largest // 2, 'row')} instead of {largest}"
    elif allocation.instances > max(1, bounds.min_instances):
        most_instances = allocation.instances - 1
        why = f"{_even(failed, single)}: {quantity(most_instances, 'instance')} instead of {allocation.instances}"
        allocation = structs.replace(allocation, instances=most_instances)
    else:
        why = f"{_even(failed, single, instances)}: nothing smaller is left"
    lowering = Lowering(stage.now, _failed(stage.policy.served, signals), why, most_instances)
    return _with(structs.replace(stage, allocation=allocation), lowering), why


def _even(failed: str, *least: str) -> str:
    """Return that it failed even with these smallest settings, in words; empty settings are left out."""
    parts = " and ".join(filter(None, least))
    return f"{failed} with {parts}" if parts else failed


def _failed(served: Served, signals: Signals) -> Served:
    """Return the workload that failed: `served` with the failing versions, or with all if those are unknown."""
    return replace(served, versions=signals.failing or served.versions)


def _other(failed: Served, served: Served) -> str:
    """Return the difference to the workload that failed, in words; empty if there is none or it is unknown."""
    if failed.versions and served.versions and not set(failed.versions) & set(served.versions):
        now, then = (" and ".join(map(str, versions)) for versions in (served.versions, failed.versions))
        return f"version {now} is served instead of {then}"
    if failed.footprint and served.footprint and served.footprint != failed.footprint:
        return f"the footprint is {served.footprint} instead of {failed.footprint}"
    if 0 < failed.gpu_memory < served.gpu_memory:
        return f"its GPUs have {gib(served.gpu_memory)} instead of {gib(failed.gpu_memory)}"
    return ""
