"""Resources, nodes and what servers say become what there should be: the one function both shells call. Pure.

It is called again whenever anything changes, with what its last answer led to, and each answer is one step: a
new version beside the old one, then the ensembles over to it, then the old one gone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from argosy.api.documents import Resource
from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.problems import Problem
from argosy.api.servingpool import ServingPool
from argosy.fleet.demand.members import Members, Places
from argosy.fleet.demand.pool_facts import fleet_facts
from argosy.fleet.facts import CurrentServer, Device, Node, Refusal, ServerReport
from argosy.fleet.migration.drain import Departures, Scene, departures
from argosy.fleet.migration.observed import Observed
from argosy.fleet.nodes.readiness import next_change, standing
from argosy.fleet.nodes.selection import closed
from argosy.fleet.packing.pools import pack_fleet
from argosy.fleet.plan import FleetPlan, PoolPlan
from argosy.fleet.status.statuses import Situation, Status, statuses
from argosy.fleet.validation.accept import Accepted, accept
from argosy.render.configrules import check_together
from argosy.render.steps import ServerStep, behind_on, next_forms, server_steps
from argosy_runtime.agent.contract import RenderedRepository

__all__ = ["DRAIN", "Outcome", "Previous", "Refusal", "ServerStep", "reconcile"]

DRAIN = timedelta(seconds=10)
"""From when a model is no longer routed to, until it is unloaded: endpoints have to propagate, requests to end."""


@dataclass(frozen=True, slots=True)
class Previous:
    """What earlier answers led to.

    By the pool's key: its servers, the repository that each last loaded, what each had ready when it was last heard of,
    and since when what leaves a server (`server/model`) is no longer routed to. By identity: each resource's status,
    and its last valid form.
    """

    servers: Mapping[str, Sequence[CurrentServer]] = field(default_factory=dict)
    repositories: Mapping[str, Sequence[RenderedRepository]] = field(default_factory=dict)
    statuses: Mapping[str, Status] = field(default_factory=dict)
    leaving: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)
    valid: Mapping[str, Resource] = field(default_factory=dict)
    served: Mapping[str, Sequence[RenderedRepository]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What there should be: the plan, the next step of each pool's servers, every resource's status.

    `leaving` and `valid` belong into the next `Previous`. `wake` is when to ask again though nothing changes.
    """

    plan: FleetPlan
    statuses: Mapping[str, Status]
    problems: tuple[Problem, ...]
    steps: Mapping[str, tuple[ServerStep, ...]]
    leaving: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)
    wake: datetime | None = None
    valid: Mapping[str, Resource] = field(default_factory=dict)

    @property
    def repositories(self) -> dict[str, tuple[RenderedRepository, ...]]:
        """Each pool's repositories, one per planned server."""
        return {
            pool: tuple(step.repository for step in steps if not step.leaving) for pool, steps in self.steps.items()
        }

    @property
    def servers(self) -> dict[str, tuple[CurrentServer, ...]]:
        """The servers there should be, those that leave too, as the next call's `previous.servers`."""
        return {pool: tuple(step.plan.current for step in steps) for pool, steps in self.steps.items()}


