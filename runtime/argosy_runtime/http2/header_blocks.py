"""Header blocks of one connection: joined, decoded, and cached while equal bytes mean the same."""

from typing import Final

from argosy_runtime.fifo_cache import FifoCache

from . import frames
from .application import Application, Route
from .conduct import Limits
from .errors import protocol_error, too_much
from .headers import request_head
from .hpack.decoder import Decoder
from .hpack.tables import Field

_CLOSING_FLAGS: Final = frames.END_STREAM


class Opening:
    """What a header block begins: the route of its requests, and the length of their bodies (-1: not declared)."""

    __slots__ = ("declared", "route")

    def __init__(self, route: Route, declared: int) -> None:
        self.route = route
        self.declared = declared


class HeaderBlocks:
    """Takes blocks and returns openings. `pending` is the stream whose block goes on in CONTINUATION, 0 for none."""

    __slots__ = ("_application", "_decoder", "_flags", "_fragments", "_limits", "_size", "openings", "pending")

    def __init__(self, application: Application, limits: Limits) -> None:
        self.openings = FifoCache[bytes, Opening](limits.cached_blocks)
        self.pending = 0
        self._application = application
        self._limits = limits
        self._decoder = Decoder(limits.header_list)
        self._fragments: list[bytes] = []
        self._size = 0
        self._flags = 0

    def begin(self, flags: int, stream_id: int, payload: bytes) -> bytes | None:
        """Take a HEADERS frame. Return its block, or None where it goes on. Raises PeerError."""
        fragment = frames.header_fragment(flags, stream_id, payload)
        if flags & frames.END_HEADERS:
            return self._bounded(fragment)
        self.pending, self._flags = stream_id, flags
        self._fragments, self._size = [], 0
        self._add(fragment)
        return None

    def go_on(self, flags: int, stream_id: int, payload: bytes) -> bytes | None:
        """Take a CONTINUATION. Return the block that it completes, or None. Raises PeerError."""
        if stream_id != self.pending:
            raise protocol_error("CONTINUATION of another stream")
        self._add(payload)
        if not flags & frames.END_HEADERS:
            return None
        self.pending = 0
        return b"".join(self._fragments)

    @property
    def ends_stream(self) -> bool:
        """Whether the HEADERS frame that began the last continued block ended its stream."""
        return bool(self._flags & _CLOSING_FLAGS)

    def _add(self, fragment: bytes) -> None:
        self._fragments.append(fragment)
        self._size += len(fragment)
        if self._size > self._limits.header_block or len(self._fragments) > self._limits.header_frames:
            raise too_much("a header block larger than allowed")

    def _bounded(self, block: bytes) -> bytes:
        if len(block) > self._limits.header_block:
            raise too_much("a header block larger than allowed")
        return block

    def fields(self, block: bytes) -> list[Field]:
        """Return a block's fields. Raises PeerError."""
        changes = self._decoder.table.changes
        fields = self._decoder.decode(block)
        if changes != self._decoder.table.changes:
            self.openings.clear()
        return fields

    def opening(self, block: bytes) -> Opening:
        """Return what a request's block begins. Raises PeerError, or MalformedError once the block is decoded."""
        cached = self.openings.get(block)
        if cached is not None:
            return cached
        changes = self._decoder.table.changes
        head = request_head(self.fields(block))
        opening = Opening(self._application.route(head), head.content_length)
        if changes == self._decoder.table.changes and len(block) <= self._limits.cached_block_size:
            self.openings.put(block, opening)
        return opening
