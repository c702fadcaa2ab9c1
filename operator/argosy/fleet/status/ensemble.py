"""An Ensemble's status."""

from collections.abc import Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Ensemble, EnsembleStatus, Reason
from argosy.api.status import ScalingStatus, StepStatus
from argosy.fleet.plan import ServerPlan
from argosy.fleet.status.conditions import Finding, conditions
from argosy.fleet.status.kstatus import verdict
from argosy.fleet.status.placed import first_places, place, placed_finding
from argosy.fleet.status.served import Served


def ensemble_status(ensemble: Ensemble, served: Served, before: Sequence[Condition], now: datetime) -> EnsembleStatus:
    """The status of a valid ensemble of a pool."""
    servers = served.servers_with(ensemble.name)
    models = served.members.runs[ensemble.name]
    places = [
        place(s, ensemble.spec.version, sorted({g for p in s.placements if p.model in models for g in p.gpus}), 1)
        for s in servers
    ]
    loading = served.loading(ensemble.name, ensemble.spec.version, servers)
    generation = ensemble.metadata.generation
    parts = [
        Finding(ConditionType.VALID, True, Reason.VALID),
        placed_finding(served, ensemble.name, places),
        loading.finding(),
        _scaling(ensemble),
    ]
    return EnsembleStatus(
        observed_generation=generation,
        conditions=conditions(before, [*verdict(parts, loading.serving(), loading.rolling()), *parts], generation, now),
        replicas=len(servers),
        available_replicas=len(loading.available),
        url=loading.url,
        versions=loading.versions(),
        active_version=loading.active_version,
        steps=_steps(ensemble, served, servers),
        **first_places(places),
        scaling=ScalingStatus(
            desired_replicas=len(servers) + len(served.without_place(ensemble.name)),
            reason=Reason.FIXED_REPLICAS,
        ),
    )


def _steps(ensemble: Ensemble, served: Served, servers: tuple[ServerPlan, ...]) -> tuple[StepStatus, ...]:
    found = []
    for step in ensemble.spec.steps:
        version = step.version or served.members.version(step.model) or 1
        loading = served.loading(step.model, version, servers)
        wanted = next(each for each in loading.versions() if each.version == version)
        found.append(StepStatus(model=step.model, version=version, state=wanted.state))
    return tuple(found)


def _scaling(ensemble: Ensemble) -> Finding:
    spec = ensemble.spec
    stays = f"replicas stay at minReplicas ({spec.min_replicas}) or what its models ask for"
    if spec.most_replicas > spec.min_replicas:
        message = f"without effect in this release: spec.maxReplicas: nothing scales; {stays}"
        return Finding(ConditionType.SCALING, False, Reason.SETTING_WITHOUT_EFFECT, message)
    return Finding(ConditionType.SCALING, True, Reason.FIXED_REPLICAS, stays)