def reconcile(
    resources: Sequence[Resource],
    nodes: Sequence[Node],
    reports: Mapping[str, Sequence[ServerReport]],
    previous: Previous,
    now: datetime,
    problems: Sequence[Problem] = (),
    *,
    refusals: Sequence[Refusal] = (),
    urls: Mapping[str, str] | None = None,
    selectors: Mapping[str, str] | None = None,
    faulty: Sequence[Resource] = (),
    elsewhere: Mapping[str, Mapping[str, bool]] | None = None,
    claimed: Collection[Device] = (),
    drain: timedelta = DRAIN,
) -> Outcome:
    """One step. `reports` are by the pool's key; `now` has a time zone.

    `problems` are those found when the resources were read. A resource among `resources` that one of them names
    stands there in its last valid form: it is served, and its status says what is wrong. One among `faulty` has
    no valid form; it only gets a status. Problems between resources are found here, and take a resource out of
    the plan. `urls` and `selectors` are what a status gives, by identity; without, a server's own URL.
    `refusals` are what could not be applied last time. `elsewhere`, by the pool's key: names that pools which take no
    part here are to serve by now, and whether requests reach them there. `claimed`: GPUs that such pools ask for.
    """
    accepted = accept(resources, problems, previous.valid, check_together)
    here = standing(nodes, now)
    pools = [each for each in accepted.valid if isinstance(each, ServingPool)]
    current = {each.key: _running(each, nodes, reports, previous) for each in pools}
    facts = fleet_facts(accepted.valid, here, current, previous.servers, previous.repositories)
    plan = pack_fleet(facts, claimed)
    suspended = {each.key for each in pools if each.spec.suspend}
    members = {each.pool: _members(each.pool, accepted, faulty, elsewhere or {}) for each in plan.pools}
    scenes = {each.pool: _scene(each, members[each.pool], here, reports, current, previous) for each in plan.pools}
    leaving = {
        key: Departures() if key in suspended else departures(scene, previous.leaving.get(key, {}), now, drain)
        for key, scene in scenes.items()
    }
    every = list({each.identity: each for each in (*resources, *faulty)}.values())
    forms = {each.identity: each for each in accepted.valid}
    situation = Situation(
        resources=[forms.get(each.identity, each) for each in every],
        problems=accepted.problems,
        plan=plan,
        observed={key: scene.observed for key, scene in scenes.items()},
        previous=previous.statuses,
        still=accepted.still,
        refusals=refusals,
        urls=urls or {},
        selectors=selectors or {},
        notes={key: each.notes for key, each in leaving.items()},
    )
    due = [next_change(nodes, now), *(each.wake for each in leaving.values())]
    return Outcome(
        plan=plan,
        statuses=statuses(situation, now),
        problems=accepted.problems,
        steps={key: server_steps(scene, leaving[key]) for key, scene in scenes.items()},
        leaving={key: each.since for key, each in leaving.items() if each.since},
        wake=min((each for each in due if each is not None), default=None),
        valid=forms,
    )


def _running(
    pool: ServingPool, nodes: Sequence[Node], reports: Mapping[str, Sequence[ServerReport]], previous: Previous
) -> tuple[CurrentServer, ...]:
    """The pool's servers that have a place. One that does not answer, on a closed node, ended and finds none there."""
    shut = closed(pool, nodes)
    answering = {report.name for report in reports.get(pool.key, ()) if report.ready}
    servers = previous.servers.get(pool.key, ())
    return tuple(each for each in servers if each.node not in shut or each.name in answering)


def _members(
    pool: str, accepted: Accepted, faulty: Sequence[Resource], elsewhere: Mapping[str, Mapping[str, bool]]
) -> Members:
    mine = [each for each in accepted.valid if _asks_for(each, pool)]
    return Members.of(
        [each for each in mine if isinstance(each, InferenceModel)],
        [each for each in mine if isinstance(each, Ensemble)],
        [each.name for each in (*accepted.out, *faulty) if _asks_for(each, pool)],
        elsewhere.get(pool),
    )


def _scene(
    plan: PoolPlan,
    members: Members,
    nodes: Sequence[Node],
    reports: Mapping[str, Sequence[ServerReport]],
    current: Mapping[str, Sequence[CurrentServer]],
    previous: Previous,
) -> Scene:
    places = Places.of(plan, members)
    observed = Observed.of(
        reports.get(plan.pool, ()), previous.repositories.get(plan.pool, ()), previous.served.get(plan.pool, ())
    )
    observed = replace(observed, behind=behind_on(plan.servers, members, places, observed))
    return Scene(
        plan=plan,
        members=members,
        places=places,
        observed=observed,
        current=current.get(plan.pool, ()),
        nodes={node.name: node for node in nodes if node.ready},
        forms=next_forms(plan, members, places, observed),
    )


def _asks_for(resource: Resource, pool: str) -> bool:
    return not isinstance(resource, ServingPool) and resource.pool_key == pool
