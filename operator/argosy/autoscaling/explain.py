"""Texts of a decision: numbers with units, and the sentence with the change and its reason."""

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import lru_cache

from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.decision import Allocation
from argosy.planning.amounts import quantity


def seconds(value: float) -> str:
    """Return a duration in words: `85 ms`, `1.2 s`."""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def clock(now: datetime, seconds: float) -> str:
    """Return the time of day `seconds` after `now`, as `HH:MM:SS`."""
    return f"{now + timedelta(seconds=seconds):%H:%M:%S}"


def change(before: Allocation, after: Allocation) -> str:
    """Return `from 2 to 3 replicas and from 1 to 2 instances`; nothing where both are alike."""
    parts = []
    if before.replicas != after.replicas:
        parts.append(f"from {before.replicas} to {quantity(after.replicas, 'replica')}")
    if before.instances != after.instances:
        parts.append(f"from {before.instances} to {quantity(after.instances, 'instance')}")
    if before.window_s != after.window_s and after.window_s is not None:
        parts.append(f"to a batching window of {seconds(after.window_s)}")
    if before.max_batch != after.max_batch and after.max_batch is not None:
        parts.append(f"to batches of at most {quantity(after.max_batch, 'row')}")
    if before.max_batch is not None and after.max_batch is None:
        parts.append("to batches as large as the spec has them")
    return " and ".join(parts)


def sentence(before: Allocation, after: Allocation, because: str, limit: str) -> str:
    """Return one sentence: the change, the numbers that it follows from, and the limit that applies."""
    changed = change(before, after)
    what = f"Goes {changed}" if changed else f"Stays at {_allocation(after)}"
    return joined(f"{what}: {because}", limit)


@lru_cache(maxsize=20_000)
def service_times(service: Service, *, of_engine: bool) -> str:
    """Return the estimated time of an execution, or of a step of an engine that batches token by token."""
    times = f"takes {seconds(service.fixed)} and {seconds(service.per_row)} for each"
    if of_engine:
        return f"a step {times} sequence, without prompts"
    share = f", {service.contention:.0%} longer for each other busy instance of its device"
    return f"an execution {times} row{share if service.contention else ''}"


def withheld(servers: Collection[str]) -> str:
    """Return a clause that names the ejected servers; empty if there are none."""
    if not servers:
        return ""
    first, *others = sorted(servers)
    who = f"{first} and {quantity(len(others), 'other')} are" if others else f"{first} is"
    return f"{who} sent nothing until what waits there is worked off"


def joined(*clauses: str) -> str:
    """Return the non-empty clauses joined into one sentence with one full stop."""
    return "; ".join(clause.removesuffix(".") for clause in clauses if clause) + "."


def own_fault(error: Exception) -> str:
    """Return that an error is one of Argosy's own, and which."""
    return f"a fault of Argosy's own, please report it: {type(error).__name__}: {error}"


def bound(field: str, replicas: int) -> str:
    """Return `maxReplicas is 3`, for a field of the spec."""
    return f"{field.removeprefix('spec.')} is {replicas}"


def _allocation(allocation: Allocation) -> str:
    instances = f" with {quantity(allocation.instances, 'instance')}" if allocation.instances > 1 else ""
    return f"{quantity(allocation.replicas, 'replica')}{instances}"
