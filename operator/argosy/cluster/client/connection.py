"""Requests to an API server on plain objects, by the kubernetes package's dynamic client.

Every method raises subclasses of ApiError. Nothing is retried here: the caller knows whether that makes sense.

Requests are limited, timed and counted.
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
from .kinds import POD, Key, Kind
from .streams import cut_off, event, lines

log = logging.getLogger(__name__)

Body = Mapping[str, Any]
OnRequest = Callable[[str, str, int, float], None]
"""Receives each request: verb, resource, HTTP status (0: no response), seconds."""
Answer = TypeVar("Answer")

AT_ONCE = 16
"""Concurrent requests without watches: the API server shares its capacity among its clients."""
TLS_ENDS_S = 0.25
"""Seconds for the TLS shutdown of cancelled requests' connections, which aiohttp itself does not await."""
CONNECT_S = 5.0
CALL_S = 15.0
LIST_S = 60.0
SILENCE_S = 150.0
"""Seconds without data after which a watch is restarted: its connection may be dead without an error."""
AGAIN_S = 2.0
PAGE = 250
"""Objects in one page of a list, which bounds memory while thousands are read."""
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
        self._slots = asyncio.Semaphore(AT_ONCE)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        on_request: OnRequest = lambda *_: None,
    ) -> "AsyncIterator[Connection]":
        """Connect by a kubeconfig, or as the Pod's service account, as `access.configured` selects.

        `on_request` receives each request. Raises CredentialsError; an unreachable API server raises with the first
        request.
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
        """Return the API server and credentials, for other clients in the same process."""
        return await access(self._client.configuration)

    async def get_raw(self, path: str) -> dict[str, Any]:
        """Return the document at a path outside of resources: `/version`, `/apis/policy/v1`."""
        return await self._send("get", "discovery", lambda **more: self._client.request("get", path, **more))

    async def get(self, kind: Kind, key: Key, *, metadata_only: bool = False, urgent: bool = False) -> dict[str, Any]:
        """Return one object, or only its metadata. An `urgent` request does not wait for a slot."""
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
        """Yield the pages of a collection's list. Raises GoneError where reading took too long.

        `selectors` are query parameters: `labelSelector`, `fieldSelector`.
        """
        token = ""
        while True:
            page = await self._page(kind, namespace, selectors, METADATA_LIST if metadata_only else OBJECT, token)
            page["items"] = page.get("items") or []  # an empty PartialObjectMetadataList has null
            yield page
            token = page["metadata"].get("continue", "")
            if not token:
                return

    async def _page(
        self, kind: Kind, namespace: str, selectors: Mapping[str, str], accept: str, token: str
    ) -> dict[str, Any]:
        query = [*selectors.items(), ("limit", str(PAGE)), *([("continue", token)] if token else [])]

        def request(**timeout: Any) -> Awaitable[aiohttp.ClientResponse]:
            options = {"query_params": query, "header_params": {"Accept": accept}, **timeout}
            response: Awaitable[aiohttp.ClientResponse] = self._client.get(kind, None, namespace, **options)
            return response

        return await self._send("list", kind.resource, request, timeout_s=LIST_S)

    async def watch(self, kind: Kind, namespace: str, params: Mapping[str, str]) -> AsyncGenerator[dict[str, Any]]:
        """Yield a collection's events, bookmarks included, until the API server ends the watch or is silent too long.

        `params` are query parameters: `resourceVersion`, `timeoutSeconds`, selectors.
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
        """Create an object and return it. Raises ConflictError where it exists."""
        return await self._send(
            "create", kind.resource, lambda **more: self._client.create(kind, body, field_manager=manager, **more)
        )

    async def update(
        self, kind: Kind, body: Body, *, manager: str, timeout_s: float = CALL_S, urgent: bool = False
    ) -> dict[str, Any]:
        """Replace an object, by its `resourceVersion`. Raises ConflictError where that is not the latest.

        An `urgent` request does not wait for a slot.
        """
        return await self._send(
            "update",
            kind.resource,
            lambda **more: self._client.replace(kind, body, field_manager=manager, **more),
            timeout_s=timeout_s,
            urgent=urgent,
        )

    async def apply(self, kind: Kind, body: Body, *, manager: str) -> dict[str, Any]:
        """Apply an object by force: the manager owns the fields in `body`; fields that it owned before are removed.

        With `metadata.uid`, raises ConflictError or InvalidError unless the object has that uid.
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

    async def strategic_merge(self, kind: Kind, key: Key, body: Body, *, manager: str) -> dict[str, Any]:
        """Change an object by a strategic merge patch, which merges lists by their keys."""
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
        """Delete the object of this uid, and in the background what it owns. Raises ConflictError for another uid."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        return await self._send(
            "delete", kind.resource, lambda **more: self._client.delete(kind, key[1], key[0], options, **more)
        )

    async def log(self, pod: Key) -> str:
        """Return what the only container of a Pod has written so far."""
        path = f"{POD.path(pod[1], pod[0])}/log"
        content = await self._read("get", "pods/log", lambda **more: self._client.request("get", path, **more))
        return content.decode(errors="replace")

    async def _send(
        self,
        verb: str,
        resource: str,
        request: Callable[..., Awaitable[aiohttp.ClientResponse]],
        *,
        timeout_s: float = CALL_S,
        urgent: bool = False,
    ) -> dict[str, Any]:
        """Send a request and return the response's document."""
        text = await self._read(verb, resource, request, timeout_s=timeout_s, urgent=urgent)
        try:
            body: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise UnreachableError(0, "Unreachable", f"{self._server} answers no JSON: {error}") from error
        return body

    async def _read(
        self,
        verb: str,
        resource: str,
        request: Callable[..., Awaitable[aiohttp.ClientResponse]],
        *,
        timeout_s: float = CALL_S,
        urgent: bool = False,
    ) -> bytes:
        """Send a request and return the response's content."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        async with nullcontext() if urgent else self._slots:
            with self._measured(verb, resource) as measured:
                async with await request(serialize=False, _request_timeout=timeout) as response:
                    content = await response.read()
                    measured.status = response.status
        return content

    @contextmanager
    def _measured(self, verb: str, resource: str) -> "Iterator[_Measured]":
        """Report a request to `on_request`, and translate its errors."""
        began, measured = time.monotonic(), _Measured()
        try:
            yield measured
        except DynamicApiError as error:
            measured.status = error.status
            raise translated(error.status, error.body, error.headers) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            message = str(error) or type(error).__name__
            raise UnreachableError(0, "Unreachable", f"{self._server} does not answer: {message}") from error
        finally:
            self._on_request(verb, resource, measured.status, time.monotonic() - began)

    @property
    def _server(self) -> str:
        return str(self._client.configuration.host)


class _Measured:
    """A request's HTTP status; 0 until there is a response."""

    status = 0


async def answered(request: Callable[[], Awaitable[Answer]], what: str) -> Answer:
    """Repeat a request until the API server is reachable, and return its result. Raises any other ApiError."""
    logged = ""
    while True:
        try:
            return await request()
        except (UnreachableError, GoneError) as error:
            if str(error) != logged:
                logged = str(error)
                log.warning("%s cannot be read yet: %s", what, logged)
            await asyncio.sleep(AGAIN_S)
