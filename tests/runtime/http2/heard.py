"""Events from the other end of a connection, and frames that are written to it by hand."""

from typing import Any

from h2 import events

from argosy_runtime.http2 import frames
from argosy_runtime.http2.hpack.encoder import encode

from .playing import Play, head

HEADERS = frames.HEADERS
COMPLETE = frames.END_HEADERS | frames.END_STREAM


def of(kind: type[Any], heard: list[Any]) -> list[Any]:
    return [event for event in heard if isinstance(event, kind)]


def body(heard: list[Any], stream_id: int) -> bytes:
    return b"".join(event.data for event in of(events.DataReceived, heard) if event.stream_id == stream_id)


def block(path: str = "/echo", *more: tuple[str, str]) -> bytes:
    return encode([(name.encode(), value.encode()) for name, value in head(path, *more)])


def goaway_code(play: Play) -> int | None:
    """Return the code of the GOAWAY that the server has sent; None for none."""
    data = bytes(play.sent + play.output())
    position = 0
    while position < len(data):
        kind, _, _ = frames.read_head(data, position)
        if kind & 0xFF == frames.GOAWAY:
            return frames.read_u32(data, position + frames.HEAD_SIZE + 4)
        position += frames.HEAD_SIZE + (kind >> 8)
    return None


def begun(**options: Any) -> Play:
    play = Play(**options)
    play.carry()
    return play
