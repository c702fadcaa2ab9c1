"""Which nodes a pool's servers may run on: node selector, taints and tolerations, readiness, as Kubernetes
means them.
"""

from collections.abc import Iterable, Mapping

from argosy.api import ServingPool
from argosy.api.servingpool import Effect, Toleration, TolerationOperator
from argosy.fleet.facts import Node

_KEEPS_AWAY = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)


def selected(pool: ServingPool, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The ready nodes that have every selected label and no taint that the pool does not tolerate, by name."""
    chosen = [node for node in nodes if node.ready and _labelled(pool, node) and _tolerated(pool, node)]
    return tuple(sorted(chosen, key=lambda node: node.name))


def _labelled(pool: ServingPool, node: Node) -> bool:
    return pool.spec.node_selector.items() <= dict(node.labels).items()


def _tolerated(pool: ServingPool, node: Node) -> bool:
    repelling = [taint for taint in node.taints if taint.get("effect") in _KEEPS_AWAY]
    return all(any(tolerates(toleration, taint) for toleration in pool.spec.tolerations) for taint in repelling)


def tolerates(toleration: Toleration, taint: Mapping[str, str]) -> bool:
    """Whether a toleration puts up with a taint {key, value, effect}."""
    if toleration.effect is not None and toleration.effect != taint.get("effect"):
        return False
    if toleration.operator is TolerationOperator.EXISTS:
        return toleration.key in ("", taint.get("key"))
    return toleration.key == taint.get("key") and toleration.value == taint.get("value", "")
