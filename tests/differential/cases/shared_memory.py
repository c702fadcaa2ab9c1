"""Steps with regions of shared memory, over HTTP and gRPC. Each case has the memory object KEY, and no region at first.

The object has two pages: INPUT0 and INPUT1 of add_sub (a row and ones) begin the first, two strings the second.
"""

import base64
import struct
from dataclasses import dataclass
from typing import Any

from tests.differential.cases.grpc_infer import request, tensor
from tests.differential.http_calls import Call, get, infer, post
from tests.differential.http_calls import tensor as http_tensor

NAME = "argosy-differential"
KEY = f"/{NAME}"
PAGE = 4096
ROW = struct.pack("<16i", *range(16))
ONES = struct.pack("<16i", *[1] * 16)
STRINGS = struct.pack("<I3sI", 3, b"\xffab", 0)
CONTENT = (ROW + ONES).ljust(PAGE, b"\0") + STRINGS.ljust(PAGE, b"\0")


@dataclass(frozen=True)
class Rpc:
    """A gRPC request, or the requests of one stream."""

    method: str
    requests: tuple[dict[str, Any], ...]


Step = Call | Rpc


@dataclass(frozen=True)
class SharedCase:
    """Steps in their order, after each other."""

    name: str
    steps: tuple[Step, ...]


def register(name: str = "r", key: Any = KEY, size: Any = 2 * PAGE, offset: Any = None) -> Call:
    """Return a registration over HTTP; None leaves a field out."""
    fields = {"key": key, "byte_size": size, "offset": offset}
    body = {field: value for field, value in fields.items() if value is not None}
    return post(f"/v2/systemsharedmemory/region/{name}/register", body)


def region(name: Any = "r", size: Any = 64, offset: Any = None) -> dict[str, Any]:
    """Return the parameters of a tensor over HTTP; None leaves one out."""
    parts = {"region": name, "byte_size": size, "offset": offset}
    return {f"shared_memory_{part}": value for part, value in parts.items() if value is not None}


def rpc(method: str, **fields: Any) -> Rpc:
    """Return one gRPC request."""
    return Rpc(method, (fields,))


def location(name: Any = "r", size: Any = 64, offset: Any = None) -> dict[str, Any]:
    """Return the parameters of a tensor over gRPC; None leaves one out."""
    parts = {"region": name, "byte_size": size, "offset": offset}
    kinds = {str: "string_param", int: "int64_param", bool: "bool_param"}
    return {f"shared_memory_{part}": {kinds[type(value)]: value} for part, value in parts.items() if value is not None}


def http_sum(
    first: dict[str, Any] | None = None, second: dict[str, Any] | None = None, *outputs: dict[str, Any], **rest: Any
) -> Call:
    """Return a request to add_sub whose inputs lie where these parameters say; the outputs are {name: parameters}."""
    locations = (region() if first is None else first, region(offset=64) if second is None else second)
    inputs = [http_tensor(f"INPUT{number}", [1, 16], "INT32", **where) for number, where in enumerate(locations)]
    if outputs:
        rest["outputs"] = list(outputs)
    return infer("add_sub", *inputs, **rest)


