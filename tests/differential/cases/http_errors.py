"""Inference requests that are wrong."""

from typing import Any

from tests.differential.http_calls import Call, Case, infer, post, tensor

IDENTITY = "/v2/models/identity/infer"


def _row(**changed: Any) -> dict[str, Any]:
    return {"name": "INPUT0", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4], **changed}


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in _row().items() if name != key}


def _one(**changed: Any) -> Call:
    return infer("identity", _row(**changed))


def _add(*shapes: list[int]) -> Call:
    names = ("INPUT0", "INPUT1")
    return infer(
        "add_sub",
        *(
            tensor(name, shape, "INT32", [0] * (shape[0] * shape[1]))
            for name, shape in zip(names, shapes, strict=False)
        ),
    )


OFFSET, SIZE = "shared_memory_offset", "shared_memory_byte_size"


def _output(**parameters: Any) -> Call:
    return infer("identity", _row(), outputs=[{"name": "OUTPUT0", "parameters": parameters}])


WRONG = {
    "offset text, without a region": _one(parameters={OFFSET: "x"}),
    "size negative, without a region": _one(parameters={SIZE: -1}),
    "output offset null, without a region": _output(**{OFFSET: None}),
    "output size boolean, without a region": _output(**{SIZE: True}),
    "comma before the end of an object": post(IDENTITY, '{"inputs": [] , }'),
    "comma before the end of an array": post(IDENTITY, '{"inputs": [1,]}'),
    "unknown escape": post(IDENTITY, '{"inputs": "\\x"}'),
    "half a surrogate pair": post(IDENTITY, '{"inputs": "\\ud800"}'),
    "control character": post(IDENTITY, '{"inputs": "\x01"}'),
    "no digit after the point": post(IDENTITY, '{"inputs": 1.}'),
    "no digit after the exponent": post(IDENTITY, '{"inputs": 1e}'),
    "rank too low": _one(shape=[4]),
    "rank too low, with an id": infer("identity", _row(shape=[4]), id="abc"),
    "rank too high": _one(shape=[1, 2, 2]),
    "batch too large": _one(shape=[65, 1], data=[0] * 65),
    "batch of none": _one(shape=[0, 4], data=[]),
    "negative dimension": _one(shape=[1, -1]),
    "fractional dimension": _one(shape=[1.5, 4]),
    "shape is text": _one(shape="x"),
    "datatype": _one(datatype="INT32", data=[1, 2, 3, 4]),
    "datatype unknown": _one(datatype="WHAT"),
    "datatype number": _one(datatype=5),
    "datatype FP16": infer("every_type", tensor("IN_FP16", [1], "FP16", [1])),
    "name": _one(name="NOPE"),
    "input twice": infer("identity", _row(), _row()),
    "input too many": infer("identity", _row(), _row(name="X")),
    "input none": infer("identity"),
    "input missing": _add([1, 16]),
    "input missing, optional known": infer("text"),
    "batches differ": _add([1, 16], [2, 16]),
    "fixed dimension": _add([1, 16], [1, 15]),
    "batch too large for two": _add([9, 16], [9, 16]),
    "fixed shape": infer(
        "unbatched",
        tensor("MATRIX", [3, 2], "FP32", [1, 2, 3, 4, 5, 6]),
        tensor("FACTOR", [1], "FP64", [2]),
    ),
    "data too short": _one(data=[1, 2, 3]),
    "data too long": _one(data=[1, 2, 3, 4, 5]),
    "data no list": _one(data=1),
    "data text": _one(data=["a", 2, 3, 4]),
    "data boolean": _one(data=[True, 2, 3, 4]),
    "data null": _one(data=[None, 2, 3, 4]),
    "data fraction for integer": infer("every_type", tensor("IN_INT32", [1], "INT32", [1.5])),
    "data negative for unsigned": infer("every_type", tensor("IN_UINT64", [1], "UINT64", [-1])),
    "data number for boolean": infer("every_type", tensor("IN_BOOL", [1], "BOOL", [1])),
    "data number for bytes": infer("bytes_identity", tensor("INPUT0", [1, 1], "BYTES", [5])),
    "data too few bytes": infer("bytes_identity", tensor("INPUT0", [1, 2], "BYTES", ["a"])),
    "output unknown": infer("identity", _row(), outputs=[{"name": "NOPE"}]),
    "output internal": infer("diamond", tensor("IN", [1, 16], "INT32", [0] * 16), outputs=[{"name": "left"}]),
    "output nameless": infer("identity", _row(), outputs=[{}]),
    "outputs no list": infer("identity", _row(), outputs=5),
    "id number": infer("identity", _row(), id=7),
    "parameters no object": infer("identity", _row(), parameters=5),
    "no data": infer("identity", _without("data")),
    "no shape": infer("identity", _without("shape")),
    "no datatype": infer("identity", _without("datatype")),
    "no name": infer("identity", _without("name")),
    "input number": post(IDENTITY, {"inputs": [5]}),
    "inputs number": post(IDENTITY, {"inputs": 5}),
    "empty object": post(IDENTITY, {}),
    "list": post(IDENTITY, []),
    "number": post(IDENTITY, "5"),
    "malformed": post(IDENTITY, "{bad"),
    "cut off": post(IDENTITY, '{"inputs":[{"name":"INPUT0"'),
    "unknown model": infer("nope", _row()),
    "unknown version": infer("versioned/versions/2", tensor("IN", [1], "FP32", [1])),
    "decoupled model": infer("repeat", tensor("IN", [2], "INT32", [1, 2])),
    "ensemble rank": infer("chain", _row(shape=[4])),
    "ensemble datatype": infer("chain", _row(datatype="INT32")),
    "optional given, required missing": infer("autoconf", tensor("BIAS", [1, 1], "FP32", [1])),
    "unknown content encoding": post(IDENTITY, {"inputs": [_row()]}, {"Content-Encoding": "br"}),
}

CASES = [Case(f"wrong {name}", (call,)) for name, call in WRONG.items()]
