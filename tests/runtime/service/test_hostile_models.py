"""A model that writes into the server's socket itself: whatever it writes ends its process, and nothing else."""

import pickle
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.runtime.service.conftest import ask, infer, value

from argosy_runtime.errors import ServingError
from argosy_runtime.execution.process.runs import ANSWERED
from argosy_runtime.execution.process.wire.frames import (
    CALL,
    CONTROL,
    MAX_FRAME,
    RELEASE,
    RESPONSES,
    SHARED,
    FrameWriter,
)
from argosy_runtime.execution.process.wire.responses import FINAL, NEW

NONSENSE = "sent what no model's process sends"
WRITE = """
import sys
if x[0, 0] < 0:
    os.write(int(sys.argv[1]), open({path!r}, "rb").read())
    time.sleep(60)
"""


class Payload:
    """An object that runs code when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def header(length: int, kind: int, numbers: int, texts: int) -> bytes:
    """Return the first 32 bytes of a frame."""
    return struct.pack("<QIIQQ", length, kind, numbers, 0, texts)


def frame(
    kind: int, *numbers: int, texts: tuple[bytes, ...] = (), tensors: tuple[bytes, ...] = (), more: bytes = b""
) -> bytes:
    """Return a well-formed frame of any contents: first the numbers, then the texts' and tensors' lengths.

    `more` is a text whose length the caller's own numbers give.
    """
    written = FrameWriter()
    written.numbers += numbers
    for text in texts:
        written.add_text(text)
    for tensor in tensors:
        written.add_tensor(tensor, may_share=False)
    if more:
        written.add_text(more)
        written.numbers.pop()
    return b"".join(bytes(chunk) for chunk in written.chunks(kind, 0))


def answer(*numbers: int, **parts: Any) -> bytes:
    """Return a frame of responses that says the run is over."""
    return frame(RESPONSES, ANSWERED, 1, 1, 1, *numbers, **parts)


def template(datatype: str = "FP32", shape: tuple[int, ...] = (1, 1)) -> bytes:
    """Return a response's template."""
    return msgspec.msgpack.encode(([("Y", datatype, shape)], {}))


LARGE = template(shape=(100_000, 1))
BYTES = template("BYTES")
MAX = (1 << 64) - 1


def with_datatype(name: str) -> bytes:
    """Return a template of a type that does not exist."""
    return template().replace(b"\xa4FP32", bytes([0xA0 | len(name)]) + name.encode())


def hostile() -> dict[str, bytes]:
    """Return frames that a model might write."""
    return {
        "garbage": b"\xff" * 4096,
        "text": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "too short a frame": header(8, RESPONSES, 0, 0),
        "huge": header(1 << 63, RESPONSES, 0, 0),
        "larger than may be": header(MAX_FRAME + 1, RESPONSES, 0, 0) + b"\0" * 64,
        "more numbers than bytes": header(40, RESPONSES, 1 << 31, 0) + b"\0" * 8,
        "more text than bytes": header(40, RESPONSES, 1, 1 << 62) + b"\0" * 8,
        "nothing in it": frame(RESPONSES),
        "a kind that there is not": frame(99, 1),
        "a long frame of a kind that there is not": header(1 << 30, 99, 1, 1) + b"\0" * 64,
        "a kind for the other direction": frame(2, 1),
        "an unknown template": answer(FINAL, 7),
        "a template's number out of bounds": answer(FINAL, NEW | (NEW - 1), texts=(template(),)),
        "a template that is none": answer(FINAL, NEW, texts=(b"\x93\x01\x02\x03",)),
        "a negative shape": answer(FINAL, NEW, texts=(template(shape=(1, -1)),), tensors=(b"",)),
        "an endless shape": answer(FINAL, NEW, texts=(template("UINT8", (0, 1 << 62)),), tensors=(b"",)),
        "an unknown datatype": answer(FINAL, NEW, texts=(with_datatype("FP33"),), tensors=(b"1234",)),
        "too few bytes": answer(FINAL, NEW, texts=(template(),), tensors=(b"123",)),
        "too many bytes": answer(FINAL, NEW, texts=(template(),), tensors=(b"12345",)),
        "strings cut short": answer(FINAL, NEW, texts=(template("BYTES"),), tensors=(b"\x09\0\0\0abc",)),
        "too many strings": answer(FINAL, NEW, texts=(template("BYTES"),), tensors=(b"\0" * 8,)),
        "a length beyond the frame": answer(FINAL, NEW, len(template()), 1 << 40),
        "an error that is none": answer(FINAL, 1 << 33, texts=(b"\xc0",)),
        "a message that is none": frame(CONTROL, texts=(b"\x81\xa4type\xa4Quit",)),
        "a call of nothing": frame(CONTROL, texts=(b"\x83\xa4type\xa6Called\xa4call\x01\xa4what\xc0",)),
        "a tensor outside of shared memory": answer(FINAL, NEW, len(LARGE), SHARED | 400_000, 1 << 40, more=LARGE),
        "a tensor that begins beyond all numbers": answer(FINAL, NEW, len(LARGE), SHARED | 400_000, MAX, more=LARGE),
        "a tensor longer than shared memory": answer(FINAL, NEW, len(LARGE), MAX, 0, more=LARGE),
        "a tensor of another length in shared memory": answer(FINAL, NEW, len(LARGE), SHARED | 4096, 0, more=LARGE),
        "strings in shared memory": answer(
            FINAL, NEW, len(template("BYTES")), SHARED | 4096, 0, more=template("BYTES")
        ),
        "a tensor in shared memory, without where": answer(FINAL, NEW, len(LARGE), SHARED | 400_000, more=LARGE),
        "a release of what was never lent": frame(RELEASE, 0),
        "a release from outside": frame(RELEASE, MAX),
        "a request without a template": frame(CALL, 0, 3),
    }


@pytest.mark.parametrize("what", hostile())
async def test_what_makes_no_sense_ends_the_models_process_alone(repository, serve, tmp_path, what):
    path = tmp_path / "payload"
    path.write_bytes(hostile()[what])
    repository.add("m", execute=WRITE.format(path=str(path)))
    repository.add("other")
    plane = await serve()
    await plane.load("m", None, {})
    await plane.load("other", None, {})
    with pytest.raises(ServingError, match=NONSENSE):
        await infer(plane, ask("m", -1.0))
    assert await value(plane, "other", 3) == 3
    assert await value(plane, "m", 3) == 3, "it came back"


async def test_nothing_is_unpickled(repository, serve, tmp_path):
    touched, path = tmp_path / "touched", tmp_path / "payload"
    body = pickle.dumps(Payload(touched))
    old = struct.pack("<QII", 8 + len(body), 0, len(body)) + body  # a frame of a length, no buffers, and a pickle
    path.write_bytes(frame(CONTROL, texts=(body,)))
    repository.add("m", execute=WRITE.format(path=str(path)))
    plane = await serve()
    await plane.load("m", None, {})
    for payload in (frame(CONTROL, texts=(body,)), old + b"\0" * 64, body + b"\0" * 64):
        path.write_bytes(payload)
        with pytest.raises(ServingError, match=NONSENSE):
            await infer(plane, ask("m", -1.0))
        assert await value(plane, "m", 3) == 3
    assert not touched.exists()
    pickle.loads(body)
    assert touched.exists(), "it would have been"


async def test_nonsense_while_loading_is_the_reason_for_not_loading(repository, serve):
    repository.add("m", initialize="import sys; os.write(int(sys.argv[1]), b'x' * 99); time.sleep(60)")
    plane = await serve()
    with pytest.raises(ServingError, match=NONSENSE):
        await plane.load("m", None, {})
