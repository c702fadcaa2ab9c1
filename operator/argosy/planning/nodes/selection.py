"""The nodes that a pool's servers may run on: readiness over time, node selector, taints and tolerations.

A node that is not ready keeps what it runs and gets nothing new. After a grace period what it runs moves to other
nodes; what fits on none of them stays, because a silent node may still serve.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from argosy.api import ServingPool
from argosy.api.servingpool import Effect, Toleration, TolerationOperator
from argosy.planning.facts import Node
from argosy.planning.plan import ServerPlan

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


def faulty(pool: ServingPool, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes that the pool would use if their devices could be read, by name."""
    return _of_pool(pool, (node for node in nodes if node.fault))


def left_out(pool: ServingPool, nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the pool's nodes that take nothing new, by name, each with the reason."""
    reasons = ((node.name, _reason(node)) for node in _of_pool(pool, nodes))
    return tuple(f"{name} {reason}" for name, reason in reasons if reason)


def _reason(node: Node) -> str:
    if node.fault:
        return f"cannot be used ({node.fault})"
    if node.stale or not node.ready:
        return "is not ready"
    return "" if node.schedulable else "is cordoned"


def unsteady(pool: ServingPool, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the pool's nodes whose number of devices goes on changing, by name."""
    return _of_pool(pool, (node for node in nodes if node.unsteady))


def _of_pool(pool: ServingPool, nodes: Iterable[Node]) -> tuple[Node, ...]:
    mine = (node for node in nodes if _labelled(pool, node) and not _repelled(pool, node))
    return tuple(sorted(mine, key=lambda node: node.name))


def closed_devices(servers: Iterable[ServerPlan], nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the devices that these servers alone may have, as `node/index (why)`, in order."""
    reasons = {(node.name, gpu.index): gpu.closed for node in nodes for gpu in node.gpus if gpu.closed}
    mine = sorted({(server.node, gpu) for server in servers for gpu in server.gpus} & reasons.keys())
    return tuple(f"{node}/{gpu} ({reasons[node, gpu]})" for node, gpu in mine)


def closed(pool: ServingPool, nodes: Iterable[Node]) -> frozenset[str]:
    """Return the ready nodes that accept no new servers of the pool: a server that ends there does not come back.

    Nodes of which only earlier facts are known are left out, since their servers may still run.
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


UNREADY_GRACE = timedelta(seconds=60)
"""How long a node may be not ready before another place is looked for what it runs."""


def with_readiness(nodes: Iterable[Node], now: datetime) -> tuple[Node, ...]:
    """Return the nodes as they count now: one that is not ready is as if cordoned, and lost after the grace period.

    It is lost at once if it does not report since when it is not ready.
    """
    return tuple(_with_readiness(node, now) for node in nodes)


def next_readiness_change(nodes: Iterable[Node], now: datetime) -> datetime | None:
    """Return when the grace of the first node ends, if any has one."""
    ends = [node.unready_since + UNREADY_GRACE for node in nodes if not node.ready and node.unready_since is not None]
    return min((end for end in ends if end > now), default=None)


def _with_readiness(node: Node, now: datetime) -> Node:
    if node.ready:
        return node
    lost = node.unready_since is None or now >= node.unready_since + UNREADY_GRACE
    return replace(node, ready=True, schedulable=False, stale=True, lost=lost)
