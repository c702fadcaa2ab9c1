"""Requests to the API server over one session: bounded, timed, counted, their errors translated."""

import asyncio
import io
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp

from .credentials import Credentials, CredentialsError
from .errors import UnreachableError, of_status, translated

OnRequest = Callable[[str, str, int, float], None]
"""Told of each request: verb, resource, HTTP status (0: no answer), seconds."""
AT_ONCE = 16
"""Requests under way, beside watches: the API server shares its places among its clients."""
CONNECT_S = 5.0
CALL_S = 15.0
LIST_S = 60.0
SILENCE_S = 150.0
"""After how much silence a watch is asked for anew: its connection may be dead, which nothing else would tell."""
JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `verb` is Kubernetes' own: get, list, create, update, patch, delete, watch.

    An `urgent` one does not wait until others are answered.
    """

    verb: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content_type: str = JSON
    accept: str = JSON
    timeout_s: float = CALL_S
    urgent: bool = False

    @property
    def method(self) -> str:
        """HTTP's word for the verb."""
        return {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}.get(self.verb, "GET")

    @property
    def resource(self) -> str:
        """What it is about: `pods`, `deployments`, `pods/status`; `discovery` where that is no kind of object."""
        parts = self.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        if len(parts) > 2 and parts[0] == "namespaces":
            parts = parts[2:]
        return "/".join([parts[0], *parts[2:3]]) if parts else "discovery"


class Transport:
    """A context manager. `on_request` is told of each request."""

    def __init__(self, credentials: Credentials, on_request: OnRequest | None = None) -> None:
        self.credentials = credentials
        self._on_request = on_request or (lambda *_: None)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # No limit of connections: watches would take the places of calls, which the semaphore bounds.
        try:
            tls = self.credentials.tls()
        except OSError as error:
            files = self.credentials.authority_file, self.credentials.certificate_file
            raise CredentialsError(f"{' and '.join(filter(None, files))} cannot be used: {error}") from error
        connector = aiohttp.TCPConnector(limit=0, ssl=tls or True)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=True, headers={"User-Agent": "argosy"})
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # connections end in the loop's next turn

    async def send(self, call: Call) -> dict[str, Any]:
        """The answer's object. Raises ApiError."""
        async with nullcontext() if call.urgent else self._places:
            status, text = await self._exchange(call)
            if status == 401:
                await self.credentials.renew()
                status, text = await self._exchange(call)
        if status >= 300:
            raise translated(status, text)
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise UnreachableError(0, "Unreachable", f"{self.credentials.server} answers no JSON: {error}") from error
        return found

    async def _exchange(self, call: Call) -> tuple[int, bytes]:
        began, status = time.monotonic(), 0
        timeout = aiohttp.ClientTimeout(total=call.timeout_s, sock_connect=CONNECT_S)
        try:
            async with self._request(call, timeout, await self.credentials.headers()) as response:
                text = await response.read()
                status = response.status
                return status, text
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error
        finally:
            self._on_request(call.verb, call.resource, status, time.monotonic() - began)

    async def stream(self, call: Call) -> AsyncGenerator[dict[str, Any]]:
        """A watch's events, as they come, until the API server ends it or says nothing for long. Raises ApiError."""
        began, status = time.monotonic(), 0
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
        try:
            async with self._request(call, timeout, await self.credentials.headers()) as response:
                status = response.status
                if status >= 300:
                    raise translated(status, await response.read())
                with _cut_off(response), suppress(aiohttp.ServerTimeoutError):
                    async for line in _lines(response.content):
                        yield _event(line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error
        finally:
            self._on_request(call.verb, call.resource, status, time.monotonic() - began)
            if status == 401:
                await self.credentials.renew()

    def _request(
        self, call: Call, timeout: aiohttp.ClientTimeout, headers: dict[str, str]
    ) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            raise RuntimeError("the connection is not open: use it as a context manager")
        body = None if call.body is None else io.BytesIO(json.dumps(call.body).encode())
        return self._session.request(
            call.method,
            self.credentials.server + call.path,
            params=dict(call.params),
            data=body,
            headers={**headers, "Accept": call.accept, "Content-Type": call.content_type},
            timeout=timeout,
            proxy=self.credentials.proxy,
            server_hostname=self.credentials.server_hostname,
        )

    def _unreachable(self, error: Exception) -> UnreachableError:
        said = str(error) or type(error).__name__
        return UnreachableError(0, "Unreachable", f"{self.credentials.server} does not answer: {said}")


@contextmanager
def _cut_off(response: aiohttp.ClientResponse) -> Iterator[None]:
    """End the connection where an answer is left in its midst; a polite end of TLS waits for the other side."""
    try:
        yield
    except BaseException:
        if response.connection is not None and response.connection.transport is not None:
            response.connection.transport.abort()
        raise


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a stream, however long: one object may have megabytes, which `readline` refuses."""
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*parts, end))
            parts.clear()
        if rest:
            parts.append(rest)


def _event(line: bytes) -> dict[str, Any]:
    """One event of a watch; what says that the watch failed is raised."""
    try:
        event: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise UnreachableError(0, "Unreachable", f"the API server broke off within an event: {error}") from error
    if event.get("type") == "ERROR":
        raise of_status(event.get("object") or {})
    return event
