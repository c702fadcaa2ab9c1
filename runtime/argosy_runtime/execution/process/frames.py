"""How the server and a model's process talk: frames of pickled messages, large arrays beside the pickle.

A frame is, in little endian: u64 length of the rest, u32 number of buffers, u32 length of the pickle, u64 length of
each buffer; then the pickle and the buffers.
Both ends are this program on this machine, over a socket pair that nobody else can open; that is why pickle will do.
"""

import pickle
import struct
from collections.abc import Iterator
from typing import Any

Message = tuple[Any, ...]

_HEAD = struct.Struct("<QII")
_SIZE = struct.Struct("<Q")


def encode(message: Message) -> list[bytes | memoryview]:
    """The chunks of one frame; arrays are not copied."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    raws = [buffer.raw() for buffer in buffers]
    sizes = b"".join(_SIZE.pack(raw.nbytes) for raw in raws)
    total = _HEAD.size - 8 + len(sizes) + len(body) + sum(raw.nbytes for raw in raws)
    return [_HEAD.pack(total, len(raws), len(body)) + sizes + body, *raws]


def decode(frame: bytearray | memoryview) -> Message:
    """One frame, its leading length included, back to its message. Arrays share the frame's memory and are writable."""
    view = memoryview(frame)
    _, count, length = _HEAD.unpack_from(view)
    start = _HEAD.size + count * _SIZE.size
    body = view[start : start + length]
    buffers = []
    offset = start + length
    for index in range(count):
        (size,) = _SIZE.unpack_from(view, _HEAD.size + index * _SIZE.size)
        buffers.append(view[offset : offset + size])
        offset += size
    message: Message = pickle.loads(body, buffers=buffers)
    return message


class FrameReader:
    """Cuts a byte stream into frames."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._need = _HEAD.size

    def feed(self, data: bytes) -> Iterator[Message]:
        """More bytes came; yields every message they complete."""
        self._data += data
        while len(self._data) >= self._need:
            length = 8 + _SIZE.unpack_from(self._data)[0]
            if len(self._data) < length:
                self._need = length
                return
            frame, self._data = self._cut(length)
            self._need = _HEAD.size
            yield decode(frame)

    def _cut(self, length: int) -> tuple[bytearray, bytearray]:
        """The first frame and the rest, without a copy where the frame is all there is."""
        if len(self._data) == length:
            return self._data, bytearray()
        return self._data[:length], self._data[length:]