def output(number: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a requested output of add_sub."""
    return {"name": f"OUTPUT{number}", "parameters": parameters}


def grpc_sum(
    first: dict[str, Any] | None = None, second: dict[str, Any] | None = None, *outputs: dict[str, Any], **rest: Any
) -> dict[str, Any]:
    """Return the same as a ModelInferRequest."""
    locations = (location() if first is None else first, location(offset=64) if second is None else second)
    inputs = [
        {"name": f"INPUT{number}", "shape": [1, 16], "datatype": "INT32", "parameters": where}
        for number, where in enumerate(locations)
    ]
    if outputs:
        rest["outputs"] = list(outputs)
    return request("add_sub", *inputs, **rest)


def grpc_infer(*arguments: Any, **rest: Any) -> Rpc:
    """Return `grpc_sum` as a ModelInfer."""
    return Rpc("ModelInfer", (grpc_sum(*arguments, **rest),))


STATUS = get("/v2/systemsharedmemory/status")
UNREGISTER = post("/v2/systemsharedmemory/unregister")
_HANDLE = base64.b64encode(bytes(64)).decode()

_REGISTRATIONS: dict[str, tuple[Step, ...]] = {
    "register, status, unregister": (
        register("b", offset=PAGE, size=PAGE),
        register("a", key=NAME),
        STATUS,
        get("/v2/systemsharedmemory/region/b/status"),
        get("/v2/cudasharedmemory/region/b/status"),
        post("/v2/cudasharedmemory/region/b/unregister"),
        post("/v2/systemsharedmemory/region/b/unregister"),
        post("/v2/systemsharedmemory/region/b/unregister"),
        STATUS,
        UNREGISTER,
        STATUS,
    ),
    "register over gRPC": (
        rpc("SystemSharedMemoryRegister", name="b", key=KEY, byte_size=PAGE, offset=PAGE),
        rpc("SystemSharedMemoryStatus"),
        rpc("SystemSharedMemoryStatus", name="b"),
        rpc("SystemSharedMemoryStatus", name="a"),
        rpc("CudaSharedMemoryStatus", name="b"),
        rpc("SystemSharedMemoryRegister", name="b", key=KEY, byte_size=PAGE),
        rpc("SystemSharedMemoryUnregister", name="b"),
        rpc("SystemSharedMemoryStatus"),
    ),
    "register twice": (register(), register()),
    "register without a name": (post("/v2/systemsharedmemory/register", {"key": KEY, "byte_size": 8}),),
    "register without a body": (post("/v2/systemsharedmemory/region/r/register"),),
    "register no object": (post("/v2/systemsharedmemory/region/r/register", "[1]"),),
    "register malformed": (post("/v2/systemsharedmemory/region/r/register", '{"key" 1}'),),
    "register by GET": (get("/v2/systemsharedmemory/region/r/register"),),
    "register nothing over gRPC": (rpc("SystemSharedMemoryRegister"),),
    "register an empty name over gRPC": (
        rpc("SystemSharedMemoryRegister", key=KEY, byte_size=PAGE),
        rpc("SystemSharedMemoryStatus"),
    ),
    "register on a GPU": (
        post("/v2/cudasharedmemory/register", {}),
        post("/v2/cudasharedmemory/region/g/register", {}),
        post("/v2/cudasharedmemory/region/g/register", {"raw_handle": 1}),
        post("/v2/cudasharedmemory/region/g/register", {"raw_handle": {}}),
        post("/v2/cudasharedmemory/region/g/register", {"raw_handle": {"b64": _HANDLE}}),
        post("/v2/cudasharedmemory/region/g/register", {"raw_handle": {"b64": _HANDLE}, "byte_size": 8}),
        post("/v2/cudasharedmemory/region/g/register", {"raw_handle": {"b64": "AAAA"}, "byte_size": 8, "device_id": 0}),
        post(
            "/v2/cudasharedmemory/region/g/register", {"raw_handle": {"b64": _HANDLE}, "byte_size": 8, "device_id": 0}
        ),
        rpc("CudaSharedMemoryRegister", name="g", raw_handle=_HANDLE, byte_size=8),
        get("/v2/cudasharedmemory/status"),
    ),
    **{
        f"register {name}": (register(**fields),)
        for name, fields in {
            "a key that is a number": {"key": 1},
            "no key": {"key": None},
            "no size": {"size": None},
            "a negative size": {"size": -1},
            "a size that is a text": {"size": "8"},
            "a negative offset": {"offset": -1},
            "a size of 0": {"size": 0},
            "an offset within a page": {"size": 8, "offset": 8},
            "more than there is": {"size": 2 * PAGE + 1},
            "more than there is behind an offset": {"size": 2 * PAGE, "offset": PAGE},
            "an offset behind the end": {"size": PAGE, "offset": 2 * PAGE},
            "an overflow": {"size": 2**64 - PAGE, "offset": PAGE},
            "the largest size": {"size": 2**64 - 1},
            "a key of slashes": {"key": "///"},
            "an empty key": {"key": ""},
            "a key with a slash in it": {"key": "/a/b"},
            "a key with leading slashes": {"key": f"///{NAME}"},
            "a key of dots": {"key": "/.."},
            "a key that is a path": {"key": "../etc/passwd"},
            "an unknown key": {"key": "/argosy-no-such-object"},
            "a reserved key": {"key": "/triton_python_backend_shm_region_x"},
            "a long key": {"key": "x" * 300},
        }.items()
    },
}

# Under another key: Triton 2.51 takes a closed file for the second region of one.
_BOTH = (register(), register("s", key=NAME))
_CLASSES = {**region(), "classification": 1}
_INFERENCES: dict[str, tuple[Step, ...]] = {
    "inputs over HTTP": (*_BOTH, http_sum()),
    "outputs over HTTP": (
        *_BOTH,
        http_sum(None, None, output(0, region(offset=128)), output(1, region("s", offset=192))),
    ),
    "outputs in a larger location": (*_BOTH, http_sum(None, None, output(1, region("s", size=1000, offset=256)))),
    "outputs over HTTP, one of them binary": (
        *_BOTH,
        http_sum(None, None, output(0, region(offset=128)), output(1, {"binary_data": True}), id="i"),
    ),
    "inputs and data over HTTP": (
        register(),
        infer(
            "add_sub",
            http_tensor("INPUT0", [1, 16], "INT32", **region()),
            http_tensor("INPUT1", [1, 16], "INT32", list(range(16))),
        ),
    ),
    "inputs over gRPC": (*_BOTH, grpc_infer()),
    "outputs over gRPC": (
        *_BOTH,
        grpc_infer(None, None, output(0, location(offset=128)), output(1, location("s", offset=192)), id="i"),
    ),
    "inputs and data over gRPC": (
        register(),
        Rpc(
            "ModelInfer",
            (
                request(
                    "add_sub",
                    {"name": "INPUT0", "shape": [1, 16], "datatype": "INT32", "parameters": location()},
                    {"name": "INPUT1", "shape": [1, 16], "datatype": "INT32"},
                    raw=[ONES],
                ),
            ),
        ),
    ),
    "a stream": (
        *_BOTH,
        Rpc(
            "ModelStreamInfer",
            (grpc_sum(None, None, output(0, location(offset=128))), grpc_sum(location("none")), grpc_sum()),
        ),
    ),
    "a decoupled model": (
        *_BOTH,
        Rpc(
            "ModelStreamInfer",
            (
                request(
                    "repeat",
                    {"name": "IN", "shape": [3], "datatype": "INT32", "parameters": location(size=12)},
                    outputs=[{"name": "OUT", "parameters": location("s", 4, 512)}, {"name": "IDX"}],
                ),
            ),
        ),
    ),
    "strings over HTTP": (
        *_BOTH,
        infer(
            "bytes_identity",
            http_tensor("INPUT0", [1, 2], "BYTES", **region(size=len(STRINGS), offset=PAGE)),
            outputs=[{"name": "OUTPUT0", "parameters": region("s", 64, PAGE + 64)}],
        ),
    ),
    "strings over gRPC": (
        register(),
        Rpc(
            "ModelInfer",
            (
                request(
                    "bytes_identity",
                    {
                        "name": "INPUT0",
                        "shape": [1, 2],
                        "datatype": "BYTES",
                        "parameters": location("r", len(STRINGS), PAGE),
                    },
                    outputs=[{"name": "OUTPUT0", "parameters": location("r", 64, PAGE + 64)}],
                ),
            ),
        ),
    ),
    "an ensemble": (
        register(),
        infer(
            "diamond",
            http_tensor("IN", [1, 16], "INT32", **region()),
            outputs=[{"name": "SUM", "parameters": region(offset=256)}, {"name": "DIFFERENCE"}],
        ),
    ),
    "a model that calls others": (
        register(),
        infer(
            "bls",
            http_tensor("MODEL", [1], "BYTES", ["add_sub"]),
            http_tensor("INPUT0", [1, 16], "INT32", **region()),
            http_tensor("INPUT1", [1, 16], "INT32", **region(offset=64)),
            outputs=[{"name": "OUTPUT0", "parameters": region(offset=256)}, {"name": "OUTPUT1"}],
        ),
    ),
    "a region after it was unregistered": (register(), UNREGISTER, http_sum()),
    "an empty tensor": (register(), infer("every_type", http_tensor("IN_INT32", [0], "INT32", **region(size=0)))),
}

_REFUSED_OVER_HTTP: dict[str, Call] = {
    "an unknown region": http_sum(region("none")),
    "an unknown region for an output": http_sum(None, None, output(0, region("none"))),
    "too small": http_sum(region(size=32)),
    "too large": http_sum(region(size=128)),
    "without a size": http_sum(region(size=None)),
    "an offset without a region": http_sum({"shared_memory_offset": 0}),
    "an offset behind the end": http_sum(region(offset=2 * PAGE)),
    "an end behind the end": http_sum(region(offset=2 * PAGE - 63)),
    "an overflow": http_sum(region(size=2**64 - 1, offset=64)),
    "the largest size": http_sum(region(size=2**64 - 1)),
    "the largest offset": http_sum(region(offset=2**64 - 1)),
    "a negative offset": http_sum(region(offset=-1)),
    "a negative size": http_sum(region(size=-1)),
    "a size that is a text": http_sum(region(size="64")),
    "a region that is a number": http_sum(region(1)),
    "data too": infer("add_sub", http_tensor("INPUT0", [1, 16], "INT32", [1], **region())),
    "binary data too": http_sum({**region(), "binary_data_size": 64}),
    "an output too small": http_sum(None, None, output(0, region(offset=128, size=63))),
    "an output without a size": http_sum(None, None, output(0, region(size=None))),
    "an output behind the end": http_sum(None, None, output(0, region(offset=2 * PAGE - 63))),
    "an output with classes": http_sum(None, None, output(0, _CLASSES)),
    "an output that is binary": http_sum(None, None, output(0, {**region(), "binary_data": True})),
    "an output that is not binary": http_sum(None, None, output(0, {**region(offset=128), "binary_data": False})),
    "an output that is binary by a number": http_sum(None, None, output(0, {**region(), "binary_data": 1})),
    "strings cut short": infer("bytes_identity", http_tensor("INPUT0", [1, 2], "BYTES", **region(size=9, offset=PAGE))),
    "too few strings": infer("bytes_identity", http_tensor("INPUT0", [1, 2], "BYTES", **region(size=7, offset=PAGE))),
    "too many strings": infer("bytes_identity", http_tensor("INPUT0", [1, 2], "BYTES", **region(size=15, offset=PAGE))),
    "an unknown model": infer("nope", http_tensor("INPUT0", [1, 16], "INT32", **region("none"))),
}

_REFUSED_OVER_GRPC: dict[str, dict[str, Any]] = {
    "an unknown region": grpc_sum(location("none")),
    "an unknown region for an output": grpc_sum(None, None, output(0, location("none"))),
    "too small": grpc_sum(location(size=32)),
    "without a size": grpc_sum(location(size=None)),
    "an offset without a region": grpc_sum(location(None, None, 0)),
    "a size without a region": grpc_sum(location(None)),
    "an end behind the end": grpc_sum(location(offset=2 * PAGE - 63)),
    "a negative offset": grpc_sum(location(offset=-1)),
    "a negative size": grpc_sum(location(size=-1)),
    "a size that is a text": grpc_sum(location(size="64")),
    "an offset that is a text": grpc_sum(location(offset="0")),
    "a region that is a number": grpc_sum(location(1)),
    "contents too": request(
        "add_sub",
        tensor("INPUT0", [1, 16], "INT32", int_contents=[1] * 16) | {"parameters": location()},
        tensor("INPUT1", [1, 16], "INT32", int_contents=[1] * 16),
    ),
    "an output too small": grpc_sum(None, None, output(0, location(offset=128, size=63))),
    "an output without a size": grpc_sum(None, None, output(0, location(size=None))),
    "an output's size without a region": grpc_sum(None, None, output(0, location(None))),
    "an output with classes": grpc_sum(None, None, output(0, {**location(), "classification": {"int64_param": 1}})),
    "strings cut short": request(
        "bytes_identity",
        {"name": "INPUT0", "shape": [1, 2], "datatype": "BYTES", "parameters": location("r", 9, PAGE)},
    ),
}

CASES = [
    *(SharedCase(name, steps) for name, steps in {**_REGISTRATIONS, **_INFERENCES}.items()),
    *(SharedCase(f"refused over HTTP: {name}", (register(), step)) for name, step in _REFUSED_OVER_HTTP.items()),
    *(
        SharedCase(f"refused over gRPC: {name}", (register(), Rpc("ModelInfer", (fields,))))
        for name, fields in _REFUSED_OVER_GRPC.items()
    ),
]
