"""Node readiness over time: a node that is not ready keeps what it runs and gets nothing new.

After a while what it runs moves to other nodes; what fits on none of them stays: a silent node may still serve.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from argosy.planning.facts import Node

GRACE = timedelta(seconds=60)
"""How long a node may be not ready before another place is looked for what it runs."""


def standing(nodes: Iterable[Node], now: datetime) -> tuple[Node, ...]:
    """Return the nodes as they count now: one that is not ready is as if cordoned, and lost after the grace period.

    It is lost at once if it does not report since when it is not ready.
    """
    return tuple(_standing(node, now) for node in nodes)


def next_change(nodes: Iterable[Node], now: datetime) -> datetime | None:
    """Return when the grace of the first node ends, if any has one."""
    ends = [node.unready_since + GRACE for node in nodes if not node.ready and node.unready_since is not None]
    return min((end for end in ends if end > now), default=None)


def _standing(node: Node, now: datetime) -> Node:
    if node.ready:
        return node
    lost = node.unready_since is None or now >= node.unready_since + GRACE
    return replace(node, ready=True, schedulable=False, stale=True, lost=lost)
