"""Instances that no GPU holds together are divided evenly among several GPUs of a server."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from argosy.api import InferenceModel
from argosy.planning.facts import Demand, Footprint, Group, Node

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
    if not any(demand.instances > 1 and demand.model in models for demand in group.demands):
        return group
    able = [node for node in nodes if group.runs_on(node)]
    demands = tuple(
        _divided(demand, able, headroom, most) if demand.model in models else demand for demand in group.demands
    )
    return replace(group, demands=demands) if demands != group.demands else group


def _divided(demand: Demand, nodes: Sequence[Node], headroom: int, most: int | None) -> Demand:
    need = demand.footprint
    if need.exclusive or need.on_cpu or _holds(need, 1, 1, nodes, headroom):
        return demand
    for parts in _divisors(demand.instances):
        if (most is None or parts <= most) and _holds(need, parts, parts, nodes, headroom):
            return replace(demand, footprint=_part(need, parts), instances=demand.instances // parts)
    return demand


def _holds(need: Footprint, parts: int, gpus: int, nodes: Sequence[Node], headroom: int) -> bool:
    """Return whether a node has so many GPUs that each hold one of so many parts."""
    part = _part(need, parts)
    devices = ([gpu for gpu in node.gpus if not gpu.is_cpu] for node in nodes)
    return any(
        sum(gpu.usable(headroom) >= part.settled and gpu.compute >= part.compute for gpu in of_node) >= gpus
        for of_node in devices
    )


def _part(need: Footprint, parts: int) -> Footprint:
    memory, compute = need.memory // parts, need.compute // parts
    surge, promoted, peak = need.surge // parts, need.promoted // parts, need.peak // parts
    return replace(need, memory=memory, compute=compute, surge=surge, promoted=promoted, shares=parts, peak=peak)


def _divisors(count: int) -> Iterator[int]:
    """Yield the numbers above 1 that divide `count`, the smallest first."""
    yield from (parts for parts in range(2, count + 1) if count % parts == 0)
