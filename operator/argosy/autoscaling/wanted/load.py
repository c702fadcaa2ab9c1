"""What replicas are to hold: the rate that is expected, with the queue that is to be worked off, and of bursts what a
fleet has to last through.
"""

from datetime import datetime

from msgspec import Struct

from argosy.autoscaling.capacity.settings import Limits
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.learning.learn import counted_s
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.learning.overdriven import waiting_too_long
from argosy.autoscaling.learning.variation import largest_batch
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.wanted.needs import to_come

_DRAIN_S = 5.0
"""In which a queue that should not be there is to be worked off."""
_MOST_CATCHING_UP, _BY_ENGINES = 1.0, 2.0
"""Of what is expected. It stands in the queues of servers that are there, which new replicas only spare what comes. An
engine has no instances and no larger batches to work it off with meanwhile, so others take more off it.
"""
_CHANCE = 0.05
_BURST = 0.8
"""Of what is expected: where less would have been enough, a burst is what asks for it."""
_OF_LIMIT = 0.6
"""The share of the time that a request may wait that a burst may take of it: the rest is chance's, and that of servers
that have more of it than others.
"""


class Load(Struct, frozen=True):
    """Rows a second: `expected` to come when a new replica would be ready, `waiting` too long, to be caught up on.
    `noise`: the standard deviation that is chance in the first. `lasting`: what replicas are kept for, which is less
    than is expected during a burst: as much as would keep waits within their limits if it were over now. `rows`: of a
    request.
    """

    expected: float = 0.0
    waiting: float = 0.0
    noise: float = 0.0
    lasting: float = 0.0
    rows: float = 1.0

    @property
    def rate(self) -> float:
        """What is expected and what waits."""
        return self.expected + self.waiting


NO_LOAD = Load()


def load_of(policy: Policy, allocation: Allocation, signals: Signals, memory: Memory, held: int, now: datetime) -> Load:
    """Return what the ladder is held against. A few that wait may be chance, and ask for nothing."""
    rows = memory.rows
    if memory.demand is None:
        return Load(waiting=held / _DRAIN_S * rows, rows=rows)
    over_s = counted_s(signals)
    expected = memory.demand.expected(policy.startup_s + over_s / 2, over_s)
    expected = max(expected, memory.recurrence.expected(now, policy.startup_s))
    beside = _without_slot(policy, signals, memory) - _on_ejected(signals, memory)
    late = waiting_too_long(policy, signals, memory.demand.level, beside) + held
    waiting = min(late / _DRAIN_S, (_MOST_CATCHING_UP if memory.engine is None else _BY_ENGINES) * expected)
    waiting = waiting if waiting > _CHANCE * expected else 0.0
    noise = memory.demand.noise(over_s) if expected > 0 else 0.0
    lasting = _lasting(policy, allocation, memory, expected)
    return Load(expected * rows, waiting * rows, noise * rows, lasting * rows, rows)


def _without_slot(policy: Policy, signals: Signals, memory: Memory) -> float:
    """Requests for which engines have no slot by the time that a replica would be ready which is asked for now."""
    if memory.engine is None:
        return 0.0
    free = memory.engine.slots * signals.servers - (signals.engine_running or 0.0)
    return max(0.0, to_come(policy, signals) - max(0.0, free))


def _on_ejected(signals: Signals, memory: Memory) -> float:
    """Requests that wait where no more come: those servers work them off by themselves, and new ones cannot help."""
    away = memory.ejection.among([each.server for each in signals.queues])
    return sum(each.waiting for each in signals.queues if each.server in away)


def _lasting(policy: Policy, allocation: Allocation, memory: Memory, expected: float) -> float:
    if memory.arrivals.mean >= _BURST * expected:
        return expected
    sustained = memory.arrivals.sustained(_OF_LIMIT * may_wait(policy, allocation, memory))
    return sustained if sustained < _BURST * expected else expected


def may_wait(policy: Policy, allocation: Allocation, memory: Memory) -> float:
    """Return seconds that a request may wait and yet be in time, for a place in a batch or in an engine."""
    if memory.service is None:
        return 0.0
    if memory.engine is not None:
        return min(policy.targets.first_token.values(), default=0.0)
    limits = Limits.of(policy.targets, memory.service)
    executed = memory.service.seconds(max(1, largest_batch(policy, allocation)))
    waits = [limit for _, limit in limits.waiting] + [limit - executed for _, limit in limits.latency]
    return max(0.0, min(waits, default=0.0))
