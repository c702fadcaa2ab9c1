"""Routing of paths to handlers: a tree of segments."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import unquote

from argosy_runtime.fifo_cache import FifoCache

Endpoint = TypeVar("Endpoint")
_CAPACITY = 1024


@dataclass(slots=True)
class _Node(Generic[Endpoint]):
    literal: dict[str, "_Node[Endpoint]"] = field(default_factory=dict)
    capture: "_Node[Endpoint] | None" = None
    capture_digits: "_Node[Endpoint] | None" = None
    endpoint: Endpoint | None = None


class Routes(Generic[Endpoint]):
    """Paths like `/v2/models/{name}/versions/{digits}`: `{digits}` captures digits alone, `{x}` any
    segment.
    """

    def __init__(self, routes: Iterable[tuple[str, Endpoint]]) -> None:
        self._root: _Node[Endpoint] = _Node()
        self._cache = FifoCache[str, tuple[Endpoint, tuple[str, ...]]](_CAPACITY)
        for pattern, endpoint in routes:
            self._add(pattern, endpoint)

    def find(self, path: str) -> tuple[Endpoint, tuple[str, ...]] | None:
        """Return the endpoint of a path as it stands in the request line, and its captures, percent-decoded.

        A literal segment is preferred to a captured one, and given up where it leads nowhere.
        """
        cached = self._cache.get(path)
        if cached is not None:
            return cached
        match = _find(self._root, path.split("/"), 1)
        if match is None:
            return None
        endpoint, captures = match
        route = endpoint, tuple(unquote(text) if "%" in text else text for text in reversed(captures))
        self._cache.put(path, route)
        return route

    def _add(self, pattern: str, endpoint: Endpoint) -> None:
        node = self._root
        for segment in pattern.split("/")[1:]:
            if segment == "{digits}":
                node.capture_digits = node.capture_digits or _Node()
                node = node.capture_digits
            elif segment.startswith("{"):
                node.capture = node.capture or _Node()
                node = node.capture
            else:
                node = node.literal.setdefault(segment, _Node())
        node.endpoint = endpoint


def _find(node: _Node[Endpoint], segments: list[str], at: int) -> tuple[Endpoint, list[str]] | None:
    if at == len(segments):
        return None if node.endpoint is None else (node.endpoint, [])
    segment = segments[at]
    below = node.literal.get(segment)
    if below is not None:
        match = _find(below, segments, at + 1)
        if match is not None:
            return match
    if node.capture_digits is not None and segment.isascii() and segment.isdigit():
        captured, value = node.capture_digits, segment.lstrip("0") or "0"
    elif node.capture is not None and segment:
        captured, value = node.capture, segment
    else:
        return None
    match = _find(captured, segments, at + 1)
    if match is not None:
        match[1].append(value)
    return match
