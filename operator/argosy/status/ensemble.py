"""An Ensemble's status."""

from collections.abc import Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Ensemble, EnsembleStatus, Reason, ServingPool
from argosy.api.status import StepStatus
from argosy.planning.plan import ServerPlan
from argosy.status.conditions import Finding, conditions
from argosy.status.findings.availability import availability
from argosy.status.findings.placed import placed_finding, serving_fields, shared_placements
from argosy.status.findings.scaling import ScaledMember, scaling, scaling_status
from argosy.status.findings.unsupported import unused_ensemble_settings
from argosy.status.kstatus import verdict
from argosy.status.progress.pool_progress import PoolProgress
from argosy.status.rollout import unsettled


def ensemble_status(
    ensemble: Ensemble, progress: PoolProgress, before: Sequence[Condition], scaled: ScaledMember, now: datetime
) -> EnsembleStatus:
    """Return the status of a valid ensemble of a pool."""
    servers = progress.servers_with(ensemble.name)
    placements = shared_placements(progress, ensemble, servers)
    serving = progress.members.ensembles.get(ensemble.name, ensemble)
    loading = progress.loading(ensemble.name, [serving.spec.version], servers)
    generation = ensemble.metadata.generation
    parts = [
        _valid(ensemble, progress.pool),
        placed_finding(progress, ensemble, placements),
        loading.finding(),
        availability(loading),
        scaling(scaled),
    ]
    rollout = unsettled(progress.members.rollouts.get(ensemble.name))
    findings = [*verdict(parts, loading.serving(), loading.rolling(), rollout), *parts]
    return EnsembleStatus(
        observed_generation=generation,
        conditions=conditions(before, findings, generation, now),
        **serving_fields(loading, servers, placements),
        steps=_steps(serving, progress, servers),
        scaling=scaling_status(scaled, len(servers) + len(progress.unplaced_of(ensemble.name))),
    )


def _steps(ensemble: Ensemble, progress: PoolProgress, servers: tuple[ServerPlan, ...]) -> tuple[StepStatus, ...]:
    steps = []
    for step in ensemble.spec.steps:
        version = step.version or progress.members.version(step.model) or 1
        loading = progress.loading(step.model, [version], servers)
        current = next(entry for entry in loading.versions() if entry.version == version)
        steps.append(StepStatus(model=step.model, version=version, state=current.state))
    return tuple(steps)


def _valid(ensemble: Ensemble, pool: ServingPool) -> Finding:
    unused = unused_ensemble_settings(ensemble, pool)
    if unused:
        message = f"without effect in this release: {unused}"
        return Finding(ConditionType.VALID, True, Reason.SETTING_WITHOUT_EFFECT, message)
    return Finding(ConditionType.VALID, True, Reason.VALID)
