"""Frames between the server and a model's process: one format in both directions, of numbers, texts and raw tensors.

A frame, in little endian: u64 length of all of it, u32 kind, u32 how many numbers, u64 subject (which run, which call),
u64 length of the texts; the numbers, u64 each; the texts (ids, templates, bodies); the tensors, each at a multiple of
16, where numpy can read them in place. The kind says what each number means, and with it how long texts and tensors
are.
A large tensor lies in memory that both have mapped (`arena`): its length has `SHARED`, and the next number says where.

Reading a frame runs nothing of what it says: lengths are held against the frame, and whatever does not fit is a
`FrameError`.
"""

import struct
from typing import Final

import numpy as np

from argosy_runtime.tensors import Data

from .arena import Arena, IncomingTensors, OutgoingTensors

CONTROL: Final = 1  # one text: a message of `control`
EXECUTE: Final = 2  # subject: run; its requests
RESPONSES: Final = 3  # subject: run; how far it is, its times, responses
CANCEL: Final = 4  # subject: run; the number of a request whose client has gone
PAUSE: Final = 5  # likewise: its client reads slower than it is answered
RESUME: Final = 6  # likewise: it has caught up
CALL: Final = 7  # subject: call; a request of a model's own
ANSWER: Final = 8  # subject: call; a response to it
RELEASE: Final = 9  # offsets of tensors in shared memory that are unused now

SHARED: Final = 1 << 62

MAX_FRAME: Final = 1 << 34

_HEADER: Final = struct.Struct("<QIIQQ")
_HEADER_SIZE: Final = 32
_PADS: Final = [b"\0" * size for size in range(16)]
# Below this many bytes a copy is cheaper than a view.
_COPY_BELOW: Final = 4096
# Frames that are longer than this are read to memory of their own.
_LONG: Final = 1 << 16
_BUFFER_SIZE: Final = 1 << 18
# Tensors that are longer than this go by shared memory, if there is any.
SHARED_FROM: Final = 1 << 16

Buffer = bytes | bytearray | memoryview


class FrameError(Exception):
    """Invalid bytes: no frame, or one with an impossible content."""


class FrameWriter:
    """A frame to be sent. Tensors are not copied."""

    __slots__ = ("_outgoing", "_put", "_tensor_size", "_tensors", "_text_size", "_texts", "numbers")

    def __init__(self, outgoing: OutgoingTensors | None = None) -> None:
        self.numbers: list[int] = []
        self._outgoing = outgoing
        self._put: list[int] = []
        self._texts: list[bytes] = []
        self._tensors: list[Data] = []
        self._text_size = 0
        self._tensor_size = 0

    def add_text(self, text: bytes) -> None:
        """Add a text; its length becomes the next number."""
        size = len(text)
        self.numbers.append(size)
        if size:
            self._texts.append(text)
            self._text_size += size

    def add_tensor(self, data: Data, may_share: bool) -> None:
        """Add a tensor's bytes; their length becomes the next number. `may_share`: they may go by shared memory."""
        size = len(data)
        if size > SHARED_FROM and may_share and self._outgoing is not None and self._share(data, self._outgoing):
            return
        self.numbers.append(size)
        self._tensors.append(data)
        pad = -size & 15
        if pad:
            self._tensors.append(_PADS[pad])
        self._tensor_size += size + pad

    def _share(self, data: Data, outgoing: OutgoingTensors) -> bool:
        at = outgoing.put(data)
        if at < 0:
            return False
        self._put.append(at)
        self.numbers.append(len(data) | SHARED)
        self.numbers.append(at)
        return True

    def drop(self) -> None:
        """Free the shared memory of a frame that is not sent."""
        if self._outgoing is not None:
            for at in self._put:
                self._outgoing.free(at)

    def chunks(self, kind: int, subject: int) -> list[Data]:
        """Return the frame as chunks, to be written one after the other."""
        numbers = self.numbers
        count = len(numbers)
        begin = _HEADER_SIZE + 8 * count + self._text_size
        pad = -begin & 15
        total = begin + pad + self._tensor_size
        chunks: list[Data] = [
            _HEADER.pack(total, kind, count, subject, self._text_size) + _numbers(count).pack(*numbers)
        ]
        chunks += self._texts
        chunks.append(_PADS[pad])
        chunks += self._tensors
        return chunks


