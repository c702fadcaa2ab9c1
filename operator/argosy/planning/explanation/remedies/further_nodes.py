"""Remedies that add nodes like those that a pool has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from argosy.planning.explanation.remedies.devices import PoolDevices
from argosy.planning.explanation.remedies.remedy import Remedy, RemedyKind
from argosy.planning.facts import Group, Node
from argosy.planning.nodes.device_names import devices_in_words
from argosy.planning.nodes.further import further_node
from argosy.planning.plan import replica_counts
from argosy.planning.requirements import label_keys
from argosy.planning.spreading import HOSTNAME

_TYPES = 4
"""Types of nodes that are tried, those with the smallest GPUs first."""
_MOST_NODES = 64


def further_nodes(pool: PoolDevices, group: Group, replicas: int, originals: Mapping[str, str]) -> Iterator[Remedy]:
    """Yield a further node of the smallest type that would do, and how many do for so many equivalent replicas.

    `originals`: nodes that are only tried, each with the node that it is a copy of, which is named in its place.
    """
    for like in _types(pool, group):
        if pool.trial.fits(pool.trial.part(group, [], further=_nodes_like(like, 1))):
            name, devices = originals.get(like.name, like.name), devices_in_words(like)
            named = f"one more node like {name}" + (f" ({devices})" if devices else "")
            count = _count(pool, group, like, replicas) if replicas > 1 else 1
            of = "of its replicas that lack one" if group.replicas > 1 else "that need the same"
            every = f" ({count} for all {replicas} {of})" if count > 1 else ""
            yield Remedy(RemedyKind.NODE, named + every, f"--with-node {name}{f'={count}' if count > 1 else ''}")
            return


def _types(pool: PoolDevices, group: Group) -> list[Node]:
    """Return one node of each type, of those that the group may run on, the smallest GPUs first."""
    keys = {
        *label_keys(demand.requires for demand in group.demands),
        *(one.key for one in group.spread if one.required),
    }
    types: dict[object, Node] = {}
    for node in sorted((further_node(one, one.name) for one in pool.able(group)), key=lambda node: node.name):
        sizes = tuple(sorted((gpu.memory, gpu.compute) for gpu in node.gpus if not gpu.withheld_by))
        labels = tuple(node.domain(key) for key in sorted(keys - {HOSTNAME}))
        types.setdefault((node.product, sizes, node.nvlink, labels), node)
    ordered = sorted(
        types.values(), key=lambda node: (max((gpu.memory for gpu in node.gpus), default=0), len(node.gpus))
    )
    return ordered[:_TYPES]


def _nodes_like(node: Node, count: int) -> tuple[Node, ...]:
    return tuple(further_node(node, f"{node.name}-further-{at}") for at in range(count))


def _count(pool: PoolDevices, group: Group, like: Node, replicas: int) -> int:
    """Return how many such nodes have places for so many equivalent replicas, by planning with groups that are alike;
    0 if that is not known within the budget.
    """
    count = 1
    while count <= _MOST_NODES:
        placed = _placed(pool, group, _nodes_like(like, count), replicas)
        if placed >= replicas or not placed:
            return count if placed else 0
        count = max(count + 1, -(-replicas * count // placed))
    return 0


def _placed(pool: PoolDevices, group: Group, nodes: Sequence[Node], replicas: int) -> int:
    part = pool.trial.part(group, [], further=nodes)
    alike = (replace(group, replicas=1, minimum=None, name=f"{group.name} {at}") for at in range(replicas))
    groups = (replace(group, replicas=replicas, minimum=None),) if group.replicas > 1 else tuple(alike)
    plan = pool.trial.plan(replace(part, facts=replace(part.facts, groups=groups)))
    return sum(replica_counts(plan.servers).values()) if plan is not None else 0
