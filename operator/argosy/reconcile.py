"""Resources, nodes and what servers say become what there should be: the one function both shells call. Pure.

It is called again whenever anything changes, with what its last answer led to, and each answer is one step: a
new version beside the old one, then the ensembles over to it, then the old one gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from argosy.api.documents import Resource
from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.problems import Problem
from argosy.api.servingpool import ServingPool
from argosy.fleet.admission import check_set
from argosy.fleet.demand import belongs, fleet_facts
from argosy.fleet.facts import CurrentServer, LoadState, Node, ServerReport
from argosy.fleet.plan import FleetPlan, PoolPlan, ServerPlan
from argosy.fleet.sharing import pack_fleet
from argosy.fleet.status import Situation, Status, statuses
from argosy.render.repositories import server_repository
from argosy.render.repository import RenderedRepository
from argosy.render.rollover import ServerState


@dataclass(frozen=True, slots=True)
class Previous:
    """What earlier answers led to.

    By the pool's key: its servers, and the repository that each last loaded. By identity: each resource's
    status.
    """

    servers: Mapping[str, Sequence[CurrentServer]] = field(default_factory=dict)
    repositories: Mapping[str, Sequence[RenderedRepository]] = field(default_factory=dict)
    statuses: Mapping[str, Status] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What there should be: the plan, each pool's repositories (one per server), every resource's status."""

    plan: FleetPlan
    repositories: Mapping[str, tuple[RenderedRepository, ...]]
    statuses: Mapping[str, Status]
    problems: tuple[Problem, ...]

    @property
    def servers(self) -> dict[str, tuple[CurrentServer, ...]]:
        """The planned servers, as the next call's `previous.servers`."""
        return {pool.pool: pool.current for pool in self.plan.pools}


def reconcile(
    resources: Sequence[Resource],
    nodes: Sequence[Node],
    reports: Mapping[str, Sequence[ServerReport]],
    previous: Previous,
    now: datetime,
    problems: Sequence[Problem] = (),
) -> Outcome:
    """One step. `reports` are by the pool's key; `now` has a time zone.

    `problems` are those found when the resources were read; problems between them are found here. A resource
    with a problem takes no part in the plan, and its status says why.
    """
    found = (*problems, *check_set(resources))
    faulty = {problem.resource for problem in found}
    valid = [resource for resource in resources if resource.identity not in faulty]
    plan = pack_fleet(fleet_facts(valid, nodes, previous.servers))
    situation = Situation(resources, found, plan, nodes, reports, previous.statuses)
    return Outcome(
        plan=plan,
        repositories={
            pool.pool: _repositories(pool, valid, reports.get(pool.pool, ()), previous.repositories.get(pool.pool, ()))
            for pool in plan.pools
        },
        statuses=statuses(situation, now),
        problems=found,
    )


def _repositories(
    plan: PoolPlan,
    resources: Iterable[Resource],
    reports: Sequence[ServerReport],
    loaded: Sequence[RenderedRepository],
) -> tuple[RenderedRepository, ...]:
    known = list(resources)
    pool = next(each for each in known if isinstance(each, ServingPool) and each.key == plan.pool)
    models = {m.name: m for m in known if isinstance(m, InferenceModel) and belongs(m, pool)}
    ensembles = [each for each in known if isinstance(each, Ensemble) and belongs(each, pool)]
    return tuple(
        server_repository(server, models, ensembles, _state(server, reports, loaded)) for server in plan.servers
    )


def _state(server: ServerPlan, reports: Sequence[ServerReport], loaded: Sequence[RenderedRepository]) -> ServerState:
    repository = next((each for each in loaded if each.server == server.name), RenderedRepository(server.name))
    ready = frozenset(
        (model.model, model.version)
        for report in reports
        if report.name == server.name and report.ready
        for model in report.models
        if model.state is LoadState.READY
    )
    return ServerState(repository, ready)
