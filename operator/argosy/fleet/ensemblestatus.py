"""An Ensemble's status."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Ensemble, EnsembleStatus, Reason
from argosy.api.status import ScalingStatus, StepStatus
from argosy.fleet.facts import ServerReport
from argosy.fleet.loading import Loading
from argosy.fleet.placed import place, placed_finding, servers_with
from argosy.fleet.plan import PoolPlan
from argosy.fleet.transitions import Finding, conditions
from argosy.fleet.verdict import verdict


def ensemble_status(
    ensemble: Ensemble,
    models: Sequence[str],
    versions: Mapping[str, int],
    plan: PoolPlan,
    reports: Mapping[str, ServerReport],
    before: Sequence[Condition],
    now: datetime,
    suspended: bool = False,
) -> EnsembleStatus:
    """The status of a valid ensemble. `models` are all that it runs; `versions` has what each step's name
    runs at.
    """
    servers = servers_with(plan, models)
    names = [server.name for server in servers]
    places = [
        place(s, ensemble.spec.version, sorted({g for p in s.placements if p.model in models for g in p.gpus}), 1)
        for s in servers
    ]
    loading = Loading.of(ensemble.name, ensemble.spec.version, names, reports)
    generation = ensemble.metadata.generation
    parts = [
        Finding(ConditionType.VALID, True, Reason.VALID),
        placed_finding(plan, suspended, models, places),
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
        steps=_steps(ensemble, versions, names, reports),
        placement=tuple(places),
        scaling=ScalingStatus(
            desired_replicas=len(servers) + sum(1 for each in plan.unplaced if set(models) & set(each.models)),
            reason=Reason.FIXED_REPLICAS,
        ),
    )


def _steps(
    ensemble: Ensemble,
    versions: Mapping[str, int],
    servers: Sequence[str],
    reports: Mapping[str, ServerReport],
) -> tuple[StepStatus, ...]:
    found = []
    for step in ensemble.spec.steps:
        version = step.version or versions[step.model]
        (wanted,) = (
            each for each in Loading.of(step.model, version, servers, reports).versions() if each.version == version
        )
        found.append(StepStatus(model=step.model, version=version, state=wanted.state))
    return tuple(found)


def _scaling(ensemble: Ensemble) -> Finding:
    spec = ensemble.spec
    stays = f"replicas stay at minReplicas ({spec.min_replicas}) or what its models ask for"
    if spec.most_replicas > spec.min_replicas:
        message = f"without effect in this release: spec.maxReplicas: nothing scales; {stays}"
        return Finding(ConditionType.SCALING, False, Reason.SETTING_WITHOUT_EFFECT, message)
    return Finding(ConditionType.SCALING, True, Reason.FIXED_REPLICAS, stays)
