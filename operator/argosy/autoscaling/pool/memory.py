"""A pool's state between rounds: estimates, and decisions and bottlenecks as reported."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.api import Member
from argosy.api.conditions import Reason
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.values.times import parse_time
from argosy.autoscaling.bottlenecks import diagnose as diagnosis
from argosy.autoscaling.decision import Allocation, AllocationChange, Decision, Lowering
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.policy import Served
from argosy.autoscaling.pool.language import LanguageReport
from argosy.autoscaling.pool.regimes import FleetRegime
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.autoscaling.settings import SAME, STALE_S
from argosy.planning.demand.measured import MeasuredFootprint

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Report:
    """A decision as it was last reported in a status, and when."""

    decision: Decision
    at: datetime


@dataclass(frozen=True, slots=True)
class PoolMemory:
    """The memory of each member and of its bottleneck, and the reports of its last decision, of its engines
    and of its variants, by identity. `regimes`: of models whose variants have servers of their own; `footprints`: what
    models were measured to use.
    """

    members: Mapping[str, MemberMemory] = field(default_factory=dict)
    bottlenecks: Mapping[str, diagnosis.BottleneckState] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)
    language: Mapping[str, LanguageReport] = field(default_factory=dict)
    variants: Mapping[str, VariantsReport] = field(default_factory=dict)
    regimes: Mapping[str, FleetRegime] = field(default_factory=dict)
    footprints: Mapping[str, MeasuredFootprint] = field(default_factory=dict)

    @property
    def decisions(self) -> dict[str, Decision]:
        """The last reported decisions."""
        return {name: report.decision for name, report in self.reports.items()}

    @property
    def reported_bottlenecks(self) -> dict[str, diagnosis.BottleneckReport]:
        """The bottleneck of each member that has one."""
        return {name: memory.report for name, memory in self.bottlenecks.items() if memory.report is not None}

    def estimated(self, members: Iterable[Member]) -> Iterator[tuple[Member, Memory]]:
        """Yield each member that has a memory, with it. That of an ensemble's model is the memory of the stage."""
        stages = {name: memory for member in self.members.values() for name, memory in member.stages.items()}
        for member in members:
            own = self.members.get(member.identity)
            memory = own.own if own is not None else stages.get(member.name)
            if memory is not None:
                yield member, memory


def report(before: Report | None, decision: Decision, now: datetime) -> Report:
    """Return the report of a decision. The last one stays if only numbers changed, unless they differ by more than
    noise and it is a minute old: each new report is a write of a status.
    """
    if before is None or _material(before.decision) != _material(decision):
        return Report(decision, now)
    is_due = (now - before.at).total_seconds() >= STALE_S
    return Report(decision, now) if is_due and _differ(before.decision, decision) else before


def _material(decision: Decision) -> tuple[object, ...]:
    """Return the parts of a decision whose change is reported immediately."""
    limits = {Reason.NO_SIGNALS: decision.message, Reason.LIMITED_BY_CAPACITY: decision.limited_by}
    return (
        decision.allocation,
        decision.reason,
        decision.change,
        decision.message.partition(":")[0],
        _DIGITS.sub("", limits.get(decision.reason, "")),
        decision.lowering is not None,
        (frozenset(decision.ejection.servers), decision.ejection.keep),
    )


def _differ(before: Decision, now: Decision) -> bool:
    if any(getattr(before, name) != getattr(now, name) for name in ("desired", "metric", "limited_by", "estimate")):
        return True
    one, other = before.observed, now.observed
    if one is None or other is None:
        return before.message != now.message
    return abs(one - other) > SAME * max(abs(one), abs(other))


def restored(status: ScalingStatus | None) -> Memory:
    """Return the memory of a member after a restart, from its status: the last change, and limits by memory."""
    if status is None:
        return Memory()
    return Memory.restored(_last_change(status), _lowering(status))


def _lowering(status: ScalingStatus) -> Lowering | None:
    reduced = status.out_of_memory
    if reduced is None or (at := parse_time(reduced.time)) is None:
        return None
    failed = Served(reduced.versions, reduced.footprint, reduced.gpu_memory or 0)
    return Lowering(at, failed, reduced.message, reduced.max_instances)


def _last_change(status: ScalingStatus) -> AllocationChange | None:
    if not status.history or (at := parse_time(status.history[0].time)) is None:
        return None
    last = status.history[0]
    before = Allocation(last.former_replicas, last.former_instances)
    reason = last.reason if isinstance(last.reason, Reason) else Reason.STEADY  # a later release's reason
    return AllocationChange(at, before, Allocation(last.replicas, last.instances), reason, last.message)
