"""Bindings that wait for bytes in their server's ConfigMaps, until something leaves there or shrinks."""

from collections.abc import Collection, Mapping

from argosy.planning.demand.footprint import NO_SIZE
from argosy.planning.demand.members import Members
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.revisions import ModelRevision
from argosy.planning.migration.state import PoolState
from argosy_agent.contract.sizes import STAYING_BYTES, entry_bytes


def awaiting_document_bytes(state: PoolState, most: int = STAYING_BYTES) -> Blockers:
    """Return what would make a document of its server larger than `most` bytes, and what has to leave or shrink there
    first.

    That is what is not loaded yet, or grows. Where nothing would free any bytes nothing waits: its agent then reports
    what it can.
    """
    blockers_of: Blockers = {}
    for server in state.plan.servers:
        loaded = state.observed.loaded_on(server.name) if state.keeps_its_gpus(server) else {}
        targets = state.targets.get(server.name, {})
        growing = {name for name, revision in targets.items() if _may_grow(loaded.get(name), revision)}
        if loaded and growing:
            blockers_of.update(
                ((server.name, name), frozenset((server.name, blocker) for blocker in blockers))
                for name, blockers in _blocked(loaded, targets, growing, state.members, most)
            )
    return blockers_of


def _blocked(
    loaded: Mapping[str, ModelRevision],
    targets: Mapping[str, ModelRevision],
    growing: Collection[str],
    members: Members,
    most: int,
) -> list[tuple[str, set[str]]]:
    now = {name: _loaded_bytes(revision) for name, revision in loaded.items()}
    coming = {
        name: max(_declared_bytes(targets[name], members), _more(name, loaded, targets, members)) for name in growing
    }
    leaving = loaded.keys() - targets.keys() | {name for name in coming if coming[name] < now.get(name, 0)}
    free = most - sum(now.values())
    blocked: list[tuple[str, set[str]]] = []
    for name in sorted(coming, key=lambda name: (name not in loaded, name)):
        more = coming[name] - now.get(name, 0)
        if more > free and leaving - {name}:
            blocked.append((name, leaving - {name}))
        elif more > 0:
            free -= more
    return blocked


def _may_grow(loaded: ModelRevision | None, target: ModelRevision) -> bool:
    return (
        loaded is None or loaded.config_key != target.config_key or not target.versions.keys() <= loaded.versions.keys()
    )


def _loaded_bytes(revision: ModelRevision) -> int:
    return entry_bytes(
        revision.name, revision.name, revision.config_bytes, revision.versions, revision.step_names, len(revision.gpus)
    )


def _more(
    name: str, loaded: Mapping[str, ModelRevision], targets: Mapping[str, ModelRevision], members: Members
) -> int:
    """Return the bytes of a model of which a version stays as it is loaded, in a configuration of its own, and others
    come; 0 of any other one. A spec that is not declared any more may have had a longer configuration.
    """
    target, here = targets[name], loaded.get(name)
    if here is None or not any(source.own for source in target.versions.values()):
        return 0
    fresh = target.versions.keys() - here.versions.keys()
    return _loaded_bytes(here) + members.sizes.get(name, NO_SIZE).further * max(1, len(fresh))


def _declared_bytes(revision: ModelRevision, members: Members) -> int:
    return members.sizes.get(revision.name, NO_SIZE).with_versions(len(revision.versions))
