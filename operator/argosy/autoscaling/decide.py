"""One member's decision: forecast, capacity, recommendation and stabilization of each stage, and a sentence with the
reason. A model is treated as an ensemble of one stage.

The models of an ensemble share servers, so it has one number of replicas: the largest that any stage recommends. A
latency target is divided among the stages in proportion to their service times, as if they ran in sequence. That is
conservative for stages that run in parallel.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from msgspec import Struct, structs

from argosy.api.conditions import Reason
from argosy.autoscaling.adjustments.ejection import ejection_of
from argosy.autoscaling.adjustments.instances import setting
from argosy.autoscaling.adjustments.out_of_memory import lowered
from argosy.autoscaling.capacity.options import Option
from argosy.autoscaling.decision import NO_EJECTION, Allocation, AllocationChange, Decision, SpareCapacity
from argosy.autoscaling.estimate import observed
from argosy.autoscaling.explain import joined, sentence, service_times, withheld
from argosy.autoscaling.load import Load, load_of, options_of
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.recommend import Need, ceiling, is_partial, recommended
from argosy.autoscaling.stabilize import Stabilized, from_or_to_zero, recorded, stabilized, unseen_s
from argosy.autoscaling.stage import NO_QUERIES, Stage

NO_STAGES: Mapping[str, Stage] = MappingProxyType({})
_NOTHING_MEASURED = "nothing that was measured says how many replicas it needs"


class MemberDecision(Struct, frozen=True):
    """The decision on a model or an ensemble, and on each stage of an ensemble by name."""

    own: Decision
    stages: Mapping[str, Decision]


class _Part(Struct, frozen=True):
    """A stage with the results computed from it: its `load`, the `options` of a replica, and its largest `need`.

    `before`: the allocation before bounds and memory limits were applied. `lowered`: what was reduced in this round
    because memory ran out, in words; empty if nothing.
    """

    stage: Stage
    before: Allocation
    lowered: str
    load: Load
    options: tuple[Option, ...]
    need: Need | None

    @property
    def in_use(self) -> float:
        """The load as a multiple of the largest capacity of one replica."""
        return self.load.rate / self.options[-1].rate if self.options else 0.0


def decide(
    policy: Policy,
    allocation: Allocation,
    signals: Signals | None,
    spare: SpareCapacity,
    memory: MemberMemory,
    now: datetime,
    *,
    stages: Mapping[str, Stage] = NO_STAGES,
    queries: Mapping[str, float] = NO_QUERIES,
    queued: int = 0,
) -> tuple[MemberDecision, MemberMemory]:
    """Return the decision on `allocation`, and the memory for the next decision.

    `stages`: the models of an ensemble. `queries`: the available values of the policy's queries, by name. `queued`:
    requests that the activator holds while no server has the member. Missing or stale signals never scale down.
    """
    own = Stage(policy, allocation, signals, spare, memory.own.until(now), now, queued, queries)
    models = {name: _of_ensemble(own, stage, memory.stages.get(name, Memory())) for name, stage in stages.items()}
    models = _shared(policy, {name: observed(stage) for name, stage in models.items()})
    parts = {"": _part(observed(own), is_model=not stages)} | {name: _part(stage) for name, stage in models.items()}
    limiting, need = _most(parts)
    parts = {name: _recorded(part, need, parts[limiting]) if not name else _recorded(part, part.need, part)
             for name, part in parts.items()}  # fmt: skip
    result, need = _replicas(parts, need)
    down = need is not None and _may_shrink(parts[""].stage, result, need)
    own_part = structs.replace(parts.pop(""), need=need)
    decision, own_memory = _decided(own_part, result, down=down, eject=need is not None and not stages)
    decisions = {name: _of_stage(part, result.replicas, down=down) for name, part in parts.items()}
    return (
        MemberDecision(decision, {name: stage for name, (stage, _) in decisions.items()}),
        MemberMemory(own_memory, {name: memory_of for name, (_, memory_of) in decisions.items()}),
    )


def _of_ensemble(own: Stage, stage: Stage, memory: Memory) -> Stage:
    """Return a model's stage with the ensemble's bounds of replicas, its pace and its startup time."""
    bounds = own.policy.bounds
    bounds = replace(stage.policy.bounds, min_replicas=bounds.min_replicas, max_replicas=bounds.max_replicas,
        min_by=bounds.min_by, max_by=bounds.max_by, fixed_by=bounds.fixed_by)  # fmt: skip
    policy = Policy(bounds, stage.policy.targets, own.policy.pace, own.policy.startup_s, stage.policy.served)
    allocation = structs.replace(stage.allocation, replicas=own.allocation.replicas)
    return structs.replace(
        stage, policy=policy, allocation=allocation, memory=memory.until(own.now), now=own.now, queued=own.queued
    )


def _shared(policy: Policy, stages: Mapping[str, Stage]) -> dict[str, Stage]:
    """Return each stage with its share of the ensemble's latency targets; unchanged before service times are known."""
    services = {name: stage.memory.estimates.service for name, stage in stages.items()}
    times = {name: service.seconds(1.0) for name, service in services.items() if service is not None}
    if not times:
        return dict(stages)
    typical = sum(times.values()) / len(times)
    total = sum(times.get(name, typical) for name in stages)
    return {name: _limited(policy, stage, times.get(name, typical) / total) for name, stage in stages.items()}


def _limited(policy: Policy, stage: Stage, share: float) -> Stage:
    targets, latency = stage.policy.targets, dict(stage.policy.targets.latency)
    for name, limit in policy.targets.latency.items():
        latency[name] = min(limit * share, latency.get(name, limit))
    targets = replace(targets, latency=latency)
    return structs.replace(stage, policy=replace(stage.policy, targets=targets))


