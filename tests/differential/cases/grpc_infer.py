"""ModelInfer requests, right and wrong, as JSON values of their messages."""

import base64
import struct
from typing import Any

FLOATS = struct.pack("<2f", 1, 2)


def encoded(value: bytes) -> str:
    """Return bytes as protobuf's JSON form writes them."""
    return base64.b64encode(value).decode()


def tensor(
    name: str = "INPUT0", shape: list[int] | None = None, datatype: str = "FP32", **contents: list[Any]
) -> dict[str, Any]:
    """Return an input with typed contents, or with none."""
    message: dict[str, Any] = {"name": name, "shape": shape or [1, 2], "datatype": datatype}
    if contents:
        message["contents"] = contents
    return message


def request(model: str, *inputs: dict[str, Any], raw: list[bytes] | None = None, **rest: Any) -> dict[str, Any]:
    """Return a ModelInferRequest."""
    message = {"model_name": model, "inputs": list(inputs), **rest}
    if raw is not None:
        message["raw_input_contents"] = [encoded(content) for content in raw]
    return message


def text(model: str, name: str, value: str, **rest: Any) -> dict[str, Any]:
    """Return a request with one string."""
    content = [encoded(value.encode())]
    return request(model, tensor(name, [1], "BYTES", bytes_contents=content), **rest)


def _row(**changed: Any) -> dict[str, Any]:
    return tensor(**{"fp32_contents": [1, 2], **changed})


def _bare(**changed: Any) -> dict[str, Any]:
    return tensor(**changed)


def _parameters(**parameters: Any) -> dict[str, Any]:
    return request("parameters", tensor("IN", [1], fp32_contents=[1]), parameters=parameters)


def _classify(value: dict[str, Any]) -> dict[str, Any]:
    scores = tensor("IN", [1, 4], fp32_contents=[0.1, 0.9, 0.5, 0.2])
    outputs = [{"name": "SCORES", "parameters": {"classification": value}}]
    return request("classifier", scores, outputs=outputs)


_INTEGERS = {"INT8": [1, -1], "INT16": [1, -300], "INT32": [1, -70000]}
_UNSIGNED = {"UINT8": [1, 255], "UINT16": [1, 65535], "UINT32": [1, 2**32 - 1]}


def _typed(datatype: str, **contents: list[Any]) -> dict[str, Any]:
    return request("every_type", tensor(f"IN_{datatype}", [2], datatype, **contents))


_CODES = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED")

REQUESTS: dict[str, dict[str, Any]] = {
    "contents": request("identity", _row()),
    "id": request("identity", _row(), id="x"),
    "raw": request("identity", _bare(), raw=[FLOATS]),
    "version": request("versioned", tensor("IN", [1], fp32_contents=[1]), model_version="1"),
    "output twice": request("identity", _row(), outputs=[{"name": "OUTPUT0"}] * 2),
    "chain": request("chain", _row()),
    "diamond": request("diamond", tensor("IN", [1, 16], "INT32", int_contents=list(range(16)))),
    **{name: _typed(name, int_contents=values) for name, values in _INTEGERS.items()},
    **{name: _typed(name, uint_contents=values) for name, values in _UNSIGNED.items()},
    "INT64": _typed("INT64", int64_contents=[1, -(2**63)]),
    "UINT64": _typed("UINT64", uint64_contents=[1, 2**64 - 1]),
    "BOOL": _typed("BOOL", bool_contents=[True, False]),
    "FP64": _typed("FP64", fp64_contents=[0.1, 1e300]),
    "FP16": request("every_type", tensor("IN_FP16", [2], "FP16"), raw=[struct.pack("<2e", 1, -2)]),
    "BYTES": request("bytes_identity", tensor(datatype="BYTES", bytes_contents=[encoded(b"\xff\x00"), encoded(b"")])),
    "raw and contents": request("identity", _row(), raw=[FLOATS]),
    "no data": request("identity", _bare()),
    "raw too short": request("identity", _bare(), raw=[FLOATS[:4]]),
    "raw too long": request("identity", _bare(), raw=[FLOATS + FLOATS]),
    "contents too short": request("identity", _row(fp32_contents=[1])),
    "contents too long": request("identity", _row(fp32_contents=[1, 2, 3])),
    "contents of another field": request("identity", _bare(int_contents=[1, 2])),
    "contents for FP16": _typed("FP16", fp32_contents=[1, 2]),
    "shape": request("identity", _row(shape=[2])),
    "batch": request("identity", _row(shape=[65, 1], fp32_contents=[0] * 65)),
    "datatype": request("identity", tensor(datatype="INT32", int_contents=[1, 2])),
    "name": request("identity", _row(name="X")),
    "input twice": request("identity", _row(), _row()),
    "no input": request("identity"),
    "unknown model": request("nope", _row()),
    "nameless model": request("", _row()),
    "unknown version": request("identity", _row(), model_version="2"),
    "version word": request("identity", _row(), model_version="x"),
    "output unknown": request("identity", _row(), outputs=[{"name": "X"}]),
    "decoupled": text("words", "text_input", "a"),
    "classify": _classify({"int64_param": "2"}),
    "classify text": _classify({"string_param": "2"}),
    "parameters": _parameters(
        a={"int64_param": "1"}, b={"string_param": "s"}, c={"bool_param": True}, d={"double_param": 1.5}
    ),
    "parameters uint64": _parameters(e={"uint64_param": "7"}),
    "parameters triton_": _parameters(triton_x={"int64_param": "1"}),
    "parameters reserved": _parameters(
        sequence_id={"int64_param": "1"},
        sequence_start={"bool_param": True},
        priority={"uint64_param": "1"},
        timeout={"int64_param": "5000000"},
    ),
    "parameters sequence_id boolean": _parameters(sequence_id={"bool_param": True}),
    "parameters sequence_start number": _parameters(sequence_start={"int64_param": "1"}),
    "parameters priority text": _parameters(priority={"string_param": "x"}),
    "parameters timeout text": _parameters(timeout={"string_param": "x"}),
    "parameters final response": _parameters(triton_enable_empty_final_response={"bool_param": True}),
    "model raises": text("failing", "HOW", "raise"),
    **{f"model fails {how}": text("failing", "HOW", how) for how in ("error", *_CODES, "ALREADY_EXISTS", "CANCELLED")},
}
