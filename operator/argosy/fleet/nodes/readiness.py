"""Nodes over time: one that is not ready for a moment keeps what it runs, and gets nothing new."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from argosy.fleet.facts import Node

GRACE = timedelta(seconds=60)
"""How long a node may be not ready before its servers are placed elsewhere."""


def standing(nodes: Iterable[Node], now: datetime) -> tuple[Node, ...]:
    """The nodes as they count now: not ready for less than the grace is as if cordoned, longer is gone."""
    return tuple(_standing(node, now) for node in nodes)


def next_change(nodes: Iterable[Node], now: datetime) -> datetime | None:
    """When the grace of the first node ends, if any has one."""
    ends = [node.unready_since + GRACE for node in nodes if not node.ready and node.unready_since is not None]
    return min((end for end in ends if end > now), default=None)


def _standing(node: Node, now: datetime) -> Node:
    if node.ready or node.unready_since is None or now >= node.unready_since + GRACE:
        return node
    return replace(node, ready=True, schedulable=False)
