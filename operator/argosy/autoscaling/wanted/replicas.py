"""How many replicas are wanted: of all targets the one that asks for most, and by which numbers."""

from collections.abc import Mapping
from datetime import datetime
from math import log2

from msgspec import Struct

from argosy.autoscaling.capacity.settings import Setting
from argosy.autoscaling.decision import Allocation, Room
from argosy.autoscaling.learning.learn import has_stood
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.wanted.held import is_held
from argosy.autoscaling.wanted.ladder import held_within, ladder_of
from argosy.autoscaling.wanted.load import NO_LOAD, Load, load_of
from argosy.autoscaling.wanted.needs import MARGIN, Need, needs, seconds, whole
from argosy.planning.amounts import counted

_NOISE, _MORE_NOISE = 1.0, 2.0
"""Standard deviations of chance that replicas are to hold, and that those hold that are asked for once they do not."""
_STEADY_S, _HARDLY, _MORE, _MOST = 300.0, 1.03, 0.04, 1.15
"""A load that has been steady for so long asks for no replica by so little more than those that there are hold; by so
much more for each time that it has been steady for twice as long, and at most: what is found by chance grows with it.
"""
_MARGIN = 1.05
"""Down only to what would hold this many times the highest level of the window, in which chance is already."""


class Wanted(Struct, frozen=True):
    """`up`: the fewest replicas that hold all targets, `down`: the fewest to go down to once queues are worked off, not
    rounded. `need`: what decides, which the rate of requests does where it is `by_rate`. `load`: what a model of the
    queue has to do with; `ladder`: what a replica may be set to, and what it then holds.
    """

    up: int
    down: float
    need: Need
    load: Load = NO_LOAD
    ladder: tuple[Setting, ...] = ()
    by_rate: bool = False

    @property
    def up_to(self) -> int:
        """Where it goes up, so many as also hold what chance may bring: or it would go up again, for chance alone."""
        load, best = self.load, self.ladder[-1].rate if self.ladder else 0.0
        return max(self.up, whole((load.rate + _MORE_NOISE * load.noise) / best)) if best > 0 else self.up


def wanted(
    policy: Policy,
    allocation: Allocation,
    signals: Signals,
    room: Room,
    memory: Memory,
    queries: Mapping[str, float],
    held: int,
    now: datetime,
) -> Wanted | None:
    """None where nothing that was measured says anything about replicas."""
    load, ladder = load_of(policy, allocation, signals, memory, held, now), ladder_of(policy, allocation, room, memory)
    modelled, stood = memory.engine is not None and bool(ladder), has_stood(policy, memory, signals.window_s, now)
    every = list(needs(policy, allocation, signals, queries, modelled=modelled, stood=stood))
    by_rate = _by_rate(policy, allocation, signals, memory, load, ladder, now)
    every += [need for need in (by_rate, _by_busy(policy, signals)) if need]
    if not every:
        return None
    most = max(every, key=lambda need: (need.up, need.down))
    down = max(need.down for need in every)
    unknown = any(query.name not in queries for query in policy.targets.queries)
    if signals.unmeasured or unknown:
        down = max(down, allocation.replicas)
    return Wanted(most.up, down, most, load, ladder, most is by_rate)


def foreseen(policy: Policy, allocation: Allocation, room: Room, memory: Memory, now: datetime) -> int:
    """Return replicas for a load that comes at equal intervals, where it is about to."""
    rate = memory.recurrence.expected(now, policy.startup_s)
    ladder = ladder_of(policy, allocation, room, memory) if rate > 0 else ()
    return whole(rate * memory.rows / ladder[-1].rate) if ladder and ladder[-1].rate > 0 else 0


def _by_rate(
    policy: Policy,
    allocation: Allocation,
    signals: Signals,
    memory: Memory,
    load: Load,
    ladder: tuple[Setting, ...],
    now: datetime,
) -> Need | None:
    """The model of the queue: what comes, over what one replica holds."""
    if not ladder or memory.demand is None or signals.arrivals is None:
        return None
    best, replicas, target = ladder[-1], allocation.replicas, held_within(policy, signals, memory)
    over = _hardly(memory.steady_s(now)) if load.waiting == 0 else 1.0
    asked, down = (load.rate + _NOISE * load.noise) / best.rate, load.lasting * _MARGIN / best.rate
    up = replicas if replicas < asked <= over * replicas else whole(asked)
    high = policy.targets.busy_high
    limit = f"within {target.name} {seconds(target.limit)}" if target.name else f"at {high:.0%}"
    because = (
        f"{memory.demand.level:.3g} requests/s come, {load.rate / load.rows:.3g}/s are to be expected, and a replica "
        f"with {counted(best.instances, 'instance')} holds {best.rate / load.rows:.3g}/s {limit}{target.beyond}"
    )
    if up > replicas and is_held(policy, allocation, signals, memory, load, now):
        up, because = replicas, f"{because}; but those that there are hold it, as measured"
    if not target.name:
        return Need("busy", load.rate / best.rate * high, high, up, down, because, target.limited_by)
    return Need(target.metric, target.observed or 0.0, target.limit, up, down, because, target.limited_by)


def _hardly(steady_s: float) -> float:
    return min(_MOST, _HARDLY + _MORE * log2(steady_s / _STEADY_S)) if steady_s >= _STEADY_S else 1.0


def _by_busy(policy: Policy, signals: Signals) -> Need | None:
    """Where executions are not measured: in proportion to the time that instances are busy."""
    if signals.execution or signals.tokens is not None or signals.busy is None or not signals.servers:
        return None
    high = policy.targets.busy_high
    total = signals.servers * signals.busy
    because = f"instances are busy for {signals.busy:.0%} of the time, limit {high:.0%}"
    up, down = whole(total / high), total * MARGIN / high
    return Need("busy", signals.busy, high, up, down, because)
