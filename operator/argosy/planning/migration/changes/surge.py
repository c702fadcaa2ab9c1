"""Surges: a new revision of a model loads next to the old one if the GPU's memory, headroom included, holds both.

Where it does not, or where the model is declared so (`recreation`), it is recreated: it replaces the old one, on one
server after the other, while the others go on serving. A model that serves nowhere else, and is not declared so, keeps
its old revision: what serves is not unloaded for what may not load. So does one that is declared to surge. Where it is
others that leave or change, it is deferred until they have.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from argosy.planning.amounts import gib
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.changes.recreation import asks_to_surge, awaited, replaces
from argosy.planning.migration.changes.rollback import replaced_at_once, taken_back
from argosy.planning.migration.memory.budget import BlockedChange, MemoryBudget, Shortage
from argosy.planning.migration.state import PoolState
from argosy.planning.plan import ServerPlan

SURGES = (
    "rollout.strategy is Surge, so it waits for that room: set it to Auto, with minReplicas of 2 at least, or to "
    "Recreate; or lower footprint.gpuMemory"
)
"""What is said of a model that is declared to surge and cannot."""
_WITHOUT_MEMORY = (
    "Raise minReplicas to 2 until it has changed, so that one replica changes while the other serves; or set "
    "rollout.strategy to Recreate, which unloads the old one first"
)
SURGES_IN_DOCUMENTS = (
    "rollout.strategy is Surge, so it waits for room in its server's ConfigMap, which what waits for it takes: set it "
    "to Auto or Recreate; or shorten spec.config"
)
"""What is said where it is not memory that it lacks."""


@dataclass(slots=True)
class Surges:
    """`recreated`: what is unloaded first, so that its successor finds memory. `stuck`: what keeps its revision, and
    why.

    `deferred`: what keeps it until others have freed memory; `crowded`: of that, what waits for headroom in documents.
    `unloading`: what first unloads versions that leave anyway.
    """

    recreated: set[Binding] = field(default_factory=set)
    stuck: dict[Binding, str] = field(default_factory=dict)
    deferred: Blockers = field(default_factory=dict)
    crowded: set[Binding] = field(default_factory=set)
    unloading: set[Binding] = field(default_factory=set)


def surges(state: PoolState, budgets: Mapping[str, MemoryBudget], begun: Iterable[Binding]) -> Surges:
    """Return how every new revision that does not fit next to the old one is loaded.

    `begun` are bindings that drain already: what is recreated goes on before others begin.
    """
    first, back = set(begun), replaced_at_once(state, taken_back(state))
    changes = Surges()
    _recreate(state, budgets, first, back, changes)
    tight = {
        (server, name): blocked
        for server, budget in budgets.items()
        for name, blocked in budget.blocked.items()
        if blocked.change.before is not None and (server, name) not in changes.recreated | changes.deferred.keys()
    }
    for binding in sorted(tight, key=lambda binding: (binding not in first, binding)):
        server, name = binding
        blocked, together = tight[binding], state.observed.bindings_with_users(binding)
        may_go = blocked.fits_alone and not (
            asks_to_surge(state.members, name) or _is_in_rollout(state, server, blocked)
        )
        if blocked.fits_then:
            changes.unloading.add(binding)
        elif may_go and (
            binding in back
            or all(_served_on_others(state, member, server, changes.recreated) for _, member in together)
        ):
            changes.recreated |= together
        elif blocked.shortage is not None or not blocked.blockers:
            surge = asks_to_surge(state.members, name)
            changes.stuck[binding] = _why(budgets[server].server, blocked, blocked.shortage, surge)
        else:
            changes.deferred[binding] = frozenset((server, blocker) for blocker in blocked.blockers)
    return changes


def _recreate(
    state: PoolState,
    budgets: Mapping[str, MemoryBudget],
    first: set[Binding],
    back: Collection[Binding],
    changes: Surges,
) -> None:
    """Unload first what is declared so, where others leave it the memory that it needs once its old
    revision is gone.
    """
    replaced = [
        (server, change.placement.model)
        for server, budget in budgets.items()
        for change in budget.changes.changes
        if replaces(state, server, change) and budget.fits_alone(change.placement.model)
    ]
    for binding in sorted(
        replaced, key=lambda binding: (binding not in first, state.observed.reachable(*binding), binding)
    ):
        waits = awaited(state, binding, changes.recreated) if binding not in back else frozenset()
        if waits:
            changes.deferred[binding] = waits
        else:
            changes.recreated |= state.observed.bindings_with_users(binding)


def _is_in_rollout(state: PoolState, server: str, blocked: BlockedChange) -> bool:
    """Return whether a rollout keeps a loaded version next to the new one: unloading it would not help."""
    change, members = blocked.change, state.members
    name = change.placement.model
    staying = change.versions & state.targets[server][name].versions.keys() - change.coming_versions
    return not staying.isdisjoint(members.versions_in_rollouts().get(name, ()))


def _why(server: ServerPlan, blocked: BlockedChange, short: Shortage | None, surge: bool) -> str:
    version, versions = blocked.change.placement.version, blocked.change.versions
    old = ", ".join(map(str, sorted(versions)))
    if blocked.unreserved is not None:
        return f"{blocked.unreserved.message}. {SURGES if surge else _WITHOUT_MEMORY}"
    if short is None:
        return f"{_one_path(version, versions, old)}. {_WITHOUT_MEMORY}"
    if blocked.change.inplace:
        return (
            f"further instances of version {version} do not fit next to those that serve: they need {gib(short.need)} "
            f"on GPU {short.gpu} of node {server.node}, where {gib(short.free)} are free next to all that is loaded. "
            "Lower instances or footprint.gpuMemory"
        )
    what = (
        f"the new configuration of version {version} does not fit next to the one that serves"
        if version in versions
        else f"version {version} does not fit next to version {old}, which goes on serving"
    )
    lacks = (
        f"{what}: it needs {gib(short.need)} on GPU {short.gpu} of node {server.node}, where {gib(short.free)} are "
        "free next to all that is loaded"
    )
    if surge:
        return f"{lacks}. {SURGES}"
    return f"{lacks}. {_WITHOUT_MEMORY}; or lower footprint.gpuMemory"


def _one_path(version: int, versions: Collection[int], old: str) -> str:
    what = f"the new configuration of version {version}" if version in versions else f"version {version}"
    return (
        f"{what} is not loaded next to version {old}, which goes on serving: the server opens one engine of "
        "tensorrt_llm for all versions"
    )


def _served_on_others(state: PoolState, name: str, server: str, recreated: set[Binding]) -> bool:
    """Return whether every other replica is reached and stays."""
    others = [other for other in state.bindings.servers.get(name, ()) if other != server]
    if not others and not state.members.declares(name):
        return True
    return bool(others) and all(
        state.observed.reachable(other, name) and (other, name) not in recreated for other in others
    )
