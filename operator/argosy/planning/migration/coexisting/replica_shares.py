"""Which servers have a model's candidate, and which its stable revision, where none has both."""

from argosy.planning.demand.members import Members
from argosy.planning.migration.bindings import PlannedBindings
from argosy.planning.migration.observed import Observed
from argosy.planning.rollouts.shares import candidate_replicas


def version_alone(
    name: str, server: str, members: Members, bindings: PlannedBindings, observed: Observed
) -> int | None:
    """Return the one version that a server is to have of a model in a rollout by replicas; None in any other.

    The nearest number of servers to the candidate's share has the candidate: first those that have it already, then
    those that have no stable revision to unload.
    """
    rollout = members.rollouts.get(name)
    if rollout is None or not rollout.by_replicas:
        return None
    stable, candidate = rollout.state.stable, rollout.state.candidate
    if stable is None or candidate is None:
        return None
    servers = bindings.servers.get(name, ())

    def order(one: str) -> tuple[bool, bool]:
        loaded = observed.loaded_on(one).get(name)
        versions = loaded.versions.keys() if loaded is not None else ()
        return candidate.version not in versions, stable.version in versions

    count = candidate_replicas(rollout.candidate_share, len(servers))
    return candidate.version if server in sorted(servers, key=order)[:count] else stable.version
