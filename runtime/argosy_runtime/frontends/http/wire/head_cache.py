"""Parsed request heads with their handlers, cached by their bytes, because the heads of one client are mostly equal."""

from typing import Final

from argosy_runtime.fifo_cache import FifoCache

from .application import Application, Handler
from .heads import Head, read_head

_CAPACITY: Final = 1024
_LONGEST_KEY: Final = 4096


class RoutedHead:
    """A request head and the handler of all requests that have it."""

    __slots__ = ("handler", "head")

    def __init__(self, head: Head, handler: Handler) -> None:
        self.head = head
        self.handler = handler


class HeadCache:
    """The heads of one application's requests. Heads longer than 4 KiB are parsed every time."""

    __slots__ = ("_app", "_heads")

    def __init__(self, app: Application) -> None:
        self._app = app
        self._heads = FifoCache[bytes, RoutedHead](_CAPACITY)

    def find(self, data: bytes) -> RoutedHead | None:
        """Return the head that these bytes, its empty last line included, encode; None where they are not HTTP."""
        routed = self._heads.get(data)
        return self._read(data) if routed is None else routed

    def _read(self, data: bytes) -> RoutedHead | None:
        head = read_head(data)
        if head is None:
            return None
        routed = RoutedHead(head, self._app.handler(head))
        if len(data) <= _LONGEST_KEY:
            self._heads.put(data, routed)
        return routed
