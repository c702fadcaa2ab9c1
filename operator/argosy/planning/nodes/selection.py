"""The nodes that a pool's servers may run on: node selector, taints and tolerations, readiness, as in Kubernetes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from argosy.api import ServingPool
from argosy.api.servingpool import Effect, Toleration, TolerationOperator
from argosy.planning.facts import Node

_KEEPS_AWAY = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
_OF_THE_NODE = tuple(f"node.kubernetes.io/{state}" for state in ("unschedulable", "not-ready", "unreachable"))
"""Taints that Kubernetes sets by a node's own state, which is known from the node itself."""


def selected(pool: ServingPool, nodes: Iterable[Node], running: Collection[str] = ()) -> tuple[Node, ...]:
    """Return the ready nodes that have every selected label, by name.

    One with a taint that keeps new Pods away, and that the pool does not tolerate, is as if cordoned. Of the cordoned
    only those are among them that the pool has servers on (`running`), and none whose taint ends what runs. So it is
    with one that lacks a label: Kubernetes ends nothing there, so what runs there moves first.
    """
    candidates = (_as_selected(pool, node) for node in nodes if node.ready)
    usable = (node for node in candidates if node is not None and (node.schedulable or node.name in running))
    return tuple(sorted(usable, key=lambda node: node.name))


def closed(pool: ServingPool, nodes: Iterable[Node]) -> frozenset[str]:
    """Return the ready nodes that take nothing new of the pool: what ends there does not come back.

    A node of which only the last facts are known is not among them: nothing is known to have ended there.
    """
    reporting = (node for node in nodes if node.ready and not node.stale)
    return frozenset(node.name for node in reporting if not node.schedulable or _repelled(pool, node))


def _as_selected(pool: ServingPool, node: Node) -> Node | None:
    """Return the node as it counts for the pool; None where a taint ends what runs there."""
    effects = _repelled(pool, node)
    if Effect.NO_EXECUTE in effects:
        return None
    if not _labelled(pool, node):
        return replace(node, schedulable=False, stale=True, lost=node.lost or not node.stale)
    return replace(node, schedulable=False) if effects else node


def _labelled(pool: ServingPool, node: Node) -> bool:
    return pool.spec.node_selector.items() <= dict(node.labels).items()


def _repelled(pool: ServingPool, node: Node) -> set[str]:
    """Return the effects of the node's taints that the pool does not tolerate."""
    repelling = [t for t in node.taints if t.get("effect") in _KEEPS_AWAY and t.get("key") not in _OF_THE_NODE]
    return {
        taint.get("effect", "")
        for taint in repelling
        if not any(tolerates(toleration, taint) for toleration in pool.spec.tolerations)
    }


def tolerates(toleration: Toleration, taint: Mapping[str, str]) -> bool:
    """Return whether a toleration puts up with a taint {key, value, effect}."""
    if toleration.effect is not None and toleration.effect != taint.get("effect"):
        return False
    if toleration.operator is TolerationOperator.EXISTS:
        return toleration.key in ("", taint.get("key"))
    return toleration.key == taint.get("key") and toleration.value == taint.get("value", "")
