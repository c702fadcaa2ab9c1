"""What waits for room in its server's documents: what leaves there, or shrinks, has its part of them until then."""

from collections.abc import Collection, Mapping

from argosy.planning.demand.documents import NO_SIZE
from argosy.planning.demand.members import Members
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.revisions import Form
from argosy.planning.migration.state import PoolState
from argosy_agent.contract.sizes import STAYING_BYTES, entry_bytes


def awaiting_room(state: PoolState, most: int = STAYING_BYTES) -> Blockers:
    """Return what of the planned servers is not loaded yet, or grows, and would make a document of its server larger
    than `most` bytes; and what has to leave or to shrink there first.

    Where nothing would make room nothing waits for it: its agent then says what it can.
    """
    found: Blockers = {}
    for server in state.plan.servers:
        held = state.observed.held(server.name) if state.keeps_its_gpus(server) else {}
        targets = state.targets.get(server.name, {})
        growing = {name for name, form in targets.items() if _may_grow(held.get(name), form)}
        if held and growing:
            found.update(
                ((server.name, name), frozenset((server.name, each) for each in blockers))
                for name, blockers in _blocked(held, targets, growing, state.members, most)
            )
    return found


def _blocked(
    held: Mapping[str, Form], targets: Mapping[str, Form], growing: Collection[str], members: Members, most: int
) -> list[tuple[str, set[str]]]:
    now = {name: _held_bytes(form) for name, form in held.items()}
    coming = {name: _declared_bytes(targets[name], members) for name in growing}
    leaving = held.keys() - targets.keys() | {name for name in coming if coming[name] < now.get(name, 0)}
    room = most - sum(now.values())
    blocked: list[tuple[str, set[str]]] = []
    for name in sorted(coming, key=lambda name: (name not in held, name)):
        more = coming[name] - now.get(name, 0)
        if more > room and leaving - {name}:
            blocked.append((name, leaving - {name}))
        elif more > 0:
            room -= more
    return blocked


def _may_grow(held: Form | None, target: Form) -> bool:
    return held is None or held.config_key != target.config_key or not target.versions.keys() <= held.versions.keys()


def _held_bytes(form: Form) -> int:
    return entry_bytes(form.name, form.name, form.config_bytes, form.versions, form.steps, len(form.gpus))


def _declared_bytes(form: Form, members: Members) -> int:
    return members.sizes.get(form.name, NO_SIZE).with_versions(len(form.versions))
