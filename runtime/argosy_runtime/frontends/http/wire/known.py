"""Heads that have been read, with those who answer them: remembered by their bytes, because a client's are alike."""

from typing import Final

from .application import Application, Handler
from .heads import Head, read_head

_REMEMBERED: Final = 1024
_LONGEST_REMEMBERED: Final = 4096


class KnownHead:
    """A head and who answers requests with it."""

    __slots__ = ("handler", "head")

    def __init__(self, head: Head, handler: Handler) -> None:
        self.head = head
        self.handler = handler


class KnownHeads:
    """The heads of one application's clients; the oldest is forgotten where they are many."""

    __slots__ = ("_app", "_known")

    def __init__(self, app: Application) -> None:
        self._app = app
        self._known: dict[bytes, KnownHead] = {}

    def find(self, data: bytes) -> KnownHead | None:
        """Return the head that stands in these bytes, its empty last line included; None where it is no HTTP."""
        known = self._known.get(data)
        return self._read(data) if known is None else known

    def _read(self, data: bytes) -> KnownHead | None:
        head = read_head(data)
        if head is None:
            return None
        known = KnownHead(head, self._app.handler(head))
        if len(data) <= _LONGEST_REMEMBERED:
            if len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[data] = known
        return known
