"""Who tells of resources, and who is told: the two sides between kopf's handlers and the controller."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from argosy.api.values.identity import Identity
from argosy.cluster.client.connection import Connection
from argosy.controller.resources.parsed_body import ParsedBody


class Listener(Protocol):
    """What is told of resources; `process.Operator` is one."""

    def seen(self, parsed: ParsedBody) -> None:
        """The API server has this."""

    def ended(self, identity: Identity, uid: str) -> None:
        """The resource of this identity (`Kind namespace/name`) and uid is no more, whatever is still said of it."""

    def has(self, identity: Identity, uid: str) -> bool:
        """Return whether it was told of this resource."""


class Feed(Protocol):
    """Tells a listener of every resource."""

    @property
    def troubles(self) -> Mapping[str, str]:
        """What cannot be read, by plural and, where there are several, namespace, in words."""

    async def run(self) -> None:
        """Until cancelled."""

    async def synced(self) -> None:
        """Until the listener knows every resource that there is. Raises UntoldError; ApiError where one cannot know."""


class UntoldError(Exception):
    """There are resources that nobody tells of."""


MakeFeed = Callable[[Listener, Connection, Collection[str], Callable[[], None]], Feed]
"""A feed for a listener, in these namespaces or, without any, in all.

The last argument is called whenever something else took the signals of the process.
"""
