"""Messages on a stream: each begins with a byte that says whether it is compressed, and with its length."""

import struct
import zlib
from collections.abc import Sequence
from typing import Final

from argosy_runtime.frontends.inflating import OFFLOAD_BYTES, inflated

from .status import RpcError, Status

PREFIX_SIZE: Final = 5
_PREFIX: Final = struct.Struct(">BI")
_READ_PREFIX: Final = _PREFIX.unpack_from
_WINDOW_BITS: Final = {b"gzip": 31, b"deflate": 15}
MAX_MESSAGE: Final = (1 << 31) - 1
"""The most bytes of a message as it is sent, as Triton has it."""
ENCODINGS: Final = frozenset((b"identity", *_WINDOW_BITS))


def prefix(size: int) -> bytes:
    """Return the prefix of a message of `size` bytes that is not compressed."""
    return _PREFIX.pack(0, size)


def gzipped(parts: Sequence[bytes | memoryview], level: int) -> bytes:
    """Return a message, given in parts, compressed (zlib's levels, 1 to 9) and with its prefix."""
    packer = zlib.compressobj(level, zlib.DEFLATED, _WINDOW_BITS[b"gzip"])
    packed = b"".join([*[packer.compress(part) for part in parts], packer.flush()])
    return _PREFIX.pack(1, len(packed)) + packed


def is_one_message(data: bytes) -> bool:
    """Return whether these bytes are exactly one message that is not compressed."""
    if len(data) < PREFIX_SIZE:
        return False
    compressed, size = _READ_PREFIX(data, 0)
    return bool(size == len(data) - PREFIX_SIZE and not compressed)


def decompress(message: bytes, encoding: bytes, limit: int) -> bytes:
    """Return a message decompressed. Raises RpcError where that is impossible, or more than `limit` bytes."""
    plain = _decompressed(message, encoding, limit)
    if plain is None:
        raise RpcError(
            Status.RESOURCE_EXHAUSTED,
            f"Decompressed data size exceeds the maximum allowed value of {limit} bytes. "
            "Use --http-max-input-size to increase the limit.",
        )
    return plain


def decompress_at_once(message: bytes, encoding: bytes, limit: int) -> bytes | None:
    """Return a message decompressed; None where that takes so long that a thread should do it.

    Raises RpcError as `decompress`.
    """
    if len(message) > OFFLOAD_BYTES:
        return None
    if limit <= OFFLOAD_BYTES:
        return decompress(message, encoding, limit)
    return _decompressed(message, encoding, OFFLOAD_BYTES)


def _decompressed(message: bytes, encoding: bytes, limit: int) -> bytes | None:
    bits = _WINDOW_BITS.get(encoding)
    if bits is None:
        raise RpcError(Status.INTERNAL, "a compressed message, but no grpc-encoding says how")
    try:
        return inflated(message, bits, limit)
    except zlib.error as error:
        raise RpcError(Status.INTERNAL, f"a message cannot be decompressed: {error}") from None
    except EOFError:
        raise RpcError(Status.INTERNAL, "a message cannot be decompressed: its compressed data is cut short") from None


class MessageReader:
    """Joins messages from the pieces in which they come; large ones are copied once."""

    __slots__ = ("_needed", "_pieces", "_size", "compressed")

    def __init__(self) -> None:
        self.compressed = False
        """Whether the message that `next` returned is."""
        self._pieces: list[bytes] = []
        self._size = 0
        self._needed = PREFIX_SIZE

    def add(self, data: bytes) -> None:
        """Take more bytes of the stream."""
        if data:
            self._pieces.append(data)
            self._size += len(data)

    def check(self) -> None:
        """Raise RESOURCE_EXHAUSTED where more has come than a message may have."""
        if self._size > PREFIX_SIZE + MAX_MESSAGE:
            raise _too_large(self._size - PREFIX_SIZE, MAX_MESSAGE)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come since the last message."""
        return not self._size

    def next(self) -> bytes | None:
        """Return the next message as it was sent, None where it is incomplete. Raises RpcError for a too large one."""
        if self._size < self._needed:
            return None
        if len(self._pieces[0]) < PREFIX_SIZE:
            self._pieces = [b"".join(self._pieces)]
        compressed, size = _READ_PREFIX(self._pieces[0], 0)
        if size > MAX_MESSAGE:
            raise _too_large(size, MAX_MESSAGE)
        self._needed = PREFIX_SIZE + size
        if self._size < self._needed:
            return None
        message = self._take(self._needed)
        self._needed = PREFIX_SIZE
        self.compressed = bool(compressed)
        return message

    def _take(self, stop: int) -> bytes:
        first = self._pieces[0]
        if len(first) >= stop:
            message, rest = first[PREFIX_SIZE:stop], first[stop:]
            self._pieces[0] = rest
        else:
            joined = memoryview(b"".join(self._pieces)) if self._size > stop else None
            if joined is None:
                message, rest = b"".join((memoryview(first)[PREFIX_SIZE:], *self._pieces[1:])), b""
            else:
                message, rest = bytes(joined[PREFIX_SIZE:stop]), bytes(joined[stop:])
            self._pieces = [rest]
        self._size -= stop
        if not rest:
            del self._pieces[0]
        return message


def _too_large(size: int, limit: int) -> RpcError:
    return RpcError(Status.RESOURCE_EXHAUSTED, f"Received message larger than max ({size} vs. {limit})")
