"""The binary tensor extension, raw requests and compression."""

import gzip
import json
import struct
import zlib
from typing import Any

from tests.differential.http_calls import Call, Case, infer, post, tensor

FLOATS = struct.pack("<2f", 1, 2)
HEADER = "Inference-Header-Content-Length"
STRINGS = struct.pack("<I1sI2s", 1, b"a", 2, b"bc")


def _binary(model: str, document: Any, tail: bytes, length: Any = None) -> Call:
    head = b"" if document is None else json.dumps(document).encode()
    size = str(len(head) if length is None else length)
    return post(f"/v2/models/{model}/infer", head + tail, {HEADER: size})


def _sized(size: Any, datatype: str = "FP32", **rest: Any) -> dict[str, Any]:
    return {"inputs": [tensor("INPUT0", [1, 2], datatype, binary_data_size=size)], **rest}


def _floats(size: Any, tail: bytes, length: Any = None, **rest: Any) -> Call:
    return _binary("identity", _sized(size, **rest), tail, length)


def _strings(tail: bytes) -> Call:
    return _binary("bytes_identity", _sized(len(tail), "BYTES"), tail)


def _output(**parameters: Any) -> list[dict[str, Any]]:
    return [{"name": "OUTPUT0", "parameters": parameters}]


def _encoded(body: bytes, **headers: str) -> Call:
    return post("/v2/models/identity/infer", body, {name.replace("_", "-"): value for name, value in headers.items()})


def _half(data: bytes) -> Call:
    document = {"inputs": [tensor("IN_FP16", [2], "FP16", binary_data_size=len(data))]}
    return _binary("every_type", {**document, "parameters": {"binary_data_output": True}}, data)


PLAIN = json.dumps({"inputs": [tensor("INPUT0", [1, 2], "FP32", [1, 2])]}).encode()
ADD = (tensor("INPUT0", [1, 16], "INT32", [3] * 16), tensor("INPUT1", [1, 16], "INT32", [1] * 16))
ONE_BINARY = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}, {"name": "OUTPUT1"}]

CALLS = {
    "in, json out": _floats(8, FLOATS),
    "in and out": _floats(8, FLOATS, outputs=_output(binary_data=True)),
    "in, all out": _floats(8, FLOATS, parameters={"binary_data_output": True}),
    "in, asked not": _floats(8, FLOATS, outputs=_output(binary_data=False), parameters={"binary_data_output": True}),
    "one of two out": infer("add_sub", *ADD, outputs=ONE_BINARY),
    "default for listed": infer(
        "add_sub", *ADD, outputs=[{"name": "OUTPUT0"}], parameters={"binary_data_output": True}
    ),
    "default for unlisted": infer("add_sub", *ADD, parameters={"binary_data_output": True}),
    "half floats": _half(struct.pack("<2e", 1.5, -2)),
    "too short": _floats(8, FLOATS[:4]),
    "too long": _floats(8, FLOATS + FLOATS),
    "other size than shape": _floats(4, FLOATS[:4]),
    "size negative": _floats(-1, FLOATS),
    "size text": _floats("8", FLOATS),
    "header beyond body": _binary("identity", None, FLOATS, 9999),
    "header negative": _floats(8, FLOATS, length=-1),
    "data and size": infer("identity", tensor("INPUT0", [1, 2], "FP32", [1, 2], binary_data_size=8)),
    "raw": _binary("identity", None, FLOATS),
    "raw for two inputs": _binary("add_sub", None, FLOATS),
    "raw bytes": _binary("bytes_identity", None, b"hello"),
    "raw of no bytes, by no body": post("/v2/models/identity/infer"),
    "raw of no bytes for two inputs": post("/v2/models/add_sub/infer"),
    "raw of no bytes, of bytes": post("/v2/models/bytes_identity/infer"),
    "raw of odd size": _binary("identity", None, FLOATS[:3]),
    "strings": _strings(STRINGS),
    "strings too few": _strings(STRINGS[:5]),
    "strings cut off": _strings(STRINGS[:-1]),
    "strings trailing": _strings(STRINGS + b"d"),
    "strings half a length": _strings(STRINGS[:2]),
    "gzip in": _encoded(gzip.compress(PLAIN), Content_Encoding="gzip"),
    "deflate in": _encoded(zlib.compress(PLAIN), Content_Encoding="deflate"),
    "gzip out": _encoded(PLAIN, Accept_Encoding="gzip"),
    "deflate out": _encoded(PLAIN, Accept_Encoding="deflate"),
    "encodings by weight": _encoded(PLAIN, Accept_Encoding="gzip;q=0.2, deflate;q=0.8"),
    "encoding refused": _encoded(PLAIN, Accept_Encoding="gzip;q=0"),
}

CASES = [Case(f"binary {name}", (call,)) for name, call in CALLS.items()]
