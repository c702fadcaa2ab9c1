"""Who tells of resources, and who is told: the two sides between kopf's handlers and the controller."""

from collections.abc import Callable, Collection, Coroutine
from typing import Any, Protocol

from argosy.cluster.connection import Connection


class Listener(Protocol):
    """What is told of resources; `process.Operator` is one."""

    def seen(self, body: dict[str, Any]) -> None:
        """The API server has this."""

    def gone(self, body: dict[str, Any]) -> None:
        """It no longer has this."""


Feed = Callable[[Listener, Connection, Collection[str], Callable[[], None]], Coroutine[Any, Any, None]]
"""Tells a listener of every resource, in these namespaces or, without any, in all, until it is cancelled.

The last argument is called whenever a watcher took the signals of the process.
"""
