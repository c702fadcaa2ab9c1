"""Instances that no GPU holds together are divided evenly among several GPUs of a server."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from argosy.api import InferenceModel
from argosy.planning.facts import Demand, Footprint, Group, Node
from argosy.planning.nodes.slices import is_slice

_BY_THEMSELVES = frozenset({"vllm", "tensorrtllm"})
"""Backends of engines, one instance of which serves many requests at once: their copies are replicas."""


def may_divide(model: InferenceModel) -> bool:
    """Return whether the instances of a model may be on several GPUs: not where groups or an engine have theirs."""
    return not model.spec.instance_groups and model.spec.backend not in _BY_THEMSELVES


def with_divided(
    group: Group, models: Collection[str], nodes: Sequence[Node], headroom: int, most: int | None
) -> Group:
    """Return a group in which those of its `models` that fit no GPU are divided among the fewest GPUs that will do.

    `most`: the GPUs that a server may have, None for any number.
    """
    marked = tuple(
        replace(demand, divisible=True) if demand.model in models and _has_parts(demand) else demand
        for demand in group.demands
    )
    if marked == group.demands:
        return group
    return redivided(replace(group, demands=marked), nodes, headroom, most)


def redivided(group: Group, nodes: Sequence[Node], headroom: int, most: int | None) -> Group:
    """Return a group in which instances are divided as `with_divided` does it, however they are divided now."""
    if not any(demand.divisible for demand in group.demands):
        return group
    able = [node for node in nodes if group.runs_on(node)]
    demands = tuple(divided(demand, able, headroom, most) if demand.divisible else demand for demand in group.demands)
    return replace(group, demands=demands)


def instances_of_all(demand: Demand) -> int:
    """Return the instances of a replica on all GPUs among which they are divided."""
    return demand.instances * demand.footprint.shares


def with_instances(demand: Demand, count: int) -> Demand:
    """Return a demand with so many instances, which are not divided."""
    need, every = demand.footprint, instances_of_all(demand)

    def of(amount: int) -> int:
        return -(-amount * need.shares * count // every)

    return replace(demand, footprint=_with_amounts(need, of, shares=1), instances=count)


def divided(demand: Demand, nodes: Sequence[Node], headroom: int, most: int | None) -> Demand:
    """Return a demand of which all instances are on one GPU of these nodes, or on the fewest that hold them; on one if
    no number of GPUs does.
    """
    undivided = with_instances(demand, instances_of_all(demand))
    if _holds(undivided.footprint, 1, nodes, headroom):
        return undivided
    for parts in divisors(undivided.instances):
        if (most is None or parts <= most) and _holds(in_parts(undivided, parts).footprint, parts, nodes, headroom):
            return in_parts(undivided, parts)
    return undivided


def fewer_instances(demand: Demand, nodes: Sequence[Node], headroom: int, most: int | None) -> Iterator[Demand]:
    """Yield the demand with fewer instances, the most first, where empty nodes have GPUs that hold them."""
    for count in range(instances_of_all(demand) - 1, 0, -1):
        fewer = divided(with_instances(demand, count), nodes, headroom, most)
        if _holds(fewer.footprint, fewer.footprint.shares, nodes, headroom):
            yield fewer


def in_parts(demand: Demand, parts: int) -> Demand:
    """Return a demand whose instances are divided among so many GPUs."""
    part = _with_amounts(demand.footprint, lambda amount: amount // parts, shares=parts)
    return replace(demand, footprint=part, instances=demand.instances // parts)


def _with_amounts(need: Footprint, of: Callable[[int], int], shares: int) -> Footprint:
    """Return a footprint on so many GPUs, with another amount of all that it takes of each."""
    return replace(
        need,
        memory=of(need.memory),
        compute=of(need.compute),
        surge=of(need.surge),
        promoted=of(need.promoted),
        peak=of(need.peak),
        shares=shares,
    )


def divisors(count: int) -> Iterator[int]:
    """Yield the numbers above 1 that divide `count`, the smallest first."""
    yield from (parts for parts in range(2, count + 1) if count % parts == 0)


def able_gpus(part: Footprint, node: Node, headroom: int) -> int:
    """Return how many GPUs of an empty node hold a part of a model each. A server has one slice of a GPU at most, so
    these do not count for several parts.
    """
    return sum(
        gpu.usable(headroom) >= part.settled and gpu.compute >= part.compute
        for gpu in node.gpus
        if not gpu.is_cpu and not (part.shares > 1 and is_slice(gpu.index))
    )


def _has_parts(demand: Demand) -> bool:
    need = demand.footprint
    return demand.instances > 1 and not (need.exclusive or need.on_cpu)


def _holds(part: Footprint, gpus: int, nodes: Sequence[Node], headroom: int) -> bool:
    return any(able_gpus(part, node, headroom) >= gpus for node in nodes)
