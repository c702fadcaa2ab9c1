"""The strategies of `rollout.strategy`.

Recreate: a server unloads a model's old revision before it loads the new one, with a gap. Surge: it always loads the
new one first, even if it has to wait for memory.

Replicas change one after another. A single replica changes on its server, and so does one that gets no requests.
"""

from collections.abc import Collection

from argosy.api.model.rollout.rollout import Strategy
from argosy.api.values.versions import retained
from argosy.planning.demand.members import Members
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.memory.changes import ModelChange, fresh_versions
from argosy.planning.migration.state import PoolState


def asks_to_recreate(members: Members, name: str) -> bool:
    """Return whether a model is declared to unload before it loads."""
    return _strategy(members, name) is Strategy.RECREATE


def asks_to_surge(members: Members, name: str) -> bool:
    """Return whether a model is declared to keep its old revision until the new one is loaded next to it."""
    return _strategy(members, name) is Strategy.SURGE


def _strategy(members: Members, name: str) -> Strategy:
    released = members.rollouts.get(name)
    if released is not None and released.recreates:
        return Strategy.RECREATE
    model = members.models.get(name)
    rollout = model.spec.rollout if model is not None else None
    return rollout.strategy if rollout is not None else Strategy.AUTO


def replaces(state: PoolState, server: str, change: ModelChange) -> bool:
    """Return whether a change replaces loaded versions of a model to recreate: versions leave, or are loaded in another
    revision.

    A version that is loaded in addition to others replaces none, except for an engine that is opened by its path.
    """
    name = change.placement.model
    if change.before is None or change.inplace or not asks_to_recreate(state.members, name):
        return False
    if change.one_path:
        return True
    spec, rollout = state.members.models[name].spec, state.members.rollouts.get(name)
    loaded, target = state.observed.loaded_on(server)[name], state.targets[server][name]
    stays = retained(spec.declared_versions, spec.version_policy, change.versions)
    leaving = change.versions - (target.versions.keys() if rollout is not None and rollout.by_replicas else stays)
    return bool(leaving or change.versions & fresh_versions(loaded, target).keys())


def awaited(state: PoolState, binding: Binding, recreated: Collection[Binding]) -> frozenset[Binding]:
    """Return the replicas that must be reached before this one may go: none where it is alone or not reached itself."""
    server, name = binding
    if not state.observed.reachable(server, name):
        return frozenset()
    others = [(other, name) for other in state.bindings.servers.get(name, ()) if other != server]
    return frozenset(other for other in others if other in recreated or not state.observed.reachable(*other))
