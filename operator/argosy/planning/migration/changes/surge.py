"""A new form of a model loads beside the old one if the GPU's memory, headroom included, holds both: a surge.

Where it does not, or where the model is declared so (`recreation`), it is recreated: it takes the old one's place, on
one server after the other, while the others go on serving. A model that serves nowhere else, and is not declared so,
keeps its old form: what serves is not taken down for what may not load. So does one that is declared to surge. Where it
is others that leave or change, it is deferred until they have.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.planning.amounts import gib
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.changes.recreation import asks_to_surge, awaited, replaces
from argosy.planning.migration.memory.budget import BlockedChange, MemoryBudget, Shortage
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.state import PoolState
from argosy.planning.plan import ServerPlan

SURGES = (
    "rollout.strategy is Surge, so it waits for that room: set it to Auto, with minReplicas of 2 at least, or to "
    "Recreate; or lower footprint.gpuMemory"
)
"""What is said of a model that is declared to surge and cannot."""
SURGES_IN_DOCUMENTS = (
    "rollout.strategy is Surge, so it waits for room in its server's ConfigMap, which what waits for it takes: set it "
    "to Auto or Recreate; or shorten spec.config"
)
"""What is said where it is not memory that it lacks."""


@dataclass(slots=True)
class Surges:
    """`recreated`: what is unloaded first, so that its successor finds memory. `stuck`: what keeps its form, and why.

    `deferred`: what keeps it until others have made room; `crowded`: of that, what waits for room in documents.
    """

    recreated: set[Binding] = field(default_factory=set)
    stuck: dict[Binding, str] = field(default_factory=dict)
    deferred: Blockers = field(default_factory=dict)
    crowded: set[Binding] = field(default_factory=set)


def surges(state: PoolState, budgets: Mapping[str, MemoryBudget], begun: Iterable[Binding]) -> Surges:
    """Return how every new form for which there is no memory beside the old one gets its place.

    `begun` are bindings that drain already: what is recreated goes on before others begin.
    """
    first = set(begun)
    found = Surges()
    _recreate(state, budgets, first, found)
    tight = {
        (server, name): each
        for server, budget in budgets.items()
        for name, each in budget.blocked.items()
        if each.change.before is not None and (server, name) not in found.recreated | found.deferred.keys()
    }
    for binding in sorted(tight, key=lambda each: (each not in first, each)):
        server, name = binding
        blocked, together = tight[binding], {(server, each) for each in with_users(name, state.observed, server)}
        may_go = blocked.fits_alone and not asks_to_surge(state.members, name)
        if may_go and all(_served_elsewhere(state, each, server, found.recreated) for _, each in together):
            found.recreated |= together
        elif blocked.shortage is not None:
            surge = asks_to_surge(state.members, name)
            found.stuck[binding] = _why(budgets[server].server, blocked, blocked.shortage, surge)
        else:
            found.deferred[binding] = frozenset((server, each) for each in blocked.blockers)
    return found


def _recreate(state: PoolState, budgets: Mapping[str, MemoryBudget], first: set[Binding], found: Surges) -> None:
    """Unload first what is declared so, where others leave it the room that it needs once its old form is gone."""
    replaced = [
        (server, change.placement.model)
        for server, budget in budgets.items()
        for change in budget.changes.changes
        if replaces(state, server, change) and budget.fits_alone(change.placement.model)
    ]
    for binding in sorted(replaced, key=lambda each: (each not in first, state.observed.reachable(*each), each)):
        server, name = binding
        waits = awaited(state, binding, found.recreated)
        if waits:
            found.deferred[binding] = waits
        else:
            found.recreated |= {(server, each) for each in with_users(name, state.observed, server)}


def with_users(model: str, observed: Observed, server: str) -> set[str]:
    """Return the model, and the loaded ensembles that run it, be it through others."""
    found, held = {model}, observed.held(server)
    while more := {each.name for each in held.values() if found & set(each.steps)} - found:
        found |= more
    return found


def _why(server: ServerPlan, blocked: BlockedChange, short: Shortage, surge: bool) -> str:
    version, versions = blocked.change.placement.version, blocked.change.versions
    old = ", ".join(map(str, sorted(versions)))
    if blocked.change.in_place:
        return (
            f"further instances of version {version} do not fit beside those that serve: they need {gib(short.need)} "
            f"on GPU {short.gpu} of node {server.node}, where {gib(short.free)} are free beside all that is loaded. "
            "Lower instances or footprint.gpuMemory"
        )
    what = (
        f"the new configuration of version {version} does not fit beside the one that serves"
        if version in versions
        else f"version {version} does not fit beside version {old}, which goes on serving"
    )
    lacks = (
        f"{what}: it needs {gib(short.need)} on GPU {short.gpu} of node {server.node}, where {gib(short.free)} are "
        "free beside all that is loaded"
    )
    if surge:
        return f"{lacks}. {SURGES}"
    return (
        f"{lacks}. Raise minReplicas to 2 until it has changed, so that one replica changes while the other serves; or "
        "set rollout.strategy to Recreate, which unloads the old one first; or lower footprint.gpuMemory"
    )


def _served_elsewhere(state: PoolState, name: str, server: str, recreated: set[Binding]) -> bool:
    """Whether every other place is reached and stays."""
    others = [each for each in state.bindings.servers.get(name, ()) if each != server]
    if not others and not state.members.declares(name):
        return True
    return bool(others) and all(
        state.observed.reachable(other, name) and (other, name) not in recreated for other in others
    )
