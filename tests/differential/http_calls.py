"""One HTTP exchange: what is sent, and the answer as plain JSON values that can be written down and compared.

An answer is `{"status", "type", "body"}`, with `"encoding"` where the body came compressed. A JSON body stands
parsed; a body of the binary tensor extension as `{"json", "binary"}`, the tensors' bytes in hexadecimal;
server-sent events as `{"events": [...]}`; anything else as text.
"""

import gzip
import http.client
import json
import time
import zlib
from dataclasses import dataclass
from typing import Any

Json = Any


@dataclass(frozen=True)
class Call:
    """An HTTP request. With `settle` it is repeated until no model is loading or unloading."""

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    settle: bool = False


@dataclass(frozen=True)
class Case:
    """Calls made in this order, under a name that is unique in its protocol."""

    name: str
    calls: tuple[Call, ...]


def get(path: str) -> Call:
    """Return a GET of `path`."""
    return Call("GET", path)


def post(path: str, body: Json = None, headers: dict[str, str] | None = None, settle: bool = False) -> Call:
    """Return a POST: bytes and text as they are, any other value as JSON, None as no body."""
    match body:
        case None:
            content = b""
        case bytes():
            content = body
        case str():
            content = body.encode()
        case _:
            content = json.dumps(body).encode()
    return Call("POST", path, content, tuple((headers or {}).items()), settle)


def tensor(name: str, shape: Json, datatype: Json, data: Json = None, **parameters: Json) -> dict[str, Json]:
    """Return an input of an inference request; without `data` where it is None."""
    entry: dict[str, Json] = {"name": name, "shape": shape, "datatype": datatype}
    if data is not None:
        entry["data"] = data
    if parameters:
        entry["parameters"] = parameters
    return entry


def infer(model: str, *inputs: dict[str, Json], **rest: Json) -> Call:
    """Return an inference request in JSON; `model` may go on with /versions/n."""
    return post(f"/v2/models/{model}/infer", {"inputs": list(inputs), **rest})


def send(address: str, call: Call, patience_s: float = 15.0) -> dict[str, Json]:
    """Make the call at `host:port` and return its answer."""
    deadline = time.monotonic() + patience_s
    while True:
        answer = _send_once(address, call)
        if not call.settle or not _unsettled(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.1)


def _unsettled(answer: dict[str, Json]) -> bool:
    body = answer["body"]
    return isinstance(body, list) and any(entry.get("state", "").endswith("LOADING") for entry in body)


def _send_once(address: str, call: Call) -> dict[str, Json]:
    connection = http.client.HTTPConnection(address, timeout=20.0)
    try:
        connection.request(call.method, call.path, call.body or None, dict(call.headers))
        response = connection.getresponse()
        return _answer(response, response.read())
    finally:
        connection.close()


def _answer(response: http.client.HTTPResponse, content: bytes) -> dict[str, Json]:
    answer: dict[str, Json] = {"status": response.status, "type": response.getheader("Content-Type", "")}
    encoding = response.getheader("Content-Encoding")
    if encoding:
        answer["encoding"] = encoding
        content = gzip.decompress(content) if encoding == "gzip" else zlib.decompress(content)
    length = response.getheader("Inference-Header-Content-Length")
    if length is not None:
        split = int(length)
        answer["body"] = {"json": json.loads(content[:split]), "binary": content[split:].hex()}
    elif answer["type"].startswith("text/event-stream"):
        answer["body"] = {"events": _events(content)}
    else:
        answer["body"] = _parsed(content)
    return answer


def _events(content: bytes) -> list[Json]:
    blocks = content.decode().split("\n\n")
    return [_parsed(block.removeprefix("data: ").encode()) for block in blocks if block]


def _parsed(content: bytes) -> Json:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="backslashreplace")
