"""Policies of scaling from the specs of models and ensembles."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from argosy.api import Ensemble, InferenceModel, Member, Resource, ServingPool
from argosy.api.model.instancegroups import per_gpu
from argosy.api.model.rollout.rollout import Strategy
from argosy.api.model.scaling.scaling import ModelScaling, QueryTargetType, Scaling
from argosy.api.model.scaling.slo import Percentiles, Slo
from argosy.api.servingpool import RuntimeName
from argosy.api.values.identity import PoolKey
from argosy.api.values.quantity import MILLIONTHS, THOUSANDTHS
from argosy.autoscaling.policy import Bounds, Pace, Policy, QueryTarget, Targets
from argosy.autoscaling.settings import WINDOW_SHARE
from argosy.planning.demand.footprint import instances_of
from argosy.planning.demand.runs import runs_of
from argosy.planning.variants import Parts, VariantModel, shares_server

CONTINUOUS_BATCHING = frozenset({"vllm", "tensorrtllm"})
"""Backends whose one instance adds requests to its running batch: a second one would only take memory."""
_MS = 1e3
"""Parts of a second, of 1 and of 1, in which the API's durations, shares and rates are given."""


def policies(resources: Iterable[Resource], now: datetime) -> dict[str, Policy]:
    """Return the policy of each member of an existing pool that is scaled by measurements, by identity. The models of
    an ensemble that scales are scaled with it. Variants have the replicas of their model, and instances as
    declared, unless each has replicas of its own: then each is scaled, and the model is not.
    """
    resources = tuple(resources)
    runtimes = {pool.key: pool.spec.runtime.name for pool in resources if isinstance(pool, ServingPool)}
    stages = _stages([resource for resource in resources if isinstance(resource, Ensemble)])
    by_identity: dict[str, Policy] = {}
    for member in resources:
        if not isinstance(member, ServingPool) and _has_replicas(member) and member.pool_key in runtimes:
            in_ensemble = (member.pool_key, member.name) in stages
            if in_ensemble or scales(member):
                windows = runtimes[member.pool_key] is RuntimeName.ARGOSY
                by_identity[member.identity] = policy_of(member, now, windows=windows, in_ensemble=in_ensemble)
    return by_identity


def _has_replicas(member: Member) -> bool:
    """Return whether a member has replicas that are its own."""
    if isinstance(member, Ensemble) and not shares_server(member):
        return False
    return not isinstance(member, Parts) or (isinstance(member, VariantModel) and member.is_separate)


def _stages(ensembles: Sequence[Ensemble]) -> set[tuple[PoolKey, str]]:
    """Return the models of the ensembles that scale, by pool and name."""
    pools = {ensemble.pool_key for ensemble in ensembles}
    runs = {key: runs_of(ensemble for ensemble in ensembles if ensemble.pool_key == key) for key in pools}
    scaled = [ensemble for ensemble in ensembles if scales(ensemble) and shares_server(ensemble)]
    return {(ensemble.pool_key, model) for ensemble in scaled for model in runs[ensemble.pool_key][ensemble.name]}


def scales(member: Member) -> bool:
    """Return whether measurements may change anything of a member other than taking its last replica while idle."""
    spec = member.spec
    return spec.slo is not None or spec.scaling is not None or spec.most_replicas > spec.fewest_replicas


def may_be_zero(member: Member) -> bool:
    """Return whether a member may have no replica at some time, so that an activator has to queue its requests."""
    schedules = member.spec.scaling.schedules if member.spec.scaling is not None else ()
    return not member.spec.least_replicas or any(not schedule.min_replicas for schedule in schedules)


def may_be_queued(member: Member, *, has_activator: bool) -> bool:
    """Return whether an activator queues a member's requests while no server answers: it may have no replica, or it is
    declared to be recreated, in a pool that has an activator for others.
    """
    rollout = member.spec.rollout
    recreated = rollout is not None and rollout.strategy is Strategy.RECREATE
    return may_be_zero(member) or (has_activator and recreated)


