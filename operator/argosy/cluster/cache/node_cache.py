"""The cache of nodes, as planning facts, which heartbeats in Node objects do not change.

A node whose devices cannot be read is kept, so that what runs on it goes on.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from argosy.cluster.client.kinds import Key
from argosy.planning.facts import Node
from argosy.planning.nodes.parse import BadNodeError, node_of, state_of

log = logging.getLogger(__name__)


class NodeCache:
    """The cluster's nodes. `errors`: why a node cannot be read, by name; it takes nothing new then."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._nodes: dict[str, Node] = {}
        self.errors: dict[str, str] = {}

    def all(self) -> tuple[Node, ...]:
        """Return the nodes, by name."""
        return tuple(self._nodes[name] for name in sorted(self._nodes))

    def update(self, body: Mapping[str, Any]) -> None:
        """Store a node that a list or watch reports."""
        now, why = _read(body)
        self._note(now.name, why)
        if self._nodes.get(now.name) != now:
            self._nodes[now.name] = now
            self._changed()

    def delete(self, body: Mapping[str, Any]) -> None:
        """Remove a node that a watch reports as deleted."""
        self._forget(body["metadata"]["name"])

    def retain(self, _: str, keys: Collection[Key]) -> None:
        """Remove all other nodes."""
        names = {name for _, name in keys}
        for name in self._nodes.keys() - names:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self.errors.pop(name, None)
        if self._nodes.pop(name, None) is not None:
            self._changed()

    def _note(self, name: str, why: str) -> None:
        if why and self.errors.get(name) != why:
            log.warning("node %s takes nothing new, and what runs there goes on: %s", name, why)
        self.errors.pop(name, None)
        if why:
            self.errors[name] = why


def _read(body: Mapping[str, Any]) -> tuple[Node, str]:
    """Return the node, and why its devices cannot be read; empty where they can."""
    try:
        return node_of(body), ""
    except BadNodeError as error:
        return replace(state_of(body), fault=str(error)), str(error)
