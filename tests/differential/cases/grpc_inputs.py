"""Several inputs that are wrong, of which Triton names one, and steps of ensembles that fail or leave something out."""

import struct
from typing import Any

from tests.differential.cases.grpc_infer import encoded, request, tensor, text

NAMES = ("FIRST", "SECOND", "THIRD")


def _texts(*counts: int) -> dict[str, Any]:
    """Return a request of inputs that should have two strings each."""
    parts = [
        tensor(name, [1, 2], "BYTES", bytes_contents=[encoded(b"a")] * count)
        for name, count in zip(NAMES, counts, strict=True)
    ]
    return request("texts", *parts)


def _raw(*counts: int) -> dict[str, Any]:
    inputs = [tensor(name, [1, 2], "BYTES") for name in NAMES]
    return request("texts", *inputs, raw=[struct.pack("<I1s", 1, b"a") * count for count in counts])


def _link(value: int) -> dict[str, Any]:
    return request("optional_link", tensor("IN", [1, 1], "INT32", int_contents=[value]))


REQUESTS = {
    "strings right": _texts(2, 2, 2),
    "strings of all too few": _texts(1, 1, 1),
    "strings too few and too many": _texts(1, 3, 2),
    "raw strings too few": _raw(1, 1, 1),
    "raw strings too many and too few": _raw(3, 2, 1),
    "ensemble's step fails": text("failing_step", "HOW", "error"),
    "ensemble's step not found": text("failing_step", "HOW", "NOT_FOUND"),
    "ensemble's step raises": text("outer", "HOW", "raise"),
    "ensemble's output left out": _link(1),
    "ensemble's inputs left out": _link(2),
    "size and name": request("identity", tensor("NO", [1, 2], "FP32"), raw=[b"0123"]),
    "size and output": request("identity", tensor("INPUT0", [1, 2], "FP32"), raw=[b"0123"], outputs=[{"name": "NO"}]),
    "size and datatype": request("identity", tensor("INPUT0", [1, 2], "INT32"), raw=[b"0123"]),
    "size and unknown datatype": request("identity", tensor("INPUT0", [1, 2], "FP31"), raw=[b"0123"]),
    "size and shape": request("identity", tensor("INPUT0", [1, 2, 2], "FP32"), raw=[b"0123"]),
    "typed size and name": request("identity", tensor("NO", [1, 2], "FP32", fp32_contents=[1])),
    "typed size and shape": request("identity", tensor("INPUT0", [1, 2, 2], "FP32", fp32_contents=[1])),
    "typed size and datatype": request("identity", tensor("INPUT0", [1, 2], "INT32", int_contents=[1])),
    "typed sizes of two": request(
        "add_sub", *(tensor(f"INPUT{index}", [1, 16], "INT32", int_contents=[1]) for index in range(2))
    ),
}
