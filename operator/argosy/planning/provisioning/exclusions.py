"""Nodes that a placeholder must not be bound to: those that have room for it by the scheduler's count, and are planned.

Most nodes of a fleet that lacks GPUs have no room, since Pods have their GPUs, or are no nodes for the placeholder by
their labels. So few have to be named, however many there are.
"""

from collections.abc import Collection

from argosy.planning.facts import Device, Gpu, Node, PoolFacts
from argosy.planning.nodes.holders import is_requested
from argosy.planning.nodes.reservations import devices
from argosy.planning.nodes.slices import resource_of
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.plan import PoolPlan
from argosy.planning.provisioning.domains import Domains
from argosy.planning.provisioning.node_types import Labels
from argosy.planning.spreading import HOSTNAME

MOST_NAMED = 64
"""The most nodes that one placeholder names: a Pod with 64 of the longest names is 4 KiB larger."""


def excluded_hosts(
    facts: PoolFacts, plan: PoolPlan, gpus: int, resource: str, products: Collection[str], where: tuple[Labels, Domains]
) -> tuple[str, ...]:
    """Return the nodes on which so many GPUs are free to the scheduler, by the label kubernetes.io/hostname: of those
    that have one of the products and the labels, and are in no domain that will not do.
    """
    held = devices(facts.current) & devices(plan.servers)
    alike = (node for node in facts.nodes if (not products or node.product in products) and _is_alike(node, *where))
    able = (node for node in alike if sum(_is_free(node, gpu, resource, held) for gpu in gpus_of(node)) >= gpus)
    return tuple(sorted({node.labels.get(HOSTNAME, node.name) for node in able}))


def _is_free(node: Node, gpu: Gpu, resource: str, held: Collection[Device]) -> bool:
    is_held = (node.name, gpu.index) in held or is_requested(gpu.withheld_by)
    return resource_of(gpu.index) == resource and not is_held


def _is_alike(node: Node, labels: Labels, domains: Domains) -> bool:
    return set(labels) <= set(node.labels.items()) and all(_is_in_one(node, key, full) for key, full in domains)


def _is_in_one(node: Node, key: str, full: Collection[str]) -> bool:
    return key in node.labels and node.labels[key] not in full
