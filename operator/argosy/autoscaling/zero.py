"""To zero after idle, and back at the first request."""

from msgspec import Struct

from argosy.api.conditions import Reason
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.policy import Bounds, Policy
from argosy.autoscaling.words import bound
from argosy.planning.amounts import counted


class Zero(Struct, frozen=True):
    """`replicas` there are to be, where that has nothing to do with the load."""

    replicas: int
    reason: Reason
    why: str


def to_or_from_zero(policy: Policy, replicas: int, memory: Memory, held: int, foreseen: int = 0) -> Zero | None:
    """None where there are replicas that the load decides about. `replicas` are those there are, `foreseen` those that
    a load needs which is about to come.
    """
    bounds = policy.bounds
    if bounds.max_replicas == 0:
        return Zero(0, Reason.AT_MAXIMUM, bound(bounds.max_by, 0))
    if replicas == 0:
        return _wake(bounds, held, foreseen) if held or bounds.min_replicas or foreseen else _SLEEPS
    if bounds.min_replicas > 0 or held or foreseen or not _idle(policy, memory):
        return None
    return Zero(0, Reason.SCALED_DOWN, f"no request came for {policy.pace.idle_s:g} s")


_SLEEPS = Zero(0, Reason.AT_MINIMUM, "no request waits; the first one starts it")


def _wake(bounds: Bounds, held: int, foreseen: int) -> Zero:
    if held:
        why = f"{counted(held, 'request')} waited for it"
    elif foreseen:
        why = "load has come at equal intervals, and the next is about to"
    else:
        why = bound(bounds.min_by, bounds.min_replicas)
    return Zero(min(bounds.max_replicas, max(1, bounds.min_replicas, foreseen)), Reason.SCALED_UP, why)


def _idle(policy: Policy, memory: Memory) -> bool:
    """Nothing came for as long as that takes, and somebody watched all the time, up to what was just measured."""
    if memory.active_at is None or memory.seen_from is None or memory.measured_at is None or not memory.anew:
        return False
    quiet_from = max(memory.active_at, memory.seen_from)
    if memory.scaled is not None:
        quiet_from = max(quiet_from, memory.scaled.at)
    return (memory.measured_at - quiet_from).total_seconds() >= policy.pace.idle_s
