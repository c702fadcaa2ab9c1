"""The difference between what runs and a plan: what moves, what is new, what leaves, and what loses its place."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Node
from argosy.planning.nodes.device_names import devices_of
from argosy.planning.nodes.slices import device_names
from argosy.planning.plan import FleetPlan

Running = Mapping[PoolKey, Sequence[CurrentServer]]
"""The servers of each pool, as they run."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """Where one replica of a model is: the server, its node and the GPUs there. No GPU is the server's CPU. `devices`:
    what these are called.
    """

    server: str
    node: str
    gpus: tuple[int, ...]
    devices: str


@dataclass(frozen=True, slots=True)
class Change:
    """One replica of a model that is not where it was. `before`: None for one that is new; `after`: None for one that
    ends.
    """

    pool: PoolKey
    model: str
    before: Location | None
    after: Location | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What a plan changes of what runs.

    `lost`: replicas that run, are still asked for, and have no place in the plan; `removed`: those that are not asked
    for any more. GPUs are those that servers need; `gpus_retained`: further ones that they keep until something else
    needs one of them.
    """

    moved: tuple[Change, ...] = ()
    placed: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    lost: tuple[Change, ...] = ()
    gpus_before: int = 0
    gpus_after: int = 0
    gpus_retained: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether everything stays as it is."""
        changes = (*self.moved, *self.placed, *self.removed, *self.lost)
        return not changes and self.gpus_before == self.gpus_after


def difference(running: Running, plan: FleetPlan, nodes: Iterable[Node]) -> Difference:
    """Return what the plan changes, by pool and model, in the order of their names. `nodes`: those of both."""
    pools, by_name = sorted({*running, *(pool.pool for pool in plan.pools)}), {node.name: node for node in nodes}
    changes = [change for pool in pools for change in _of_pool(pool, running.get(pool, ()), plan, by_name)]
    after = sum(len(server.needed) for pool in plan.pools for server in pool.current)
    removed, lost = _ended([change for change in changes if change.after is None], plan)
    return Difference(
        moved=tuple(change for change in changes if change.before and change.after),
        placed=tuple(change for change in changes if change.before is None),
        removed=removed,
        lost=lost,
        gpus_before=sum(len(server.needed) for servers in running.values() for server in servers),
        gpus_after=after,
        gpus_retained=plan.gpus_used - after,
    )


def _of_pool(
    pool: PoolKey, running: Sequence[CurrentServer], plan: FleetPlan, nodes: Mapping[str, Node]
) -> Iterator[Change]:
    planned = [one for of in plan.pools if of.pool == pool for one in of.current]
    before, after = _locations(running, nodes), _locations(planned, nodes)
    for model in sorted({*before, *after}):
        former, now = Counter(before.get(model, ())), Counter(after.get(model, ()))
        for location, other in _paired(sorted((former - now).elements()), sorted((now - former).elements())):
            yield Change(pool, model, location, other)


def _locations(servers: Sequence[CurrentServer], nodes: Mapping[str, Node]) -> dict[str, list[Location]]:
    locations: dict[str, list[Location]] = {}
    for server in servers:
        node = nodes.get(server.node)
        for model, gpus in server.placed.items():
            devices = devices_of(node, gpus) if node is not None else device_names(gpus)
            locations.setdefault(model, []).append(Location(server.name, server.node, gpus, devices))
    return locations


def _paired(before: list[Location], after: list[Location]) -> Iterator[tuple[Location | None, Location | None]]:
    """Yield where each replica was and is: on the same server if it can be, else on the same node."""
    for nearness in _NEARNESS:
        for location in list(before):
            near = next((other for other in after if nearness(other) == nearness(location)), None)
            if near is not None:
                before.remove(location)
                after.remove(near)
                yield location, near
    yield from zip_longest(before, after)


_NEARNESS: tuple[Callable[[Location], str], ...] = (lambda location: location.server, lambda location: location.node)


def _ended(changes: Sequence[Change], plan: FleetPlan) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return what is not asked for any more, and what loses its place."""
    unplaced, removed, lost = _unplaced(plan), list[Change](), list[Change]()
    for change in changes:
        is_lost = unplaced[change.pool, change.model] > 0
        unplaced[change.pool, change.model] -= is_lost
        (lost if is_lost else removed).append(change)
    return tuple(removed), tuple(lost)


def _unplaced(plan: FleetPlan) -> Counter[tuple[PoolKey, str]]:
    """Return how many replicas of each model have no place."""
    return Counter((pool.pool, model) for pool in plan.pools for one in pool.unplaced for model in one.models)
