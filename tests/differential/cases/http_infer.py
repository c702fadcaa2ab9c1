"""Inference in JSON that succeeds, and what models say."""

from typing import Any

from tests.differential.http_calls import Call, Case, infer, post, tensor

RAMP = list(range(16))
ONES = [1] * 16

VALUES = {
    "BOOL": [True, False],
    "UINT8": [0, 255],
    "UINT16": [0, 65535],
    "UINT32": [0, 2**32 - 1],
    "UINT64": [0, 2**64 - 1],
    "INT8": [-128, 127],
    "INT16": [-5, 5],
    "INT32": [-(2**31), 2**31 - 1],
    "INT64": [-(2**63), 2**63 - 1],
    "FP16": [1, 2],
    "FP32": [0.1, 1e-30],
    "FP64": [0.1, 1e300],
    "BYTES": ["a", ""],
}


def floats(shape: list[int], data: list[Any], name: str = "INPUT0") -> dict[str, Any]:
    """Return an FP32 input."""
    return tensor(name, shape, "FP32", data)


def pair() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both inputs of add_sub."""
    return tensor("INPUT0", [1, 16], "INT32", RAMP), tensor("INPUT1", [1, 16], "INT32", ONES)


def _typed(datatype: str) -> Call:
    name = "IN_STRING" if datatype == "BYTES" else f"IN_{datatype}"
    return infer("every_type", tensor(name, [2], datatype, VALUES[datatype]))


def _classify(count: Any, output: str = "SCORES", scores: list[float] | None = None, **more: Any) -> Call:
    data = scores or [0.1, 0.9, 0.5, 0.2]
    outputs = [{"name": output, "parameters": {"classification": count, **more}}]
    return infer("classifier", floats([len(data) // 4, 4], data, "IN"), outputs=outputs)


def _parameters(parameters: Any = None, **rest: Any) -> Call:
    if parameters is not None:
        rest["parameters"] = parameters
    return infer("parameters", floats([1], [1], "IN"), **rest)


def _sequence(value: int, **parameters: Any) -> Call:
    return infer("sequence_sum", tensor("IN", [1, 1], "INT32", [value]), parameters=parameters)


def _bls(model: str) -> Call:
    return infer("bls", tensor("MODEL", [1], "BYTES", [model]), *pair())


def _fail(how: str) -> Call:
    return infer("failing", tensor("HOW", [1], "BYTES", [how]))


SPECIAL = '{"inputs":[{"name":"IN_FP32","shape":[3],"datatype":"FP32","data":[NaN,Infinity,-Infinity]}]}'
CODES = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED")
WAYS = ("ok", "raise", "silent", "error", "short", "type", *CODES, "ALREADY_EXISTS", "CANCELLED")
PARAMETERS: dict[str, Any] = {"a": 1, "b": "s", "c": True, "d": 1.5, "e": -3}
RESERVED = {"sequence_id": 5, "sequence_start": True, "priority": 3, "timeout": 1000000}

SINGLE = {
    "one row": infer("identity", floats([1, 4], [1, 2, 3, 4])),
    "with an id": infer("identity", floats([1, 4], [1, 2, 3, 4]), id="abc"),
    "nested data": infer("identity", floats([2, 2], [[1, 2], [3, 4]])),
    "nested otherwise": infer("identity", floats([1, 4], [[1, 2], [3, 4]])),
    "no element": infer("identity", floats([1, 0], [])),
    "version 1": infer("versioned/versions/1", floats([1], [1], "IN")),
    "latest version": infer("versioned", floats([1], [1], "IN")),
    "two outputs": infer("add_sub", *pair()),
    "one output": infer("add_sub", *reversed(pair()), outputs=[{"name": "OUTPUT1"}]),
    "an output twice": infer("identity", floats([1, 1], [1]), outputs=[{"name": "OUTPUT0"}] * 2),
    "no output named": infer("identity", floats([1, 1], [1]), outputs=[]),
    "bytes": infer("bytes_identity", tensor("INPUT0", [1, 3], "BYTES", ["a", 'é\u0001"', ""])),
    "floats' digits": infer("every_type", floats([4], [1e20, 1234567.875, 3e-5, 1e6], "IN_FP32")),
    "float overflow": infer("every_type", floats([1], [1e39], "IN_FP32")),
    "no input": infer("every_type"),
    "NaN and infinities": post("/v2/models/every_type/infer", SPECIAL),
    "without batching": infer(
        "unbatched",
        tensor("MATRIX", [2, 3], "FP32", [1, 2, 3, 4, 5, 6]),
        tensor("FACTOR", [1], "FP64", [2]),
    ),
    "reshaped": infer("reshaped", floats([2, 1], [1, 2], "IN")),
    "optional input absent": infer("autoconf", floats([1, 4], [1, 2, 3, 4], "IN")),
    "optional input": infer("autoconf", floats([1, 4], [1, 2, 3, 4], "IN"), floats([1, 1], [10], "BIAS")),
    "warmed up": infer("warmup", floats([1, 2], [-1, -1], "IN")),
    "chain": infer("chain", floats([2, 2], [1, 2, 3, 4]), id="e1"),
    "diamond": infer("diamond", tensor("IN", [1, 16], "INT32", RAMP)),
    "diamond one output": infer("diamond", tensor("IN", [1, 16], "INT32", RAMP), outputs=[{"name": "SUM"}]),
    "bls": _bls("add_sub"),
    "bls unknown model": _bls("nope"),
    "bls wrong outputs": _bls("identity"),
    "bls decoupled model": _bls("repeat"),
    "classify 0": _classify(0),
    "classify 1": _classify(1),
    "classify 2": _classify(2),
    "classify all": _classify(4),
    "classify more than all": _classify(9),
    "classify two rows": _classify(2, scores=[0.1, 0.9, 0.5, 0.2, 0.4, 0.3, 0.2, 0.1]),
    "classify ties": _classify(3, scores=[0.5, 0.5, 0.5, 0.5]),
    "classify integers": _classify(2, "RANKS"),
    "classify binary": _classify(2, binary_data=True),
    "classify -1": _classify(-1),
    "classify text": _classify("2"),
    "parameters none": _parameters(),
    "parameters of every type": _parameters(PARAMETERS),
    "parameters reserved": _parameters(RESERVED),
    "parameters sequence text": _parameters({"sequence_id": "five"}),
    "parameters id and outputs": _parameters(id="me", outputs=[{"name": "REQUEST"}]),
    "parameters headers": _parameters({"headers": "x"}),
    "parameters beyond int64": _parameters({"big": 2**63}),
    "parameters list": _parameters({"a": [1]}),
    "parameters null": _parameters({"a": None}),
    "parameters object": _parameters({"a": {}}),
    "parameters triton_": _parameters({"triton_x": 1}),
    "parameters priority text": _parameters({"priority": "x"}),
    "parameters timeout negative": _parameters({"timeout": -1}),
    "parameters sequence_start number": _parameters({"sequence_start": 5}),
    "parameters no object": _parameters(5),
}

SEQUENCE = (
    _sequence(1, sequence_id=7),
    _sequence(1, sequence_id=7, sequence_start=True),
    _sequence(10, sequence_id=8, sequence_start=True),
    _sequence(2, sequence_id=7),
    _sequence(3, sequence_id=7, sequence_end=True),
    _sequence(4, sequence_id=7),
    _sequence(5, sequence_id=8, sequence_end=True),
)

CASES = [
    *(Case(f"infer {name}", (call,)) for name, call in SINGLE.items()),
    *(Case(f"infer {datatype}", (_typed(datatype),)) for datatype in VALUES),
    *(Case(f"model fails: {how}", (_fail(how),)) for how in WAYS),
    Case("sequence", SEQUENCE),
    Case("sequence without id", (_sequence(1), _sequence(1, sequence_id=0, sequence_start=True))),
    Case("sequence of one, text id", (_sequence(5, sequence_id="abc", sequence_start=True, sequence_end=True),)),
    Case("sequence negative id", (_sequence(1, sequence_id=-4, sequence_start=True),)),
    Case(
        "sequence batch of two",
        (
            infer(
                "sequence_sum",
                tensor("IN", [2, 1], "INT32", [1, 2]),
                parameters={"sequence_id": 9, "sequence_start": True},
            ),
        ),
    ),
]
