"""Findings of scaling: the desired replicas, instances or servers with the reason, or the field that sets them."""

from collections.abc import Iterator
from dataclasses import dataclass

from argosy.api import ConditionType, Ensemble, InferenceModel, Reason, ServingPool
from argosy.api.scalingstatus import OutOfMemoryStatus, ScalingChange, ScalingStatus
from argosy.api.status import ServingPoolStatus, Status
from argosy.api.values.times import timestamp
from argosy.autoscaling.decision import Allocation, AllocationChange, Decision, Lowering
from argosy.planning.demand.footprint import instances_of
from argosy.status.conditions import Finding, bounded

HISTORY = 10
_US = 1e6
_LONGEST = 1024
_DIGITS = 4
"""Significant digits of what was measured: a status is not written for less."""


@dataclass(frozen=True, slots=True)
class ScaledMember:
    """A model or an ensemble with the state of its scaling.

    `allocation`: the desired one; None if measurements decide no part of it. `decision`: the one that it follows from;
    None before the first. `before`: the scaling status as last written.
    """

    member: InferenceModel | Ensemble
    allocation: Allocation | None = None
    decision: Decision | None = None
    before: ScalingStatus | None = None

    @classmethod
    def of(
        cls,
        member: InferenceModel | Ensemble,
        allocation: Allocation | None,
        decision: Decision | None,
        previous: Status | None,
    ) -> "ScaledMember":
        """Return a member with the state of its scaling. `previous`: its status as last written."""
        before = None if previous is None or isinstance(previous, ServingPoolStatus) else previous.scaling
        return cls(member, allocation, decision, before)

    @property
    def instances(self) -> int:
        """The desired instances on each device; 1 for an ensemble, which has none of its own."""
        if not isinstance(self.member, InferenceModel):
            return 1
        return max(instances_of(self.member), self.allocation.instances if self.allocation else 1)


def scaling(scaled: ScaledMember) -> Finding:
    """Return the condition Scaling of a model or an ensemble. It is unknown while there is no decision."""
    kind, decision = ConditionType.SCALING, scaled.decision
    if scaled.allocation is None:
        return Finding(kind, True, Reason.FIXED_REPLICAS, decided_by(scaled.member))
    if decision is None:
        return Finding(kind, None, Reason.NO_SIGNALS, _unmeasured(scaled))
    if decision.reason is Reason.NO_SIGNALS:
        return Finding(kind, None, decision.reason, decision.message)
    return Finding(kind, decision.reason is not Reason.LIMITED_BY_CAPACITY, decision.reason, _sentence(scaled))


def scaling_status(scaled: ScaledMember, desired: int) -> ScalingStatus:
    """Return the desired allocation with its reason. `desired`: the replicas to report without measurements."""
    before, decision = scaled.before or ScalingStatus(), scaled.decision
    if scaled.allocation is None:
        return ScalingStatus(
            replicas=desired,
            instances=scaled.instances,
            desired=desired,
            reason=Reason.FIXED_REPLICAS,
            message=decided_by(scaled.member),
            last_scale_time=before.last_scale_time,
            history=before.history,
        )
    has = _allocated(scaled, scaled.allocation)
    if decision is None:
        changes = {"desired": desired, "reason": Reason.NO_SIGNALS, "message": _unmeasured(scaled)}
        return before.model_copy(update=has | changes)
    newest = decision.change
    return before.model_copy(
        update=has
        | {
            "desired": decision.desired,
            "metric": decision.metric,
            "observed": _rounded(decision.observed),
            "target": _rounded(decision.target),
            "reason": decision.reason,
            "message": bounded(_sentence(scaled), _LONGEST),
            "limited_by": bounded(decision.limited_by, _LONGEST),
            "estimate": decision.estimate,
            "out_of_memory": _out_of_memory(decision.lowering),
            "last_scale_time": timestamp(newest.at) if newest else before.last_scale_time,
            "history": tuple(_history(newest, before.history))[:HISTORY],
        }
    )


def _allocated(scaled: ScaledMember, allocation: Allocation) -> dict[str, object]:
    window = allocation.window_s
    return {
        "replicas": allocation.replicas,
        "instances": scaled.instances,
        "max_queue_delay_microseconds": None if window is None else round(window * _US),
        "max_batch_size": allocation.max_batch,
    }


def _out_of_memory(lowering: Lowering | None) -> OutOfMemoryStatus | None:
    if lowering is None:
        return None
    failed = lowering.served
    return OutOfMemoryStatus(
        time=timestamp(lowering.at),
        message=bounded(lowering.why, _LONGEST),
        versions=failed.versions,
        footprint=failed.footprint,
        gpu_memory=failed.gpu_memory or None,
        max_instances=lowering.most_instances,
    )


def _sentence(scaled: ScaledMember) -> str:
    """Return the decision's message; where `spec.replicas` is set, that it decides."""
    assert scaled.decision is not None
    if scaled.member.spec.replicas is None:
        return scaled.decision.message
    return f"{decided_by(scaled.member)}; {scaled.decision.message}"


def _history(newest: AllocationChange | None, before: tuple[ScalingChange, ...]) -> Iterator[ScalingChange]:
    """Yield the changes, the newest first. A change that the last status has is not repeated."""
    if newest is not None and (not before or before[0].time < timestamp(newest.at)):
        yield ScalingChange(
            time=timestamp(newest.at),
            replicas=newest.after.replicas,
            instances=newest.after.instances,
            former_replicas=newest.before.replicas,
            former_instances=newest.before.instances,
            reason=newest.reason,
            message=bounded(newest.message, _LONGEST),
        )
    yield from before


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _unmeasured(scaled: ScaledMember) -> str:
    replicas = scaled.allocation.replicas if scaled.allocation else 0
    return f"nothing is measured yet; until then replicas stay at {replicas}"


def decided_by(member: InferenceModel | Ensemble) -> str:
    """Return the field that decides how many replicas there are, in words."""
    spec = member.spec
    others = "its models ask for" if isinstance(member, Ensemble) else "an ensemble asks for"
    if spec.replicas is None:
        return f"replicas stay at minReplicas ({spec.least_replicas}) or what {others}"
    return (
        f"spec.replicas is {spec.replicas}, and decides, or what {others} if that is more; what is measured counts "
        "again when it is removed"
    )


def pool_scaling(pool: ServingPool) -> Finding:
    """Return the condition Scaling of a pool."""
    spec, kind = pool.spec, ConditionType.SCALING
    if spec.replicas is not None:
        message = (
            f"spec.replicas is {spec.replicas}, and decides how many servers there are; minServers and maxServers "
            "count again when it is removed"
        )
        return Finding(kind, True, Reason.FIXED_REPLICAS, message)
    most = "" if spec.max_servers is None else f", at most maxServers ({spec.max_servers})"
    return Finding(
        kind, True, Reason.STEADY, f"as many servers as its models need, at least minServers ({spec.min_servers}){most}"
    )
