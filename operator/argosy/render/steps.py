"""What each server of a pool should be next: its repository, and what may be reached there."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from argosy.api.ensemble import Ensemble
from argosy.fleet.demand.members import Members, Places
from argosy.fleet.migration.drain import Departures, Scene
from argosy.fleet.migration.observed import Observed
from argosy.fleet.migration.routing import routes
from argosy.fleet.plan import PoolPlan, ServerPlan
from argosy_runtime.agent.contract import LoadState, RenderedModel, RenderedRepository

from .repositories import behind, server_repository
from .rollover import Exceptions, ServerState


@dataclass(frozen=True, slots=True)
class ServerStep:
    """What one server should be next, and which models and ensembles may be reached there now.

    `leaving`: the plan has no such server any more; it stays where it was, with what it still serves. `served`: the
    versions that it has ready, or had when it was last heard of.
    """

    plan: ServerPlan
    repository: RenderedRepository
    routes: frozenset[str] = frozenset()
    leaving: bool = False
    served: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def server_steps(scene: Scene, departures: Departures) -> tuple[ServerStep, ...]:
    """The planned servers but for those that wait for GPUs, and then those that leave."""
    planned = [server for server in scene.plan.servers if server.name not in departures.pending]
    return tuple(
        _step(server, scene, departures, leaving)
        for servers, leaving in ((planned, False), (departures.servers, True))
        for server in servers
    )


def next_forms(
    plan: PoolPlan, members: Members, places: Places, observed: Observed
) -> dict[str, dict[str, RenderedModel]]:
    """By planned server and name: what it would hold next if there were room for all of it."""
    found: dict[str, dict[str, RenderedModel]] = {}
    for server in plan.servers:
        ensembles = _ensembles(server.name, members, places)
        repository = server_repository(server, members.models, ensembles, _state(server.name, observed))
        found[server.name] = {model.name: model for model in repository.models}
    return found


def _step(server: ServerPlan, scene: Scene, departures: Departures, leaving: bool) -> ServerStep:
    name = server.name
    repository = _repository(server, scene, departures)
    names = [model.name for model in repository.models]
    reachable = routes(name, names, departures.unrouted.get(name, ()), scene.observed)
    return ServerStep(server, repository, reachable, leaving, _served(repository, scene.observed))


def _repository(server: ServerPlan, scene: Scene, departures: Departures) -> RenderedRepository:
    """What the server should hold next: where nothing is in the way, what it was found to hold next."""
    name = server.name
    withheld, kept, held = (found.get(name) for found in (departures.withheld, departures.kept, departures.held))
    if name in scene.forms and not (withheld or kept or held):
        return RenderedRepository(name, tuple(scene.forms[name].values()))
    exceptions = Exceptions(withheld or (), kept or (), held or ())
    ensembles = _ensembles(name, scene.members, scene.places)
    return server_repository(server, scene.members.models, ensembles, _state(name, scene.observed), exceptions)


def behind_on(
    servers: Sequence[ServerPlan], members: Members, places: Places, observed: Observed
) -> frozenset[tuple[str, str]]:
    """Where, by server and name, something of the plan is loaded in another form than the declared one."""
    return frozenset(
        (server.name, name)
        for server in servers
        for name in behind(server, members.models, _ensembles(server.name, members, places), observed.held(server.name))
    )


def _ensembles(server: str, members: Members, places: Places) -> Sequence[Ensemble]:
    ensembles: Mapping[str, Ensemble] = members.ensembles
    return [ensembles[name] for name in sorted(places.names.get(server, frozenset()) & ensembles.keys())]


def _state(server: str, observed: Observed) -> ServerState:
    return ServerState(
        RenderedRepository(server, tuple(observed.held(server).values())),
        _ready(server, observed),
        known=observed.known,
        served={name: tuple(model.versions) for name, model in observed.served.get(server, {}).items()},
        unserved=observed.unserved,
    )


def _ready(server: str, observed: Observed) -> frozenset[tuple[str, int]]:
    report = observed.reports.get(server)
    said = report.models if report is not None and report.ready else ()
    return frozenset((each.model, each.version) for each in said if each.state is LoadState.READY)


def _of_others(name: str, observed: Observed) -> Collection[int]:
    return observed.known.get(name, ()) if observed.unserved(name) else ()


def _served(repository: RenderedRepository, observed: Observed) -> dict[str, tuple[int, ...]]:
    """Of what a server is to hold the versions that it has ready, or had when it was last heard of.

    Where nobody serves something any more also those that others had: it takes their place.
    """
    ready, before = _ready(repository.server, observed), observed.served.get(repository.server, {})
    found: dict[str, tuple[int, ...]] = {}
    for model in repository.models:
        now = tuple(version for version in sorted(model.versions) if (model.name, version) in ready)
        had = before[model.name].versions if model.name in before else _of_others(model.name, observed)
        if versions := now or tuple(version for version in sorted(model.versions) if version in had):
            found[model.name] = versions
    return found
