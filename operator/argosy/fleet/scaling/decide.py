"""One member's decision: what was measured, what it asks for, what bounds, pace and room leave of that, and why."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from argosy.api.conditions import Reason
from argosy.fleet.scaling.case import Case, bounded, decided, sensible, unusable
from argosy.fleet.scaling.decision import Allocation, Decision, Room
from argosy.fleet.scaling.learning.learn import learn, missed
from argosy.fleet.scaling.learning.memory import Memory
from argosy.fleet.scaling.learning.overdriven import reconsidered
from argosy.fleet.scaling.needs import whole
from argosy.fleet.scaling.outofmemory import lowered
from argosy.fleet.scaling.pace import Paced, paced, remembered, seen_whole
from argosy.fleet.scaling.policy import Policy
from argosy.fleet.scaling.setting import in_place
from argosy.fleet.scaling.wanted import wanted
from argosy.fleet.scaling.zero import to_or_from_zero
from argosy.fleet.signals.signals import Signals

_NOTHING = "nothing that was measured says how many replicas it needs"
_NO_QUERIES: Mapping[str, float] = MappingProxyType({})


def decide(
    policy: Policy,
    allocation: Allocation,
    signals: Signals | None,
    room: Room,
    memory: Memory,
    now: datetime,
    *,
    queries: Mapping[str, float] = _NO_QUERIES,
    held: int = 0,
) -> tuple[Decision, Memory]:
    """What `allocation` is to become, and what the next decision has to know.

    `queries`: the values of the policy's queries that are to be had, by name. `held`: requests that wait where nothing
    serves the member. Signals that are missing, or not of now, take nothing away.
    """
    case = Case(policy, allocation, room, now, queries, held)
    why_not = unusable(signals, now)
    memory = memory.since(now)
    usable = None if why_not or signals is None else sensible(signals)
    memory = missed(memory, now) if usable is None else learn(policy, allocation, usable, memory, now)
    zero = to_or_from_zero(policy, allocation.replicas, memory, held)
    present = bounded(policy, allocation)
    if zero is not None:
        pace = Paced(zero.replicas, zero.replicas, zero.reason)
        return decided(case, replace(present, replicas=zero.replicas), pace, zero.why, None, memory)
    if usable is None:
        pace = Paced(present.replicas, present.replicas, Reason.NO_SIGNALS)
        return decided(case, present, pace, why_not, None, memory)
    return _by_load(case, present, usable, memory)


def _by_load(case: Case, present: Allocation, signals: Signals, memory: Memory) -> tuple[Decision, Memory]:
    policy, now = case.policy, case.now
    less = lowered(policy, present, signals, memory, now)
    present, memory = less.allocation, less.memory
    found = wanted(policy, present, signals, case.room, memory, case.queries, case.held)
    if found is None:
        why = less.why or _NOTHING
        pace = Paced(present.replicas, present.replicas, Reason.STEADY if less.why else Reason.NO_SIGNALS)
        return decided(case, present, pace, why, None, memory)
    if found.load.waiting == 0:
        expected = found.load.expected
        memory = reconsidered(policy, present, expected, found.up, signals.window_s, memory, now)
    memory = remembered(policy, memory, found, now)
    pace = paced(policy, present, case.room, memory, found, now)
    serving = min(signals.servers or present.replicas, present.replicas)
    lowest = max(found.up, whole(found.down))
    down = pace.replicas <= lowest and not signals.unmeasured and seen_whole(policy, memory, now)
    setting = in_place(present, pace.replicas, serving, found, memory, down=down)
    after = replace(present, replicas=pace.replicas, instances=setting.instances, window_s=setting.window_s)
    why = f"{less.why}; {found.need.because}" if less.why else found.need.because
    return decided(case, after, pace, why, found.need, memory)
