"""Several inputs that are wrong, of which Triton names one, and inputs that are there twice."""

import json
import struct
from typing import Any

from tests.differential.http_calls import Call, Case, infer, post, tensor

NAMES = ("FIRST", "SECOND", "THIRD")


def _texts(*counts: int, names: tuple[str, ...] = NAMES, **rest: Any) -> Call:
    """Return a request of inputs that should have two strings each."""
    inputs = [tensor(name, [1, 2], "BYTES", ["a"] * count) for name, count in zip(names, counts, strict=True)]
    return infer("texts", *inputs, **rest)


def _binary(*counts: int) -> Call:
    parts = [struct.pack("<I1s", 1, b"a") * count for count in counts]
    inputs = [
        tensor(name, [1, 2], "BYTES", binary_data_size=len(part)) for name, part in zip(NAMES, parts, strict=True)
    ]
    head = json.dumps({"inputs": inputs}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    return post("/v2/models/texts/infer", head + b"".join(parts), headers)


def _generate(body: str, model: str = "text") -> Call:
    return post(f"/v2/models/{model}/generate", body)


def _add(first: tuple[str, list[int]], second: tuple[str, list[int]]) -> Call:
    inputs = [
        tensor(name, shape, datatype, [0] * (shape[0] * shape[1]))
        for name, (datatype, shape) in zip(("INPUT0", "INPUT1"), (first, second), strict=True)
    ]
    return infer("add_sub", *inputs)


GOOD = ("INT32", [1, 16])


def _sized(model: str, *inputs: tuple[str, list[int], str, bytes], **rest: Any) -> Call:
    """Return a request with binary inputs of any size."""
    entries = [tensor(name, shape, kind, binary_data_size=len(data)) for name, shape, kind, data in inputs]
    head = json.dumps({"inputs": entries, **rest}).encode()
    body = head + b"".join(data for *_, data in inputs)
    return post(f"/v2/models/{model}/infer", body, {"Inference-Header-Content-Length": str(len(head))})


FOUR, CUT = b"\0" * 4, b"\5\0\0\0ab"
CALLS = {
    "strings right": _texts(2, 2, 2),
    "strings of all too few": _texts(1, 1, 1),
    "strings of all too few, backwards": _texts(1, 1, 1, names=NAMES[::-1]),
    "strings too few and too many": _texts(1, 3, 2),
    "strings too many and too few": _texts(3, 2, 1),
    "strings of the first": _texts(1, 2, 2),
    "strings, with an id": _texts(2, 1, 1, id="me"),
    "strings in binary": _binary(1, 3, 1),
    "strings in binary of the first two": _binary(3, 1, 2),
    "names of all unknown": infer("texts", *[tensor(name, [1, 1], "BYTES", ["a"]) for name in ("X", "Y", "Z")]),
    "datatypes of both": _add(("INT64", [1, 16]), ("FP32", [1, 16])),
    "shapes of both": _add(("INT32", [1, 15]), ("INT32", [1, 14])),
    "datatype and shape": _add(("INT64", [1, 16]), ("INT32", [1, 14])),
    "shape and datatype": _add(("INT32", [1, 14]), ("INT64", [1, 16])),
    "rows differ": _add(GOOD, ("INT32", [2, 16])),
    "generate key twice": _generate('{"text_input": "a", "text_input": "b"}'),
    "generate key twice, with an id": _generate('{"id": "me", "text_input": "a", "text_input": "b"}'),
    "generate nested key twice": _generate('{"parameters": {"text_input": "a", "text_input": "b"}}'),
    "generate key on top and nested": _generate('{"text_input": "a", "parameters": {"text_input": "b"}}'),
    "generate parameter twice": _generate('{"text_input": "a", "suffix": "b", "suffix": "b"}'),
    "generate key in a text": _generate('{"text_input": "text_input", "suffix": "text_input"}'),
    "generate key twice in a stream": post(
        "/v2/models/words/generate_stream", '{"text_input": "a", "text_input": "b"}'
    ),
    "size and name": _sized("identity", ("NO", [1, 2], "FP32", FOUR)),
    "size and output": _sized("identity", ("INPUT0", [1, 2], "FP32", FOUR), outputs=[{"name": "NO"}]),
    "size and datatype": _sized("identity", ("INPUT0", [1, 2], "INT32", FOUR)),
    "size and unknown datatype": _sized("identity", ("INPUT0", [1, 2], "FP31", FOUR)),
    "size and shape": _sized("identity", ("INPUT0", [1, 2, 2], "FP32", FOUR)),
    "size and batch": _sized("identity", ("INPUT0", [999, 2], "FP32", FOUR)),
    "size and count of inputs": _sized("add_sub", ("INPUT0", [1, 16], "INT32", FOUR)),
    "sizes of two": _sized("add_sub", ("INPUT0", [1, 16], "INT32", FOUR), ("INPUT1", [1, 16], "INT32", FOUR)),
    "size of one, datatype of the next": _sized(
        "add_sub", ("INPUT1", [1, 16], "INT32", FOUR), ("INPUT0", [1, 16], "FP32", FOUR * 16)
    ),
    "datatype of one, size of the next": _sized(
        "add_sub", ("INPUT1", [1, 16], "FP32", FOUR * 16), ("INPUT0", [1, 16], "INT32", FOUR)
    ),
    "string cut off and shape": _sized("bytes_identity", ("INPUT0", [1, 1, 1], "BYTES", CUT)),
    "string cut off and datatype": _sized("identity", ("INPUT0", [1, 1], "BYTES", CUT)),
    "data of an empty shape is not read": infer("identity", tensor("INPUT0", [1, 0], "FP32", -1)),
    "FP16 of an empty shape": infer("identity", tensor("INPUT0", [1, 0], "FP16", [1])),
    "unknown datatype of an empty shape": infer("identity", tensor("INPUT0", [1, 0], "FP31", [])),
}
CASES = [Case(f"inputs {name}", (call,)) for name, call in CALLS.items()]
