"""Metrics of scaling and rollouts in statuses, made at each scrape, so that deleted resources have none. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from argosy.api import ConditionType, Ensemble, Member, Reason
from argosy.api.rolloutstatus import RolloutStatus
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.values.times import parse_time

LABELS = ("namespace", "pool", "kind", "name", "model")
"""Of each model and ensemble: `model` is what clients call it, the label of the servers' own metrics."""
Subject = TypeVar("Subject")
Amount = tuple[str, str, Callable[[Subject], float | None]]
"""A gauge's name, its help text, and a function of its value; None without one."""
_AMOUNTS: tuple[Amount[ScalingStatus], ...] = (
    ("argosy_scaling_replicas", "Replicas there are to be.", lambda scaling: scaling.replicas),
    (
        "argosy_scaling_desired_replicas",
        "Replicas that the load asks for, be there room and leave for them or not.",
        lambda scaling: scaling.desired,
    ),
    ("argosy_scaling_instances", "Instances on each device of a replica there are to be.", lambda s: s.instances),
    (
        "argosy_scaling_last_change_timestamp_seconds",
        "When replicas, instances or batching were last changed, since 1970.",
        lambda scaling: _seconds(scaling.last_scale_time),
    ),
)


_TRAFFIC: tuple[Amount[RolloutStatus], ...] = (
    (
        "argosy_rollout_desired_traffic",
        "Share of the requests without a version that the candidate is to get.",
        lambda rollout: _share(rollout.desired_traffic),
    ),
    (
        "argosy_rollout_traffic",
        "Share of the requests without a version that the candidate got.",
        lambda rollout: _share(rollout.traffic),
    ),
)


class StatusMetrics(Collector):
    """Collects the statuses of the models and ensembles that `members` returns. It may be called on any thread."""

    def __init__(self, members: Callable[[], Iterable[Member]]) -> None:
        self._members = members

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all families, also those without samples."""
        members = list(self._members())
        scaled = [
            (labels_of(member), member.status.scaling) for member in members if member.status and member.status.scaling
        ]
        yield from gauges(_AMOUNTS, scaled)
        yield from _numbers(scaled)
        yield _without_signals(members)
        yield _bottlenecks(members)
        yield from _rollouts(members)
        yield _steps(members)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return nothing, so that registering reads no members."""
        return iter(())


def gauges(
    amounts: Iterable[Amount[Subject]], every: Sequence[tuple[list[str], Subject]]
) -> Iterator[GaugeMetricFamily]:
    """Yield a family for each amount, with a sample of each subject by its labels."""
    for name, text, amount in amounts:
        family = GaugeMetricFamily(name, text, labels=LABELS)
        for labels, subject in every:
            value = amount(subject)
            if value is not None:
                family.add_metric(labels, value)
        yield family


def _numbers(scaled: Iterable[tuple[list[str], ScalingStatus]]) -> Iterator[GaugeMetricFamily]:
    """Yield the observed value and its target, by metric."""
    observed = GaugeMetricFamily(
        "argosy_scaling_observed", "What decided the replicas; durations are in seconds.", labels=(*LABELS, "metric")
    )
    target = GaugeMetricFamily("argosy_scaling_target", "What it should be at most.", labels=(*LABELS, "metric"))
    for labels, scaling in scaled:
        for family, value in ((observed, scaling.observed), (target, scaling.target)):
            if value is not None:
                family.add_metric([*labels, scaling.metric], float(value))
    yield observed
    yield target


def _without_signals(members: Iterable[Member]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "argosy_scaling_without_signals",
        "Whether nothing fresh is known of its servers (1), so that nothing is scaled down, or enough is (0).",
        labels=LABELS,
    )
    for member in members:
        scaling = member.status.condition(ConditionType.SCALING) if member.status else None
        if scaling is not None:
            family.add_metric(labels_of(member), float(scaling.reason == Reason.NO_SIGNALS))
    return family


def _bottlenecks(members: Iterable[Member]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "argosy_bottleneck",
        "What holds its requests up, by rule and stage, as long as it does (1).",
        labels=(*LABELS, "bottleneck", "stage"),
    )
    for member in members:
        bottleneck = member.status.bottleneck if member.status else None
        if bottleneck is not None:
            family.add_metric([*labels_of(member), bottleneck.kind, bottleneck.stage], 1.0)
    return family


def _rollouts(members: Iterable[Member]) -> Iterator[GaugeMetricFamily]:
    """Yield the phase of each rollout, and the candidate's traffic as it is to be and as measured."""
    phase = GaugeMetricFamily(
        "argosy_rollout_phase",
        "How far its rollout is, and what it waits for (1).",
        labels=(*LABELS, "phase", "waiting"),
    )
    rollouts = [
        (labels_of(member), member.status.rollout)
        for member in members
        if member.status is not None and member.status.rollout is not None
    ]
    for labels, rollout in rollouts:
        phase.add_metric([*labels, rollout.phase, rollout.waiting], 1.0)
    yield phase
    yield from gauges(_TRAFFIC, rollouts)


def _share(thousandths: int | None) -> float | None:
    return None if thousandths is None else thousandths / 1000


def _steps(members: list[Member]) -> GaugeMetricFamily:
    """Return the models of each ensemble, by the names that clients use. Dashboards of ensembles join by it."""
    served = {(member.pool_key, member.name): member.served_name for member in members}
    family = GaugeMetricFamily(
        "argosy_ensemble_step", "A model that an ensemble runs.", labels=("namespace", "pool", "ensemble", "model")
    )
    for member in members:
        if isinstance(member, Ensemble):
            key = member.pool_key
            names = dict.fromkeys(served.get((key, step.model), step.model) for step in member.spec.steps)
            for name in names:
                family.add_metric([key.namespace, key.name, member.served_name, name], 1.0)
    return family


def labels_of(member: Member) -> list[str]:
    """Return the values of `LABELS`."""
    return [member.namespace, member.pool_key.name, type(member).__name__, member.name, member.served_name]


def _seconds(time: str | None) -> float | None:
    """Return a status's time in seconds; None where it is invalid, as written by another release."""
    at = parse_time(time or "")
    return None if at is None else at.timestamp()
