"""A watch's answer, read line by line.

The kubernetes package's own Watch makes a client with a TLS context of its own for each watch (tens of milliseconds),
asks for no bookmarks, and cannot read a line of more than 4 MiB.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp

from .errors import UnreachableError, of_status


@contextmanager
def cut_off(response: aiohttp.ClientResponse) -> Iterator[None]:
    """End the connection where an answer is left in its midst; a polite end of TLS waits for the other side."""
    try:
        yield
    except BaseException:
        if response.connection is not None and response.connection.transport is not None:
            response.connection.transport.abort()
        raise
    finally:
        response.close()


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, however long: one object may have megabytes, which `readline` refuses."""
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*parts, end))
            parts.clear()
        if rest:
            parts.append(rest)


def event(line: bytes) -> dict[str, Any]:
    """Return one event of a watch; what says that the watch failed is raised."""
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise UnreachableError(0, "Unreachable", f"the API server broke off within an event: {error}") from error
    if found.get("type") == "ERROR":
        raise of_status(found.get("object") or {})
    return found
