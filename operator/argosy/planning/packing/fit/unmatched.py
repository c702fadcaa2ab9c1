"""Why no node has what a group requires: labels, or a kind of GPU, with what the nodes have instead."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from argosy.api import Reason
from argosy.planning.amounts import listed, quantity
from argosy.planning.facts import Demand, Group, Node
from argosy.planning.packing.fit.fit_limits import Diagnosis
from argosy.planning.requirements import contradiction

_NAMED = 3
"""Nodes that a message names, of those that have the same."""


def matching(nodes: Iterable[Node], group: Group) -> frozenset[str]:
    """Return the nodes that have what every model of a group requires."""
    return frozenset(node.name for node in nodes if all(node.meets(demand.requires) for demand in group.demands))


def of_matching(nodes: Sequence[Node], matches: int, group: Group) -> str:
    """Return how many of the nodes a group may have, as a further sentence."""
    return f"Of {quantity(len(nodes), 'node')} the pool has {matches} that it may have: {_required(group.demands)}."


def no_match(nodes: Sequence[Node], group: Group) -> Diagnosis:
    """Return why none of the nodes will do: two models that exclude each other, missing labels, or other GPUs."""
    for one, other in combinations(group.demands, 2):
        if why := contradiction(one.requires, other.requires):
            return Diagnosis(
                Reason.NO_MATCHING_NODE,
                f"{one.model} and {other.model} share a server, and no node has what both require: {why}. Change one "
                "of them, or let them be on two servers (split the ensemble, or drop the affinity).",
            )
    labelled = [node for node in nodes if not any(demand.requires.lacking(node.labels) for demand in group.demands)]
    return _no_gpus(labelled, group) if labelled else _no_labels(nodes, group)


def _no_labels(nodes: Sequence[Node], group: Group) -> Diagnosis:
    required = {pair: demand.model for demand in group.demands for pair in demand.requires.labels}
    counts = {(key, value): sum(node.labels.get(key) == value for node in nodes) for key, value in required}
    key, value = min(counts, key=lambda pair: counts[pair])
    there = _by(nodes, lambda node: f"{key}={node.labels[key]}" if key in node.labels else f"no label {key}")
    if counts[key, value]:
        labels = ", ".join(f"{key}={value}" for key, value in required)
        message = f"no node of the pool has all labels of nodeSelector: {labels}; {key}={value} is the rarest"
    else:
        message = f"nodeSelector of {required[key, value]} requires {key}={value}, and the pool's nodes have {there}"
    return Diagnosis(
        Reason.NO_MATCHING_NODE, f"{message}. Label a node, add one that has the label, or change nodeSelector."
    )


def _no_gpus(nodes: Sequence[Node], group: Group) -> Diagnosis:
    """Diagnose a group for which no node with the right labels has the right GPUs."""
    demand = max(
        (demand for demand in group.demands if demand.requires.gpus_text),
        key=lambda demand: sum(not node.meets(demand.requires) for node in nodes),
    )
    there = _by(nodes, _gpu_text)
    unknown = any(node.has_gpus and not node.compute_capability for node in nodes) and demand.requires.capability.terms
    labels = " An unknown one does not count: install NVIDIA's GPU feature discovery." if unknown else ""
    return Diagnosis(
        Reason.NO_GPU_OF_TYPE,
        f"{demand.model} needs {demand.requires.gpus_text}, and nodes that it may have otherwise have {there}.{labels} "
        "Add a node with such GPUs, or change footprint.gpuType.",
    )


def _gpu_text(node: Node) -> str:
    if not node.has_gpus:
        return "no GPU"
    capability = node.compute_capability or "an unknown compute capability"
    return f"{node.product or 'an unknown product'}, {capability}"


def _by(nodes: Iterable[Node], what: Callable[[Node], str]) -> str:
    """Return what nodes have, each followed by names of nodes."""
    names: dict[str, list[str]] = {}
    for node in nodes:
        names.setdefault(what(node), []).append(node.name)
    return listed(f"{text} ({listed(names[text], _NAMED, ', ')})" for text in sorted(names))


def _required(demands: Iterable[Demand]) -> str:
    labels = dict.fromkeys(f"{key}={value}" for demand in demands for key, value in demand.requires.labels)
    texts = [f"nodeSelector {', '.join(labels)}"] if labels else []
    texts += [f"{demand.model} needs {demand.requires.gpus_text}" for demand in demands if demand.requires.gpus_text]
    return listed(texts)
