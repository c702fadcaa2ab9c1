"""One collection, kept known: listed, then watched, over and over, whatever happens to the API server.

The kubernetes package has an informer for its synchronous client alone, which keeps every object whole.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, ForbiddenError, GoneError
from argosy.cluster.client.kinds import Key, Kind, key_of
from argosy_common.backoff import backoff_s

log = logging.getLogger(__name__)

WATCH_S = 300
"""How long one watch lasts, give or take a third: then it is asked for anew, perhaps of another API server."""
RETRY_FIRST_S, RETRY_MOST_S = 0.5, 30.0
FORBIDDEN_S = 30.0
"""How often a collection is asked for again that may not be read."""


class Sink(Protocol):
    """What is told of the objects; each keeps of them what it needs."""

    def seen(self, body: Mapping[str, Any]) -> None:
        """It stands like this now."""

    def gone(self, body: Mapping[str, Any]) -> None:
        """It is no more; this it was."""

    def only(self, namespace: str, keys: Collection[Key]) -> None:
        """Of this watch's namespace (empty: of all) there are just these: any other is no more."""


@dataclass(slots=True)
class Reflector:
    """Tells a sink of a kind's objects, of all or of one namespace's.

    `failed` is told what is wrong in words, and the empty text once it is not. `listed` is set when the first list is
    in, or when it may not be read: who waits for everything is not held up for ever by a missing right.
    """

    connection: Connection
    kind: Kind
    sink: Sink
    failed: Callable[[str], None]
    namespace: str = ""
    selectors: Mapping[str, str] = field(default_factory=dict)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    forbidden: ForbiddenError | None = None
    _version: str = ""
    _failures: int = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except GoneError:
                self._version = ""
                await asyncio.sleep(RETRY_FIRST_S * random.uniform(0.1, 1))
            except ForbiddenError as error:
                self._refused(error)
                await asyncio.sleep(FORBIDDEN_S * random.uniform(0.8, 1.2))
            except ApiError as error:
                await asyncio.sleep(self._broken(error))

    async def _list(self) -> None:
        keys: set[Key] = set()
        version = ""
        async with aclosing(self.connection.pages(self.kind, self.namespace, self.selectors)) as pages:
            async for page in pages:
                version = page["metadata"]["resourceVersion"]
                for item in page["items"]:
                    keys.add(key_of(item))
                    self.sink.seen(item)
                await asyncio.sleep(0)  # a large collection leaves others their turn
        self.sink.only(self.namespace, keys)
        self._version = version
        self._well()
        self.listed.set()

    async def _follow(self) -> None:
        """One watch, to its end."""
        params = {
            **self.selectors,
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(WATCH_S * random.uniform(0.67, 1.33))),
        }
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with aclosing(self.connection.watch(self.kind, self.namespace, params)) as events:
            async for event in events:
                self._take(event)
        self._well()
        await asyncio.sleep(max(0.0, RETRY_FIRST_S - (loop.time() - began)))

    def _take(self, event: Mapping[str, Any]) -> None:
        body = event["object"]
        if event["type"] in ("ADDED", "MODIFIED"):
            self.sink.seen(body)
        elif event["type"] == "DELETED":
            self.sink.gone(body)
        self._version = body["metadata"]["resourceVersion"]
        self._well()

    def _well(self) -> None:
        self._failures = 0
        self.forbidden = None
        self.failed("")

    def _refused(self, error: ForbiddenError) -> None:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        words = (
            f"may not list and watch {self.kind.plural}{where}: grant it to the operator's service account ({error})"
        )
        if self.forbidden is None:
            log.error("%s", words)
        self.forbidden = error
        self.failed(words)
        self.listed.set()

    def _broken(self, error: ApiError) -> float:
        """How long to wait after a failure, in seconds."""
        log.log(logging.WARNING if self._failures == 3 else logging.INFO, "%s: %s", self.kind.plural, error)
        self._failures += 1
        self.failed(f"cannot watch {self.kind.plural}: {error}")
        return backoff_s(self._failures, RETRY_FIRST_S, RETRY_MOST_S) * random.uniform(0.5, 1.0)