class Frame:
    """One complete frame of `FrameCutter`, read from its beginning to its end.

    Every method raises FrameError where there is no more.
    """

    __slots__ = (
        "_at",
        "_data",
        "_end",
        "_incoming",
        "_numbers",
        "_tensor_at",
        "_text_at",
        "_text_end",
        "_view",
        "kind",
        "subject",
    )

    def __init__(self, data: Buffer, incoming: IncomingTensors | None = None) -> None:
        length, kind, count, subject, texts = _HEADER.unpack_from(data)
        self.kind: int = kind
        self.subject: int = subject
        self._text_at: int = _HEADER_SIZE + 8 * count
        self._text_end: int = self._text_at + texts
        self._data = data
        self._incoming = incoming
        self._view: memoryview | None = None if isinstance(data, bytes) else memoryview(data)
        self._numbers = _numbers(count).unpack_from(data, _HEADER_SIZE)
        self._at = 0
        self._tensor_at: int = self._text_end + (-self._text_end & 15)
        self._end: int = length

    def has_more(self) -> bool:
        """Return whether a number is left."""
        return self._at < len(self._numbers)

    def number(self) -> int:
        """Return the next number."""
        at = self._at
        if at >= len(self._numbers):
            raise FrameError("a frame has fewer numbers than it needs")
        self._at = at + 1
        value: int = self._numbers[at]
        return value

    def text(self) -> bytes:
        """Return the next text, as long as the next number."""
        begin = self._text_at
        self._text_at = end = begin + self.number()
        if end > self._text_end:
            raise FrameError("a text is longer than its frame")
        return bytes(self._data[begin:end])

    def tensor(self, may_share: bool) -> Data:
        """Return the next tensor's bytes, as long as the next number.

        Large ones, and those of a writable frame, are views of it. `may_share`: they may be in shared memory,
        where the other process can change them while they are read.
        """
        begin = self._tensor_at
        size = self.number()
        if size >= SHARED:
            return self._shared(size - SHARED, may_share)
        end = begin + size
        if end > self._end:
            raise FrameError("a tensor is longer than its frame")
        self._tensor_at = end + (-end & 15)
        view = self._view
        if view is None:
            if size < _COPY_BELOW and isinstance(self._data, bytes):
                return self._data[begin:end]
            self._view = view = memoryview(self._data)
        return view[begin:end]

    def _shared(self, size: int, may_share: bool) -> memoryview:
        begin = self.number()
        data = self._incoming.lend(begin, size) if may_share and self._incoming is not None else None
        if data is None:
            raise FrameError(f"no tensor of {size} bytes can lie at {begin} of shared memory")
        return data


class FrameCutter:
    """Splits a stream of bytes into frames.

    `writable` gives each short frame memory that may be written to; `incoming` has the large tensors.
    """

    def __init__(self, writable: bool, incoming: IncomingTensors | None = None) -> None:
        self._incoming = incoming
        self._writable = writable
        self._buffer = memoryview(bytearray(_BUFFER_SIZE))
        self._end = 0
        self._long: memoryview | None = None
        self._at = 0

    def buffer(self) -> memoryview:
        """Return the buffer for the next bytes."""
        if self._long is not None:
            return self._long[self._at :]
        return self._buffer[self._end :] if self._end else self._buffer

    def came(self, count: int) -> list[Frame]:
        """Take `count` bytes that were written to the buffer. Return the frames that they complete.

        Raises FrameError.
        """
        if self._long is not None:
            return self._more_of_long(count)
        self._end += count
        frames: list[Frame] = []
        start, end = 0, self._end
        while end - start >= _HEADER_SIZE:
            length = self._length(start)
            if end - start < length:
                if length > _LONG:
                    self._begin_long(start, length)
                    return frames
                break
            part = self._buffer[start : start + length]
            frames.append(Frame(bytearray(part) if self._writable else bytes(part), self._incoming))
            start += length
        self._keep_rest(start)
        return frames

    def _length(self, start: int) -> int:
        """Return the length of the frame that begins there.

        Raises FrameError before anything impossible is waited for.
        """
        length, kind, count, _, texts = _HEADER.unpack_from(self._buffer, start)
        if not (length <= MAX_FRAME and CONTROL <= kind <= RELEASE and _HEADER_SIZE + 8 * count + texts <= length):
            raise FrameError(f"a frame of {length} bytes, kind {kind}, {count} numbers, {texts} bytes of text")
        size: int = length
        return size

    def _keep_rest(self, start: int) -> None:
        rest = self._end - start
        if start and rest:
            self._buffer[:rest] = bytes(self._buffer[start : self._end])
        self._end = rest

    def _begin_long(self, start: int, length: int) -> None:
        try:
            long_frame = np.empty(length, np.uint8).data
        except MemoryError:
            raise FrameError(f"no memory for a frame of {length} bytes") from None
        self._at = self._end - start
        long_frame[: self._at] = self._buffer[start : self._end]
        self._long = long_frame
        self._end = 0

    def _more_of_long(self, count: int) -> list[Frame]:
        long_frame = self._long
        assert long_frame is not None
        self._at += count
        if self._at < len(long_frame):
            return []
        self._long = None
        return [Frame(long_frame, self._incoming)]


def release_frame(incoming: IncomingTensors) -> list[Data]:
    """Return a frame that releases the other side's tensors that nothing here uses any more."""
    frame = FrameWriter()
    frame.numbers = incoming.take_gone()
    return frame.chunks(RELEASE, 0)


def read_release(frame: Frame, arena: Arena | None) -> None:
    """Free the tensors that a RELEASE frame names. Raises FrameError."""
    while frame.has_more():
        at = frame.number()
        if arena is None or not arena.outgoing.free(at):
            raise FrameError(f"no tensor lies at {at} of shared memory")


_TABLES: Final = [struct.Struct(f"<{count}Q") for count in range(256)]


def _numbers(count: int) -> struct.Struct:
    return _TABLES[count] if count < len(_TABLES) else struct.Struct(f"<{count}Q")
