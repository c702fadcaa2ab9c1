"""One member's decision: what was measured, what it asks for, what bounds, pace and room leave of that, and why."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import structs

from argosy.api.conditions import Reason
from argosy.autoscaling.case import NO_QUERIES, NOTHING_SAID, Case, bounded, decided, learnt, unusable
from argosy.autoscaling.decision import Allocation, Decision, Room
from argosy.autoscaling.ejection import ejection_of
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.outofmemory import lowered
from argosy.autoscaling.pace import Paced, doubted, fewer_instances, paced, remembered
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.setting import in_place
from argosy.autoscaling.wanted.needs import whole
from argosy.autoscaling.wanted.replicas import foreseen, wanted
from argosy.autoscaling.zero import to_or_from_zero


def decide(
    policy: Policy,
    allocation: Allocation,
    signals: Signals | None,
    room: Room,
    memory: Memory,
    now: datetime,
    *,
    queries: Mapping[str, float] = NO_QUERIES,
    held: int = 0,
) -> tuple[Decision, Memory]:
    """Return what `allocation` is to become, and what the next decision has to know.

    `queries`: the values of the policy's queries that are to be had, by name. `held`: requests that wait where nothing
    serves the member. Signals that are missing, or not of now, take nothing away.
    """
    case = Case(policy, allocation, room, now, queries, held)
    memory, usable = learnt(policy, allocation, signals, memory.since(now), now, held)
    zero = to_or_from_zero(policy, allocation.replicas, memory, held, foreseen(policy, allocation, room, memory, now))
    present = bounded(policy, allocation)
    if zero is not None:
        pace = Paced(zero.replicas, zero.replicas, zero.reason)
        return decided(case, structs.replace(present, replicas=zero.replicas), pace, zero.why, None, memory)
    if usable is None:
        pace = Paced(present.replicas, present.replicas, Reason.NO_SIGNALS)
        return decided(case, present, pace, unusable(signals, now), None, memory)
    return _by_load(case, present, usable, memory)


def _by_load(case: Case, present: Allocation, signals: Signals, memory: Memory) -> tuple[Decision, Memory]:
    policy, now = case.policy, case.now
    less = lowered(policy, present, signals, memory, now)
    present, memory = less.allocation, less.memory
    found = wanted(policy, present, signals, case.room, memory, case.queries, case.held, now)
    if found is None:
        why = less.why or NOTHING_SAID
        pace = Paced(present.replicas, present.replicas, Reason.STEADY if less.why else Reason.NO_SIGNALS)
        return decided(case, present, pace, why, None, memory)
    memory = remembered(policy, present, doubted(policy, present, found, signals, memory, now), found, now)
    pace = paced(policy, present, case.room, memory, found, now)
    lowest = max(found.up, whole(found.down))
    down = pace.replicas <= lowest and not signals.unmeasured and fewer_instances(policy, memory, now)
    after = in_place(present, pace.replicas, signals, found, memory, down=down)
    ejection = ejection_of(policy, present, signals, memory)
    away = ejection.among([each.server for each in signals.queues])
    return decided(case, after, pace, less.beside(found.need.because), found.need, memory, ejection, away)
