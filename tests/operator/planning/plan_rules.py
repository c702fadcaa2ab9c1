"""The rules that every plan of a pool obeys, checked from its facts and the plan alone."""

from collections.abc import Iterator

from argosy.planning.facts import Footprint, Group, Node, PoolFacts
from argosy.planning.nodes.slices import is_slice
from argosy.planning.plan import Placement, PoolPlan, ServerPlan


def broken_rules(facts: PoolFacts, plan: PoolPlan) -> list[str]:
    """Return which rules a plan breaks; `facts` has the GPUs that other pools have withheld."""
    groups = {group.name: group for group in facts.groups}
    nodes = {node.name: node for node in facts.nodes}
    held = [(server.node, gpu) for server in plan.servers for gpu in server.gpus]
    shared = [f"{device} belongs to two servers" for device in set(held) if held.count(device) > 1]
    names = [server.name for server in plan.servers]
    twice = [f"two servers are called {name}" for name in set(names) if names.count(name) > 1]
    most = facts.max_servers is not None and len(plan.servers) > facts.max_servers
    limit = facts.max_gpus_per_server
    wide = [server.name for server in plan.servers if limit is not None and len(server.gpus) > limit]
    return [
        *shared,
        *twice,
        *(["there are more servers than there may be"] if most else ()),
        *(f"{name} has more GPUs than it may have" for name in wide),
        *(one for server in plan.servers for one in _of_server(facts, server, groups, nodes, plan)),
    ]


def _of_server(
    facts: PoolFacts, server: ServerPlan, groups: dict[str, Group], nodes: dict[str, Node], plan: PoolPlan
) -> Iterator[str]:
    node, on_node = nodes[server.node], {g for one in plan.servers if one.node == server.node for g in one.groups}
    gpus = {gpu.index: gpu for gpu in node.gpus if not gpu.withheld_by}
    if not set(server.gpus) <= gpus.keys():
        yield f"{server.name} has GPUs that others hold"
        return
    for index in server.gpus:
        yield from _of_gpu(server, index, gpus[index].usable(facts.headroom), gpus[index].compute)
    if len(server.gpus) > 1 and any(map(is_slice, server.gpus)):
        yield f"{server.name} has a slice next to other devices"
    if sum(groups[name].size for name in server.groups) > facts.staying_bytes:
        yield f"the documents of {server.name} are too large"
    for name in server.groups:
        here = [one for one in server.placements if one.group == name]
        if [one.model for one in here] != [demand.model for demand in groups[name].demands]:
            yield f"{server.name} has a part of {name}, or more than one replica"
        misplaced = any(one.misplaced for one in here)
        if not misplaced and not groups[name].runs_on(node):
            yield f"{name} may not run on {node.name}"
        if not misplaced and (server.groups & groups[name].not_on_server or on_node & groups[name].not_on_node):
            yield f"{name} is next to what it is kept apart from"
        for one, demand in zip(here, groups[name].demands, strict=False):
            yield from _of_model(one, demand.footprint, node)


def _of_gpu(server: ServerPlan, index: int, usable: int, compute: int) -> Iterator[str]:
    here = [one for one in server.placements if index in one.gpus]
    if sum(one.memory for one in here) > usable or sum(one.compute for one in here) > compute:
        yield f"GPU {index} of {server.node} has more than it holds"
    if len(here) > 1 and any(one.exclusive for one in here):
        yield f"GPU {index} of {server.node} is shared with a model that needs all of it"


def _of_model(placed: Placement, need: Footprint, node: Node) -> Iterator[str]:
    count = 0 if need.on_cpu else need.gpus or need.shares
    if len(set(placed.gpus)) != count:
        yield f"{placed.model} has {len(placed.gpus)} GPUs and not {count}"
    if need.gpus > 1 and not any(set(placed.gpus) <= joined for joined in node.nvlink):
        yield f"the GPUs of {placed.model} are not linked"
