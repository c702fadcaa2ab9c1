"""What is asked of an API server, on plain objects, by the kubernetes package's dynamic client.

Every method raises ApiError's subclasses. Nothing is repeated here: who asks knows whether that makes sense.

Requests are bounded, timed and counted.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.dynamic import DynamicClient
from kubernetes.aio.dynamic.exceptions import DynamicApiError

from .access import Access, CredentialsError, access, configured
from .errors import GoneError, UnreachableError, translated
from .kinds import Key, Kind
from .streams import cut_off, event, lines

log = logging.getLogger(__name__)

Body = Mapping[str, Any]
OnRequest = Callable[[str, str, int, float], None]
"""Told of each request: verb, resource, HTTP status (0: no answer), seconds."""
Answer = TypeVar("Answer")

AT_ONCE = 16
"""Requests under way, beside watches: the API server shares its places among its clients."""
TLS_ENDS_S = 0.25
"""The connection of a cancelled request ends by asking the other side, for which aiohttp itself does not wait."""
CONNECT_S = 5.0
CALL_S = 15.0
LIST_S = 60.0
SILENCE_S = 150.0
"""After how much silence a watch is asked for anew: its connection may be dead, which nothing else would tell."""
AGAIN_S = 2.0
PAGE = 250
"""Objects in one answer to a list: what is held at once while thousands are read."""
OBJECT = "application/json"
METADATA_ONLY = f"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{OBJECT}"
METADATA_LIST = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{OBJECT}"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
NOTHING: Mapping[str, str] = {}


class Connection:
    """An open connection; `open` makes one."""

    def __init__(self, client: DynamicClient, on_request: OnRequest = lambda *_: None) -> None:
        self._client, self._on_request = client, on_request
        self._places = asyncio.Semaphore(AT_ONCE)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        on_request: OnRequest = lambda *_: None,
    ) -> "AsyncIterator[Connection]":
        """Connect by a kubeconfig, or as the Pod's service account; see `access.configured`.

        `on_request` is told of each request. Raises CredentialsError; whether the API server answers shows with the
        first request.
        """
        configuration = await configured(kubeconfig, context)
        try:
            client = ApiClient(configuration)
        except OSError as error:
            files = " and ".join(filter(None, (configuration.ssl_ca_cert, configuration.cert_file)))
            raise CredentialsError(f"{files} cannot be used: {error}") from error
        client.user_agent = "argosy"
        try:
            yield cls(DynamicClient(client), on_request)
        finally:
            await client.close()
            await asyncio.sleep(TLS_ENDS_S)

    async def access(self) -> Access:
        """Whom it talks to, and as whom: for other clients in the same process."""
        return await access(self._client.configuration)

    async def ask(self, path: str) -> dict[str, Any]:
        """Return what stands at a path that is no object's: `/version`, `/apis/policy/v1`."""
        return await self._send("get", "discovery", lambda **more: self._client.request("get", path, **more))

    async def get(self, kind: Kind, key: Key, *, metadata_only: bool = False, urgent: bool = False) -> dict[str, Any]:
        """Return one object; `metadata_only` leaves out all but its metadata. An `urgent` one does not wait behind
        others.
        """
        accept = {"Accept": METADATA_ONLY if metadata_only else OBJECT}
        return await self._send(
            "get",
            kind.resource,
            lambda **more: self._client.get(kind, key[1], key[0], header_params=accept, **more),
            urgent=urgent,
        )

    async def pages(
        self, kind: Kind, namespace: str = "", selectors: Mapping[str, str] = NOTHING, *, metadata_only: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield the lists that hold a collection, one after another. GoneError where reading took too long.

        `selectors` are the query's own: `labelSelector`, `fieldSelector`.
        """
        more = ""
        while True:
            page = await self._page(kind, namespace, selectors, METADATA_LIST if metadata_only else OBJECT, more)
            page["items"] = page.get("items") or []  # of metadata alone an empty list is null
            yield page
            more = page["metadata"].get("continue", "")
            if not more:
                return

    async def _page(
        self, kind: Kind, namespace: str, selectors: Mapping[str, str], accept: str, more: str
    ) -> dict[str, Any]:
        query = [*selectors.items(), ("limit", str(PAGE)), *([("continue", more)] if more else [])]

        def ask(**timed: Any) -> Awaitable[aiohttp.ClientResponse]:
            asked = {"query_params": query, "header_params": {"Accept": accept}}
            answer: Awaitable[aiohttp.ClientResponse] = self._client.get(kind, None, namespace, **asked, **timed)
            return answer

        return await self._send("list", kind.resource, ask, timeout_s=LIST_S)

    async def watch(self, kind: Kind, namespace: str, params: Mapping[str, str]) -> AsyncGenerator[dict[str, Any]]:
        """Yield a collection's events, bookmarks too, until the API server ends the answer or says nothing for long.

        `params` are the query's own: `resourceVersion`, `timeoutSeconds`, selectors.
        """
        query = [("watch", "1"), ("allowWatchBookmarks", "true"), *params.items()]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
        with self._measured("watch", kind.resource) as measured:
            response = await self._client.get(
                kind,
                None,
                namespace,
                query_params=query,
                header_params={"Accept": OBJECT},
                serialize=False,
                _request_timeout=timeout,
            )
            measured.status = response.status
            with cut_off(response), suppress(aiohttp.ServerTimeoutError):
                async for line in lines(response.content):
                    yield event(line)

    async def create(self, kind: Kind, body: Body, *, manager: str) -> dict[str, Any]:
        """Create an object, and return it as it then stands. Raises ConflictError where it exists."""
        return await self._send(
            "create", kind.resource, lambda **more: self._client.create(kind, body, field_manager=manager, **more)
        )

    async def update(
        self, kind: Kind, body: Body, *, manager: str, timeout_s: float = CALL_S, urgent: bool = False
    ) -> dict[str, Any]:
        """Write a whole object, which names the version that it replaces. ConflictError where that is not the newest.

        An `urgent` one does not wait until a thousand others are answered.
        """
        return await self._send(
            "update",
            kind.resource,
            lambda **more: self._client.replace(kind, body, field_manager=manager, **more),
            timeout_s=timeout_s,
            urgent=urgent,
        )

    async def apply(self, kind: Kind, body: Body, *, manager: str) -> dict[str, Any]:
        """Server-side apply by force: the fields in `body` become the manager's, those it no longer names go.

        With `metadata.uid`, ConflictError or InvalidError unless just that object exists.
        """
        return await self._send(
            "patch",
            kind.resource,
            lambda **more: self._client.server_side_apply(
                kind, body, field_manager=manager, force_conflicts=True, **more
            ),
        )

    async def merge(self, kind: Kind, key: Key, body: Body, *, manager: str) -> dict[str, Any]:
        """Change an object by a JSON merge patch."""
        return await self._patch(kind, key, body, manager, MERGE_PATCH)

    async def merge_lists(self, kind: Kind, key: Key, body: Body, *, manager: str) -> dict[str, Any]:
        """Change an object by a strategic merge patch, which knows lists' keys."""
        return await self._patch(kind, key, body, manager, STRATEGIC_PATCH)

    async def _patch(self, kind: Kind, key: Key, body: Body, manager: str, content_type: str) -> dict[str, Any]:
        return await self._send(
            "patch",
            kind.resource,
            lambda **more: self._client.patch(
                kind, body, key[1], key[0], field_manager=manager, content_type=content_type, **more
            ),
        )

    async def delete(self, kind: Kind, key: Key, uid: str) -> dict[str, Any]:
        """Delete just the object of this uid; what it owns goes after it. ConflictError where it is another one."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        return await self._send(
            "delete", kind.resource, lambda **more: self._client.delete(kind, key[1], key[0], options, **more)
        )

    async def _send(
        self,
        verb: str,
        resource: str,
        ask: Callable[..., Awaitable[aiohttp.ClientResponse]],
        *,
        timeout_s: float = CALL_S,
        urgent: bool = False,
    ) -> dict[str, Any]:
        """The answer's object."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        async with nullcontext() if urgent else self._places:
            with self._measured(verb, resource) as measured:
                async with await ask(serialize=False, _request_timeout=timeout) as response:
                    text = await response.read()
                    measured.status = response.status
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise UnreachableError(0, "Unreachable", f"{self._server} answers no JSON: {error}") from error
        return found

    @contextmanager
    def _measured(self, verb: str, resource: str) -> "Iterator[_Measured]":
        """Tell of a request, and translate what goes wrong with it."""
        began, measured = time.monotonic(), _Measured()
        try:
            yield measured
        except DynamicApiError as error:
            measured.status = error.status
            raise translated(error.status, error.body, error.headers) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            said = str(error) or type(error).__name__
            raise UnreachableError(0, "Unreachable", f"{self._server} does not answer: {said}") from error
        finally:
            self._on_request(verb, resource, measured.status, time.monotonic() - began)

    @property
    def _server(self) -> str:
        return str(self._client.configuration.host)


class _Measured:
    """A request's HTTP status; 0 until there is an answer."""

    status = 0


async def answered(ask: Callable[[], Awaitable[Answer]], what: str) -> Answer:
    """Return what `ask` gives, as soon as the API server answers. Raises any other ApiError."""
    told = ""
    while True:
        try:
            return await ask()
        except (UnreachableError, GoneError) as error:
            if str(error) != told:
                told = str(error)
                log.warning("%s cannot be read yet: %s", what, told)
            await asyncio.sleep(AGAIN_S)
