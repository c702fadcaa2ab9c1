"""What a resource says of scaling, as a policy."""

from dataclasses import replace
from datetime import datetime

from argosy.api import Ensemble, InferenceModel
from argosy.api.model.instancegroups import per_gpu
from argosy.api.model.scaling.scaling import ModelScaling, QueryTargetType, Scaling
from argosy.api.model.scaling.schedule import Schedule
from argosy.api.model.scaling.slo import Percentiles, Slo
from argosy.autoscaling.policy import Bounds, Pace, Policy, QueryTarget, Targets
from argosy.autoscaling.settings import WINDOW_SHARE
from argosy.planning.demand.footprint import instances_of

Member = InferenceModel | Ensemble
ONE_ENGINE = frozenset({"vllm", "tensorrtllm"})
"""Backends of which one instance joins whatever comes into its running batch: a second one would only take memory."""
_MS, _THOUSANDTHS, _MILLIONTHS = 1e3, 1e3, 1e6


def scales(member: Member) -> bool:
    """Return whether anything of it follows what is measured, except that it may have no replica while idle."""
    spec = member.spec
    is_requested = spec.slo is not None or spec.scaling is not None
    return is_requested or (spec.replicas is None and spec.most_replicas > spec.fewest_replicas)


def may_be_zero(member: Member) -> bool:
    """Return whether it may have no replica at some time, so that somebody has to hold its requests."""
    scaling = member.spec.scaling
    schedules = scaling.schedules if scaling is not None else ()
    return not member.spec.min_replicas or any(not schedule.min_replicas for schedule in schedules)


def policy_of(member: Member, now: datetime, *, windows: bool = True, in_ensemble: bool = False) -> Policy:
    """Return the policy of a valid member. `now` has a time zone, for schedules. `windows`: whether its servers change
    a batching window without loading the model again; `in_ensemble`: whether an ensemble that scales runs it.
    """
    scaling = member.spec.scaling or Scaling()
    bounds = _bounds(member, now, windows, in_ensemble or scales(member))
    return Policy(bounds, _targets(member.spec.slo or Slo(), scaling), _pace(scaling))


def _bounds(member: Member, now: datetime, windows: bool, follows: bool) -> Bounds:
    replicas = _replicas(member, now)
    if isinstance(member, Ensemble):
        return replicas
    fewest, limit = _instances(member, follows)
    spec = member.spec
    return replace(
        replicas,
        min_instances=fewest,
        max_instances=limit,
        devices=_devices(member),
        max_window_s=_longest_window(member) if windows else None,
        max_batch=spec.batch_size or 0,
        smaller_batches=spec.batching is not None,
    )


def _replicas(member: Member, now: datetime) -> Bounds:
    """Return the bounds of replicas: those of a person, of the first schedule that holds now, or the spec's own."""
    spec = member.spec
    if spec.replicas is not None:
        field = "spec.replicas"
        return Bounds(spec.replicas, spec.replicas, min_by=field, max_by=field, fixed_by=field)
    for index, schedule in enumerate(spec.scaling.schedules if spec.scaling else ()):
        if schedule.holds(now):
            return _scheduled(schedule, spec.most_replicas, f"spec.scaling.schedules[{index}]")
    return Bounds(spec.fewest_replicas, spec.most_replicas)


def _scheduled(schedule: Schedule, most: int, field: str) -> Bounds:
    least, min_by = schedule.min_replicas, f"{field}.minReplicas"
    if schedule.max_replicas is not None:
        return Bounds(least, schedule.max_replicas, min_by=min_by, max_by=f"{field}.maxReplicas")
    if least > most:
        return Bounds(least, least, min_by=min_by, max_by=min_by)
    return Bounds(least, most, min_by=min_by)


def _instances(model: InferenceModel, follows: bool) -> tuple[int, int]:
    spec, here = model.spec, instances_of(model)
    if spec.instances is not None or spec.instance_groups or spec.gpus > 1 or not follows:
        return here, here
    scaling = spec.scaling or ModelScaling()
    if scaling.max_instances is None and spec.backend in ONE_ENGINE:
        return scaling.min_instances, scaling.min_instances
    return scaling.min_instances, scaling.most_instances


def _devices(model: InferenceModel) -> int:
    """How many devices of a replica have its instances."""
    groups = model.spec.instance_groups
    if not groups:
        return 1
    per_device = max(1, per_gpu(groups, model.spec.gpus or 1))
    return max(1, sum(group.count for group in groups) // per_device)


def _longest_window(model: InferenceModel) -> float | None:
    """Return the longest batching window that may be decided, in seconds; None where the spec decides."""
    spec = model.spec
    if spec.batching is None or spec.batching.max_queue_delay_microseconds:
        return None
    if spec.scaling is not None and spec.scaling.max_queue_delay is not None:
        return spec.scaling.max_queue_delay / _MS or None
    latencies = seconds_of(spec.slo.latency).values() if spec.slo is not None else ()
    return min(latencies) / WINDOW_SHARE if latencies else None


def _targets(slo: Slo, scaling: Scaling) -> Targets:
    targets = scaling.targets
    return Targets(
        latency=seconds_of(slo.latency),
        queue_delay=seconds_of(slo.queue_delay),
        first_token=seconds_of(slo.time_to_first_token),
        error_rate=None if slo.error_rate is None else slo.error_rate / _MILLIONTHS,
        queue_share=None if targets.queue_share is None else targets.queue_share / _THOUSANDTHS,
        concurrency=targets.concurrency,
        tokens=targets.tokens_per_second,
        busy_low=targets.busy.min / _THOUSANDTHS,
        busy_high=targets.busy.max / _THOUSANDTHS,
        queries=tuple(
            QueryTarget(query.name, query.target, query.type is QueryTargetType.AVERAGE_VALUE)
            for query in targets.queries
        ),
    )


def seconds_of(percentiles: Percentiles | None) -> dict[str, float]:
    """By name, those that are given, in seconds."""
    return {name: value / _MS for name, value in percentiles or () if value is not None}


def _pace(scaling: Scaling) -> Pace:
    up, down = scaling.scale_up, scaling.scale_down
    window = down.stabilization_window
    return Pace(
        step_up=up.max_step,
        step_down=down.max_step,
        cooldown_up_s=up.cooldown / _MS,
        cooldown_down_s=down.cooldown / _MS,
        stabilization_s=Pace().stabilization_s if window is None else window / _MS,
        idle_s=scaling.idle_timeout / _MS,
    )