def policy_of(member: Member, now: datetime, *, windows: bool = True, in_ensemble: bool = False) -> Policy:
    """Return the policy of a valid member. `now` has a time zone, for schedules. `windows`: whether its servers change
    a batching window without loading the model again; `in_ensemble`: whether an ensemble that scales runs it.
    """
    scaling, bounds = member.spec.scaling or Scaling(), _replicas(member, now)
    targets = _targets(member.spec.slo or Slo(), scaling)
    if isinstance(member, InferenceModel):
        fewest, most = _instances(member, in_ensemble or scales(member))
        bounds = replace(
            bounds,
            min_instances=fewest,
            max_instances=most,
            devices=_devices(member),
            max_window_s=_longest_window(member, targets) if windows else None,
            max_batch=member.spec.batch_size or 0,
            smaller_batches=member.spec.batching is not None,
        )
    return Policy(bounds, targets, _pace(scaling))


def _replicas(member: Member, now: datetime) -> Bounds:
    """Return the bounds of replicas: `spec.replicas`, those of the first schedule that applies now, or the spec's."""
    spec, field = member.spec, "spec.replicas"
    if spec.replicas is not None:
        return Bounds(spec.replicas, spec.replicas, min_by=field, max_by=field, fixed_by=field)
    for index, schedule in enumerate(spec.scaling.schedules if spec.scaling else ()):
        if schedule.holds(now):
            field = f"spec.scaling.schedules[{index}]"
            least, min_by = schedule.min_replicas, f"{field}.minReplicas"
            if schedule.max_replicas is not None:
                return Bounds(least, schedule.max_replicas, min_by=min_by, max_by=f"{field}.maxReplicas")
            max_by = min_by if least > spec.most_replicas else Bounds().max_by
            return Bounds(least, max(least, spec.most_replicas), min_by=min_by, max_by=max_by)
    return Bounds(spec.fewest_replicas, spec.most_replicas)


def _instances(model: InferenceModel, is_scaled: bool) -> tuple[int, int]:
    """Return the bounds of instances on each device of a replica."""
    spec, declared = model.spec, instances_of(model)
    if spec.instances is not None or spec.instance_groups or spec.gpus > 1 or not is_scaled:
        return declared, declared
    scaling = spec.scaling or ModelScaling()
    if scaling.max_instances is None and spec.backend in CONTINUOUS_BATCHING:
        return scaling.min_instances, scaling.min_instances
    return scaling.min_instances, scaling.most_instances


def _devices(model: InferenceModel) -> int:
    """Return the number of a replica's devices that have instances."""
    groups = model.spec.instance_groups
    return max(1, sum(group.count for group in groups) // max(1, per_gpu(groups, model.spec.gpus or 1)))


def _longest_window(model: InferenceModel, targets: Targets) -> float | None:
    """Return the longest batching window that Argosy may set, in seconds; None if the spec sets it."""
    spec = model.spec
    if spec.batching is None or spec.batching.max_queue_delay_microseconds:
        return None
    if spec.scaling is not None and spec.scaling.max_queue_delay is not None:
        return spec.scaling.max_queue_delay / _MS or None
    return min(targets.latency.values()) / WINDOW_SHARE if targets.latency else None


def _targets(slo: Slo, scaling: Scaling) -> Targets:
    targets, average = scaling.targets, QueryTargetType.AVERAGE_VALUE
    return Targets(
        latency=_seconds(slo.latency),
        queue_delay=_seconds(slo.queue_delay),
        first_token=_seconds(slo.time_to_first_token),
        between_tokens=_seconds(slo.inter_token_latency),
        error_rate=None if slo.error_rate is None else slo.error_rate / MILLIONTHS,
        queue_share=None if targets.queue_share is None else targets.queue_share / THOUSANDTHS,
        concurrency=targets.concurrency,
        tokens=targets.tokens_per_second,
        busy_low=targets.busy.lower / THOUSANDTHS,
        busy_high=targets.busy.max / THOUSANDTHS,
        queries=tuple(QueryTarget(query.name, query.target, query.type is average) for query in targets.queries),
    )


def _seconds(percentiles: Percentiles | None) -> dict[str, float]:
    """Return the percentiles that are set, in seconds, by name."""
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
