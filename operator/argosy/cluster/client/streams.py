"""The events of a watch, read line by line.

The kubernetes package's own Watch creates a client with its own TLS context for each watch (tens of milliseconds),
requests no bookmarks, and cannot read a line of more than 4 MiB.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp

from .errors import UnreachableError, of_status


@contextmanager
def cut_off(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Abort the connection of an unfinished response: a TLS shutdown would wait for the other side."""
    try:
        yield
    except BaseException:
        if response.connection is not None and response.connection.transport is not None:
            response.connection.transport.abort()
        raise
    finally:
        response.close()


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, of any length: one object may have megabytes, which `readline` refuses."""
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*parts, end))
            parts.clear()
        if rest:
            parts.append(rest)


def event(line: bytes) -> dict[str, Any]:
    """Return one event of a watch. Raises ApiError for an event of type ERROR, or an incomplete one."""
    try:
        parsed: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise UnreachableError(0, "Unreachable", f"the API server broke off within an event: {error}") from error
    if parsed.get("type") == "ERROR":
        raise of_status(parsed.get("object") or {})
    return parsed
