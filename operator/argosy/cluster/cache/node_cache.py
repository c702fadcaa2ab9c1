"""Nodes, as facts: a heartbeat, which older clusters write into them every few seconds, changes none.

One whose devices cannot be read is there all the same: what runs on it goes on.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from argosy.cluster.client.kinds import Key
from argosy.planning.facts import Node
from argosy.planning.nodes.parse import BadNodeError, node_of, state_of

log = logging.getLogger(__name__)


class NodeCache:
    """The cluster's nodes. One that cannot be read takes nothing new, and `troubles` says why."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._nodes: dict[str, Node] = {}
        self.troubles: dict[str, str] = {}

    def all(self) -> tuple[Node, ...]:
        """Return the nodes, by name."""
        return tuple(self._nodes[name] for name in sorted(self._nodes))

    def seen(self, body: Mapping[str, Any]) -> None:
        """A watch says that it stands like this."""
        now, why = _read(body)
        self._note(now.name, why)
        if self._nodes.get(now.name) != now:
            self._nodes[now.name] = now
            self._changed()

    def gone(self, body: Mapping[str, Any]) -> None:
        """A watch says that it is no more."""
        self._forget(body["metadata"]["name"])

    def only(self, _: str, keys: Collection[Key]) -> None:
        """There are just these."""
        names = {name for _, name in keys}
        for name in self._nodes.keys() - names:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self.troubles.pop(name, None)
        if self._nodes.pop(name, None) is not None:
            self._changed()

    def _note(self, name: str, why: str) -> None:
        if why and self.troubles.get(name) != why:
            log.warning("node %s takes nothing new, and what runs there goes on: %s", name, why)
        self.troubles.pop(name, None)
        if why:
            self.troubles[name] = why


def _read(body: Mapping[str, Any]) -> tuple[Node, str]:
    """The node, and why its devices cannot be read; empty where they can."""
    try:
        return node_of(body), ""
    except BadNodeError as error:
        return state_of(body), str(error)