def _part(stage: Stage, *, is_model: bool = True) -> _Part:
    before, why = stage.allocation, ""
    stage = structs.replace(stage, allocation=before.within(stage.policy.bounds))
    if is_model:
        stage, why = lowered(stage)
    load, options = load_of(stage), options_of(stage)
    need = recommended(stage, load, options)
    if need is not None and why:
        need = structs.replace(need, because=f"{why}; {need.because}")
    return _Part(stage, before, why, load, options, need)


def _most(parts: Mapping[str, _Part]) -> tuple[str, Need | None]:
    """Return the name of the stage with the largest need, and that need with the largest `down` of all stages."""
    needs = {name: part.need for name, part in parts.items() if part.need is not None}
    if not needs:
        return "", None
    limiting = max(needs, key=lambda name: (needs[name].up, parts[name].in_use, needs[name].down))
    down = max(need.down for need in needs.values())
    if any(is_partial(part.stage) for part in parts.values()):
        down = max(down, parts[""].stage.allocation.replicas)
    because = f"{limiting}: {needs[limiting].because}" if limiting else needs[limiting].because
    return limiting, structs.replace(needs[limiting], down=down, because=because)


def _recorded(part: _Part, need: Need | None, limiting: _Part) -> _Part:
    """Return the part with this recommendation added to its memory, with the load and the capacity of `limiting`."""
    memory, load, options = part.stage.memory, limiting.load, limiting.options
    if need is not None:
        memory = recorded(part.stage, need.down, load.rate)
    holds = options[-1].rate / load.rows if options and options[-1].rate else None
    memory = structs.replace(memory, expected=load.rate / load.rows, holds=holds)
    return structs.replace(part, stage=structs.replace(part.stage, memory=memory))


def _replicas(parts: Mapping[str, _Part], need: Need | None) -> tuple[Stabilized, Need | None]:
    """Return the stabilized replicas, and the need that they follow from; None where no need decided them."""
    own = parts[""]
    result = from_or_to_zero(own.stage, own.before.replicas, need.up if need is not None else 0)
    if result is not None:
        return result, None
    if need is None:
        lowerings = "; ".join(part.lowered for part in parts.values() if part.lowered)
        return _undecided(own.stage, own.stage.allocation.replicas, lowerings), None
    return stabilized(own.stage, need), need


def _undecided(stage: Stage, replicas: int, lowered: str) -> Stabilized:
    """Return the unchanged replicas, with the reason why there is no recommendation."""
    reason = Reason.STEADY if lowered else Reason.NO_SIGNALS
    return Stabilized(replicas, replicas, reason, why=lowered or stage.error or _NOTHING_MEASURED)


def _may_shrink(stage: Stage, result: Stabilized, need: Need) -> bool:
    """Return whether instances may be removed: no replica is about to be, and a full window was measured."""
    settled = result.replicas <= max(1, stage.policy.bounds.min_replicas, need.up, ceiling(need.down))
    seen = stage.memory.measured.is_new and unseen_s(stage) <= 0
    return settled and seen and stage.signals is not None and not stage.signals.unmeasured


def _of_stage(part: _Part, replicas: int, *, down: bool) -> tuple[Decision, Memory]:
    """Return a stage's decision, once the ensemble's replicas are known."""
    need = part.need
    result = _undecided(part.stage, replicas, part.lowered) if need is None else Stabilized(replicas, need.up)
    return _decided(part, result, down=down and part.stage.memory.measured.is_new)


def _decided(part: _Part, result: Stabilized, *, down: bool, eject: bool = False) -> tuple[Decision, Memory]:
    """Return the decision and the new memory, which stores a change. `eject`: whether servers may be ejected."""
    stage, need, before = part.stage, part.need, part.before
    after = setting(stage, part.load, part.options if need is not None else (), result.replicas, down=down)
    after = before if after == before else after
    ejection = ejection_of(stage) if eject else NO_EJECTION
    servers = [queue.server for queue in stage.signals.queues] if stage.signals is not None else []
    because, limit = (need.because, result.why) if need is not None else (result.why, "")
    message = joined(sentence(before, after, because, limit), withheld(ejection.among(servers)))
    reason, estimates = _reason(stage.policy, before, after, result), stage.memory.estimates
    change = stage.memory.change if after == before else AllocationChange(stage.now, before, after, reason, message)
    decision = Decision(
        after,
        result.desired,
        reason,
        message,
        need.metric if need is not None else "",
        need.observed if need is not None else None,
        need.target if need is not None else None,
        _limited_by(result, need),
        change,
        stage.memory.lowering,
        service_times(estimates.service, of_engine=estimates.engine is not None) if estimates.service else "",
        ejection,
    )
    return decision, structs.replace(stage.memory, change=change, at=stage.now, ejection=ejection)


def _limited_by(result: Stabilized, need: Need | None) -> str:
    """Return the limit: a bound or capacity, or else a target that cannot be met, or else a step or a delay."""
    if need is None or result.reason in (Reason.AT_MAXIMUM, Reason.LIMITED_BY_CAPACITY):
        return result.limited_by
    return need.limited_by or result.limited_by


def _reason(policy: Policy, before: Allocation, after: Allocation, result: Stabilized) -> Reason:
    """Return the reason. Fixed replicas take precedence, then limits, then the change itself."""
    if policy.bounds.fixed_by:
        return Reason.FIXED_REPLICAS
    if result.reason in (Reason.NO_SIGNALS, Reason.AT_MAXIMUM, Reason.LIMITED_BY_CAPACITY):
        return result.reason
    if (after.replicas, after.instances) > (before.replicas, before.instances):
        return Reason.SCALED_UP
    if (after.replicas, after.instances) < (before.replicas, before.instances):
        return Reason.SCALED_DOWN
    return result.reason
