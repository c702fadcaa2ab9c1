"""Nodes, as facts: a heartbeat, which older clusters write into them every few seconds, changes none."""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from argosy.cluster.client.kinds import Key
from argosy.fleet.facts import Node
from argosy.fleet.nodes.parse import BadNodeError, node_of

log = logging.getLogger(__name__)


class NodeCache:
    """The cluster's nodes. One that cannot be used is passed over, and `troubles` says why."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._nodes: dict[str, Node] = {}
        self.troubles: dict[str, str] = {}

    def all(self) -> tuple[Node, ...]:
        """The nodes that can be used, by name."""
        return tuple(self._nodes[name] for name in sorted(self._nodes))

    def seen(self, body: Mapping[str, Any]) -> None:
        """A watch says that it stands like this."""
        name = body["metadata"]["name"]
        try:
            now = node_of(body)
        except BadNodeError as error:
            self._unusable(name, str(error))
            return
        self.troubles.pop(name, None)
        if self._nodes.get(name) != now:
            self._nodes[name] = now
            self._changed()

    def gone(self, body: Mapping[str, Any]) -> None:
        """A watch says that it is no more."""
        self._forget(body["metadata"]["name"])

    def only(self, _: str, keys: Collection[Key]) -> None:
        """There are just these."""
        names = {name for _, name in keys}
        for name in (self._nodes.keys() | self.troubles.keys()) - names:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self.troubles.pop(name, None)
        if self._nodes.pop(name, None) is not None:
            self._changed()

    def _unusable(self, name: str, why: str) -> None:
        if self.troubles.get(name) != why:
            log.warning("node %s is passed over: %s", name, why)
        self._forget(name)
        self.troubles[name] = why
