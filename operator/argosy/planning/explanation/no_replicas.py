"""Groups that a plan has no replica of, since none is asked for: why there is none, so that nothing is passed over."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from argosy.api import Resource, ServingPool
from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Group, PoolFacts

_SUSPENDED = "its pool is suspended (spec.suspend)"
_AT_ZERO = "it is at zero until requests come (minReplicas: 0); to plan with some, set replicas"


@dataclass(frozen=True, slots=True)
class NoReplicas:
    """A group of which no replica is asked for, and why."""

    pool: PoolKey
    group: str
    models: tuple[str, ...]
    reason: str


def no_replicas(facts: Sequence[PoolFacts], resources: Iterable[Resource]) -> list[NoReplicas]:
    """Return the groups without replicas, by pool and name. `resources`: what is declared."""
    declared = (one for one in resources if not isinstance(one, ServingPool))
    stopped = {(one.pool_key, one.name) for one in declared if one.spec.replicas == 0}
    return [
        NoReplicas(pool.pool, group.name, tuple(demand.model for demand in group.demands), reason)
        for pool in facts
        for group, reason in _of_pool(pool, {name for key, name in stopped if key == pool.pool})
    ]


def _of_pool(facts: PoolFacts, stopped: set[str]) -> Iterator[tuple[Group, str]]:
    for group in sorted(facts.groups, key=lambda group: group.name):
        names = {group.name, *(demand.model for demand in group.demands)} & stopped
        if facts.suspended:
            yield group, _SUSPENDED
        elif not group.replicas:
            yield group, "replicas is 0" if names else _AT_ZERO
