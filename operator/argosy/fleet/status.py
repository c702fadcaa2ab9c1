"""What is reported on every resource: the plan held against what servers say. Written whole, so one write
each will do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from argosy.api import (
    Condition,
    Ensemble,
    EnsembleStatus,
    InferenceModel,
    InferenceModelStatus,
    Problem,
    Resource,
    ServingPool,
    ServingPoolStatus,
)
from argosy.fleet.demand import belongs
from argosy.fleet.ensemblestatus import ensemble_status
from argosy.fleet.facts import Node, ServerReport
from argosy.fleet.grouping import models_of
from argosy.fleet.invalidstatus import invalid_status
from argosy.fleet.modelstatus import model_status
from argosy.fleet.plan import FleetPlan, PoolPlan
from argosy.fleet.poolstatus import pool_status

Status = InferenceModelStatus | EnsembleStatus | ServingPoolStatus


@dataclass(frozen=True, slots=True)
class Situation:
    """All that statuses are made from.

    `resources` are all that could be read; those that a problem names get a status that says so. `reports`
    maps a pool's key to what its servers say; `previous` maps a resource's identity to the status written
    last.
    """

    resources: Sequence[Resource]
    problems: Sequence[Problem]
    plan: FleetPlan
    nodes: Sequence[Node]
    reports: Mapping[str, Sequence[ServerReport]]
    previous: Mapping[str, Status]

    def pool_of(self, member: InferenceModel | Ensemble) -> ServingPool | None:
        """The pool that a model or ensemble asks for, if it exists."""
        pools = (each for each in self.resources if isinstance(each, ServingPool))
        return next((pool for pool in pools if belongs(member, pool)), None)

    def plan_of(self, pool: ServingPool) -> PoolPlan:
        """The pool's plan; an empty one for a pool that was not planned."""
        empty = PoolPlan(pool.key, (), (), 0, 0, 0)
        return next((plan for plan in self.plan.pools if plan.pool == pool.key), empty)

    def ensembles_beside(self, member: InferenceModel | Ensemble) -> list[Ensemble]:
        """The valid ensembles of the same pool."""
        return [e for e in self.resources if isinstance(e, Ensemble) and _same_pool(e, member) and not self.faults(e)]

    def faults(self, resource: Resource) -> list[Problem]:
        """What is wrong with a resource."""
        return [problem for problem in self.problems if problem.resource == resource.identity]


def statuses(situation: Situation, now: datetime) -> dict[str, Status]:
    """The status of every resource, by its identity. `now` must have a time zone."""
    return {each.identity: _status(each, situation, now) for each in situation.resources}


def _status(resource: Resource, situation: Situation, now: datetime) -> Status:
    previous = situation.previous.get(resource.identity) or resource.status
    before = previous.conditions if previous else ()
    faults = situation.faults(resource)
    if isinstance(resource, ServingPool):
        if faults:
            return invalid_status(resource, faults, previous, now)
        reports = {report.name: report for report in situation.reports.get(resource.key, ())}
        return pool_status(resource, situation.plan_of(resource), situation.nodes, reports, before, now)
    pool = situation.pool_of(resource)
    if pool is None:
        faults = faults or [_without_pool(resource)]
    if faults or pool is None:
        return invalid_status(resource, faults, previous, now)
    if isinstance(resource, InferenceModel):
        return _model(resource, pool, situation, before, now)
    return _ensemble(resource, pool, situation, before, now)


def _model(
    model: InferenceModel, pool: ServingPool, situation: Situation, before: Sequence[Condition], now: datetime
) -> InferenceModelStatus:
    pinned = _pinned(model.name, situation.ensembles_beside(model))
    reports = {report.name: report for report in situation.reports.get(pool.key, ())}
    return model_status(model, situation.plan_of(pool), reports, before, now, pool.spec.suspend, pinned)


def _ensemble(
    ensemble: Ensemble, pool: ServingPool, situation: Situation, before: Sequence[Condition], now: datetime
) -> EnsembleStatus:
    beside = situation.ensembles_beside(ensemble)
    members = [e for e in situation.resources if isinstance(e, InferenceModel | Ensemble) and _same_pool(e, ensemble)]
    versions = {member.name: member.spec.version for member in members}
    reports = {report.name: report for report in situation.reports.get(pool.key, ())}
    models = models_of(ensemble.name, beside)
    return ensemble_status(ensemble, models, versions, situation.plan_of(pool), reports, before, now, pool.spec.suspend)


def _same_pool(one: InferenceModel | Ensemble, other: InferenceModel | Ensemble) -> bool:
    return (one.namespace, one.spec.pool_ref) == (other.namespace, other.spec.pool_ref)


def _pinned(model: str, ensembles: Iterable[Ensemble]) -> set[int]:
    steps = (step for ensemble in ensembles for step in ensemble.spec.steps if step.model == model)
    return {step.version for step in steps if step.version is not None}


def _without_pool(member: InferenceModel | Ensemble) -> Problem:
    pool = member.spec.pool_ref
    message = f"there is no ServingPool {pool!r} in namespace {member.namespace}; create it, or name another"
    return Problem("", member.identity, "spec.poolRef", message)
