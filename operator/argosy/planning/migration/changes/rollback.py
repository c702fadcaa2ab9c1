"""A candidate that is taken back, on servers that have it without the stable revision: requests stop coming there at
once, and not only after endpoints had time to follow, as where both revisions are good.

Where both are on one server, weights do so.
"""

from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.state import PoolState
from argosy.planning.rollouts.member import MemberRollout
from argosy.rollout.state import Phase


def taken_back(state: PoolState) -> frozenset[Binding]:
    """Return where a candidate that is taken back is loaded without its stable revision."""
    return frozenset(
        (server, name)
        for name, rollout in state.members.rollouts.items()
        if rollout.state.phase is Phase.ROLLING_BACK
        for server in state.current
        if _has_candidate_alone(state, (server, name), rollout)
    )


def replaced_at_once(state: PoolState, withdrawn: frozenset[Binding]) -> frozenset[Binding]:
    """Return which of them need not wait for one another: those whose stable revision is reached on another server, and
    so is each ensemble that runs it.
    """
    return frozenset(
        (server, name)
        for server, name in withdrawn
        if all(
            _is_served(state, user, {other for other, member in withdrawn if member == name})
            for user in state.observed.with_users(name, server)
        )
    )


def _has_candidate_alone(state: PoolState, binding: Binding, rollout: MemberRollout) -> bool:
    server, name = binding
    stable, candidate = rollout.state.stable, rollout.state.candidate
    loaded = state.observed.loaded_on(server).get(name)
    if loaded is None or stable is None or candidate is None:
        return False
    return candidate.version in loaded.versions and stable.version not in loaded.versions


def _is_served(state: PoolState, name: str, withdrawn: set[str]) -> bool:
    """Return whether a declared member is reached on a server other than these."""
    servers = [server for server in state.bindings.servers.get(name, ()) if server not in withdrawn]
    return not state.members.declares(name) or any(state.observed.reachable(server, name) for server in servers)
