"""A simulation of a fleet by discrete events: decisions on a member, replicas that become ready, changes in place."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np
from msgspec import structs

from argosy.autoscaling.decision import Allocation, Ejection, SpareCapacity
from argosy.simulation.autoscalers.autoscaler import Autoscaler, Autoscaling, Seen
from argosy.simulation.member import Member, Replica, Workload
from argosy.simulation.outcome import SimulationOutcome, Timeline
from argosy.simulation.recorder import Recorder
from argosy.simulation.servers.engine import EngineCurve

_Action = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What members share: `gpus` (None: any number). `metrics_delay_s`: the age of measurements when they are used."""

    gpus: float | None = None
    metrics_delay_s: float = 1.0


def simulate(members: Sequence[tuple[Workload, Autoscaling]], fleet: Fleet = Fleet()) -> tuple[SimulationOutcome, ...]:
    """Return the outcome of each workload under its autoscaler. If GPUs are short, earlier members get them."""
    return _Simulation(members, fleet).run()


@dataclass(slots=True)
class _Scaled:
    """A member with its autoscaler, and the rows of its timeline."""

    member: Member
    autoscaler: Autoscaler
    rows: list[tuple[float, ...]] = field(default_factory=list)


class _Simulation:
    def __init__(self, members: Sequence[tuple[Workload, Autoscaling]], fleet: Fleet) -> None:
        self._fleet = fleet
        self._events: list[tuple[float, int, _Action]] = []
        self._order = count()
        self._now = 0.0
        self._all = [
            _Scaled(Member(workload, workload.start, _recorder(workload)), autoscaling())
            for workload, autoscaling in members
        ]

    def run(self) -> tuple[SimulationOutcome, ...]:
        for scaled in self._all:
            scaled.member.begin()
            self._tick(scaled, scaled.autoscaler.interval_s)
            self._await_request(scaled)
        end = max(scaled.member.workload.trace.seconds for scaled in self._all)
        while self._events and self._events[0][0] <= end:
            self._now, _, action = heapq.heappop(self._events)
            action()
        return tuple(self._outcome(scaled, end) for scaled in self._all)

    def _at(self, when: float, action: _Action) -> None:
        heapq.heappush(self._events, (when, next(self._order), action))

    def _tick(self, scaled: _Scaled, when: float) -> None:
        """Schedule the next measurement, and the decision that is made once it is available."""
        self._at(when - self._fleet.metrics_delay_s, partial(scaled.member.advance, when - self._fleet.metrics_delay_s))
        self._at(when, partial(self._ticked, scaled, when))

    def _ticked(self, scaled: _Scaled, when: float) -> None:
        self._decide(scaled, when)
        self._tick(scaled, when + scaled.autoscaler.interval_s)

    def _await_request(self, scaled: _Scaled) -> None:
        """Schedule a decision at the next request if there is no replica and the autoscaler is woken by requests."""
        member = scaled.member
        coming = member.next_arrival
        if scaled.autoscaler.wakes and not member.ready and not member.starting and coming is not None:
            self._at(coming, partial(self._wake, scaled, coming))

    def _wake(self, scaled: _Scaled, now: float) -> None:
        member = scaled.member
        if not member.ready and not member.starting and now >= member.now:
            self._decide(scaled, now)

    def _decide(self, scaled: _Scaled, now: float) -> None:
        member, autoscaler = scaled.member, scaled.autoscaler
        member.advance(now)
        seen = Seen(
            now,
            now - self._fleet.metrics_delay_s,
            member.recorder,
            member.allocation,
            len(member.ready),
            len(member.queued_requests),
            self._spare_capacity(member),
        )
        self._apply(scaled, autoscaler.decide(seen))
        since = scaled.rows[-1][0] if scaled.rows else 0.0
        if now > since:
            scaled.rows.append(_row(member, since))

    def _spare_capacity(self, member: Member) -> SpareCapacity:
        if self._fleet.gpus is None:
            return SpareCapacity()
        used = sum(scaled.member.replicas * scaled.member.workload.gpus for scaled in self._all)
        free = int((self._fleet.gpus - used) / member.workload.gpus + 1e-9)
        missing = "" if free > 0 else f"all {self._fleet.gpus:g} GPUs of the fleet are held"
        return SpareCapacity(replicas=max(0, free), missing=missing)

    def _apply(self, scaled: _Scaled, desired: Allocation) -> None:
        member, ejection = scaled.member, scaled.autoscaler.ejection
        if ejection != member.ejection:
            self._at(member.now + member.workload.in_place_s, partial(self._eject, member, ejection))
        if desired == member.allocation:
            return
        before = member.allocation
        for replica in member.scale(desired, scaled.autoscaler.reason):
            self._at(replica.ready_s, partial(self._ready, member, replica))
        if structs.replace(before, replicas=0) != structs.replace(desired, replicas=0):
            self._at(member.now + member.workload.in_place_s, partial(self._in_place, member, desired))
        self._await_request(scaled)

    def _ready(self, member: Member, replica: Replica) -> None:
        if replica in member.starting:
            member.advance(replica.ready_s)
            member.become_ready(replica)

    def _in_place(self, member: Member, allocation: Allocation) -> None:
        member.advance(self._now)
        member.change_in_place(allocation)

    def _eject(self, member: Member, ejection: Ejection) -> None:
        member.advance(self._now)
        member.ejection = ejection

    def _outcome(self, scaled: _Scaled, end: float) -> SimulationOutcome:
        member = scaled.member
        member.advance(end)
        gpu_s = member.end()
        workload, latency = member.workload, np.concatenate(member.latencies)
        requests = len(workload.trace.arrivals)
        overdue = int((latency > workload.budget_s).sum()) + requests - len(latency)
        timeline = Timeline(*np.array(scaled.rows or np.zeros((0, 7))).T)
        reason = scaled.autoscaler.reason
        return SimulationOutcome(
            workload.name, requests, overdue, latency, gpu_s, tuple(member.changes), timeline, reason
        )


def _recorder(workload: Workload) -> Recorder:
    curve = workload.curve
    return Recorder(0, curve.max_running) if isinstance(curve, EngineCurve) else Recorder(curve.max_batch)


def _row(member: Member, since: float) -> tuple[float, ...]:
    """Return a row of the timeline, of what was measured after `since`."""
    samples = member.recorder.window(member.now, member.now - since)
    latency = np.concatenate([sample.latency for sample in samples])
    p99 = float(np.percentile(latency, 99)) if len(latency) else float("nan")
    seconds = sum(sample.seconds for sample in samples)
    rate = sum(sample.arrivals for sample in samples) / seconds if seconds else 0.0
    allocation = member.allocation
    ready, pending = len(member.ready), samples[-1].pending
    return (member.now, allocation.replicas, ready, allocation.instances, pending, rate, p99)
