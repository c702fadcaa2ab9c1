"""A member under load, in virtual time: the signals that its servers would have."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Allocation, Decision, SpareCapacity
from argosy.autoscaling.memory import MemberMemory
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Bounds, Pace, Policy, Targets

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERY_S = 5.0
POLICY = Policy(Bounds(max_replicas=20, max_batch=8), Targets({"p99": 0.1}), Pace(stabilization_s=60), startup_s=10)
ANYWHERE, ONE = SpareCapacity(), Allocation()


def measured(
    rate: float, allocation: Allocation, at: datetime, fixed: float = 0.008, per_row: float = 0.004
) -> Signals:
    """Return signals of servers with batches of `fixed + per_row · rows` seconds, and a queue if they are too few."""
    servers = max(1, allocation.replicas) * allocation.instances
    left = servers - rate * per_row
    rows = min(8.0, max(1.0, rate * fixed / left)) if left > 0 else 8.0
    seconds = fixed + per_row * rows
    busy = min(1.0, rate * seconds / (rows * servers))
    served = min(rate, servers * 8.0 / (fixed + per_row * 8.0))
    wait = 5.0 if served < rate else seconds / 2
    latency = Distribution(seconds + wait / 2, *[seconds + wait] * 5)
    return Signals(
        at, 15.0, servers=allocation.replicas, arrivals=rate, completions=served, pending=(rate - served) * 5,
        running=1.0, latency=latency, queue=Distribution(wait / 2, *[wait] * 5), compute=seconds, execution=seconds,
        batch=rows, max_batch=8, instances=float(servers), busy=busy,
    )  # fmt: skip


@dataclass
class Member:
    """A member with a decision every few seconds, which is in effect at once."""

    policy: Policy = POLICY
    allocation: Allocation = ONE
    spare: SpareCapacity = ANYWHERE
    memory: MemberMemory = field(default_factory=MemberMemory)
    now: datetime = START
    decisions: list[Decision] = field(default_factory=list)

    def step(self, signals: Signals | None, queued: int = 0, **queries: float) -> Decision:
        """Run one round, and let time pass until the next one."""
        member, self.memory = decide(
            self.policy, self.allocation, signals, self.spare, self.memory, self.now, queries=queries, queued=queued
        )
        decision = member.own
        self.allocation = decision.allocation
        self.decisions.append(decision)
        self.now += timedelta(seconds=EVERY_S)
        return decision

    def under(self, rate: float, seconds: float, **changed: object) -> Decision:
        """Run rounds of a constant load for so long."""
        decision = None
        for _ in range(int(seconds / EVERY_S)):
            decision = self.step(replace(measured(rate, self.allocation, self.now), **changed))  # type: ignore[arg-type]
        assert decision is not None
        return decision
