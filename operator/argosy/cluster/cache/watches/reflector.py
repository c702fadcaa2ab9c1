"""A reflector: lists and watches one collection into a store, and relists or resumes after any error.

The kubernetes package has an informer only for its synchronous client, which caches full objects.
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
"""The timeout of one watch in seconds, ± a third; the next one may reach another API server."""
RETRY_FIRST_S, RETRY_MOST_S = 0.5, 30.0
FORBIDDEN_S = 30.0
"""Seconds between attempts to list a forbidden collection."""


class ReflectorStore(Protocol):
    """Receives the objects of a reflector, and stores what it needs of them."""

    def update(self, body: Mapping[str, Any]) -> None:
        """Add or update an object."""

    def delete(self, body: Mapping[str, Any]) -> None:
        """Remove an object, by its last state."""

    def retain(self, namespace: str, keys: Collection[Key]) -> None:
        """Remove the namespace's (empty: all) other objects, which a complete list did not have."""


@dataclass(slots=True)
class Reflector:
    """Mirrors a kind's objects, of all namespaces or of one, into a store.

    `failed` receives an error message, and the empty text once the error is over. `listed` is set after the first list,
    and also where listing is forbidden, so that a missing right does not block the start for ever. An object that the
    store cannot read is as it was before, and the others go on; `failed` names it until it can be read or is gone.
    """

    connection: Connection
    kind: Kind
    store: ReflectorStore
    failed: Callable[[str], None]
    namespace: str = ""
    selectors: Mapping[str, str] = field(default_factory=dict)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    forbidden: ForbiddenError | None = None
    _version: str = ""
    _failures: int = 0
    _unreadable: dict[Key, str] = field(default_factory=dict)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except GoneError:
                self._version = ""
                await asyncio.sleep(RETRY_FIRST_S * random.uniform(0.1, 1))
            except ForbiddenError as error:
                self._denied(error)
                await asyncio.sleep(FORBIDDEN_S * random.uniform(0.8, 1.2))
            except ApiError as error:
                await asyncio.sleep(self._retry_in_s(error))

    async def _list(self) -> None:
        keys: set[Key] = set()
        version = ""
        async with aclosing(self.connection.pages(self.kind, self.namespace, self.selectors)) as pages:
            async for page in pages:
                version = page["metadata"]["resourceVersion"]
                for item in page["items"]:
                    keys.add(key_of(item))
                    self._update(item)
                await asyncio.sleep(0)  # lets other tasks run while a large collection is read
        self.store.retain(self.namespace, keys)
        self._unreadable = {key: why for key, why in self._unreadable.items() if key in keys}
        self._version = version
        self._recovered()
        self.listed.set()

    async def _watch(self) -> None:
        """Watch until the API server ends the watch."""
        params = {
            **self.selectors,
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(WATCH_S * random.uniform(0.67, 1.33))),
        }
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with aclosing(self.connection.watch(self.kind, self.namespace, params)) as events:
            async for event in events:
                self._handle(event)
        self._recovered()
        await asyncio.sleep(max(0.0, RETRY_FIRST_S - (loop.time() - began)))

    def _handle(self, event: Mapping[str, Any]) -> None:
        body = event["object"]
        if event["type"] in ("ADDED", "MODIFIED"):
            self._update(body)
        elif event["type"] == "DELETED":
            self._unreadable.pop(key_of(body), None)
            self.store.delete(body)
        self._version = body["metadata"]["resourceVersion"]
        self._recovered()

    def _update(self, body: Mapping[str, Any]) -> None:
        """Store an object. People write into objects, and what one of them has must not end the others' watch."""
        key = key_of(body)
        try:
            self.store.update(body)
        except Exception as error:  # whatever a store's reading raises concerns this object alone
            why = f"{self.kind.plural} {'/'.join(filter(None, key))} cannot be read: {type(error).__name__}: {error}"
            if self._unreadable.get(key) != why:
                log.exception("%s; correct or delete it", why)
            self._unreadable[key] = why
        else:
            self._unreadable.pop(key, None)

    def _recovered(self) -> None:
        self._failures = 0
        self.forbidden = None
        first = next(iter(self._unreadable.values()), "")
        others = f" ({len(self._unreadable) - 1} more)" if len(self._unreadable) > 1 else ""
        self.failed(f"{first}; correct or delete it{others}" if first else "")

    def _denied(self, error: ForbiddenError) -> None:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        message = (
            f"may not list and watch {self.kind.plural}{where}: grant it to the operator's service account ({error})"
        )
        if self.forbidden is None:
            log.error("%s", message)
        self.forbidden = error
        self.failed(message)
        self.listed.set()

    def _retry_in_s(self, error: ApiError) -> float:
        """Record a failure and return the pause after it, in seconds."""
        log.log(logging.WARNING if self._failures == 3 else logging.INFO, "%s: %s", self.kind.plural, error)
        self._failures += 1
        self.failed(f"cannot watch {self.kind.plural}: {error}")
        return backoff_s(self._failures, RETRY_FIRST_S, RETRY_MOST_S) * random.uniform(0.5, 1.0)
