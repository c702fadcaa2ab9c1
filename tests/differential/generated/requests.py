"""Requests to the models in JSON, with binary tensors, over gRPC and of generate: right ones, and spoilt ones."""

import base64
import json
import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.differential.generated.models import MODELS, Input, Model
from tests.differential.grpc_cases import GrpcCase
from tests.differential.http_calls import Call, post
from tritonclient.utils import serialize_byte_tensor, triton_to_np_dtype

Json = Any
Draw = st.DrawFn
_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
_JUNK = st.sampled_from(
    (-1, 0, 1, 2**31, 2**63 - 1, 1.5, 1e300, "", "1", "x", True, False, [], [1], [[1, 2], [3]], {}, {"a": 1})
)
_WORDS = st.sampled_from(
    ("nope", "INPUT0", "IN", "OUTPUT0", "FP32", "INT32", "BYTES", "BF16", "UINT8", "1", "99", "-1")
)
_PARAMETERS = st.dictionaries(
    st.sampled_from(("a", "priority", "timeout", "binary_data_output", "sequence_start", "fwd-x")),
    st.one_of(
        st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.sampled_from(("", "x", 0.5, -2.0))
    ),
    max_size=2,
)


def values(datatype: str, count: int) -> st.SearchStrategy[list[Json]]:
    """Return lists of so many values of a datatype."""
    return st.lists(_value(datatype), min_size=count, max_size=count)


def _value(datatype: str) -> st.SearchStrategy[Json]:
    if datatype == "BOOL":
        return st.booleans()
    if datatype == "BYTES":
        return st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
    if datatype.startswith("FP"):
        # Triton's JSON parser is exact for few digits alone.
        return st.integers(-8000, 8000).map(lambda eighths: eighths / 8)
    limits = np.iinfo(triton_to_np_dtype(datatype))
    return st.one_of(
        st.integers(-3, 3).map(lambda number: max(number, int(limits.min))),
        st.integers(int(limits.min), int(limits.max)),
    )


@st.composite
def tensors(draw: Draw, model: Model, protocol: str) -> list[dict[str, Json]]:
    """Draw the inputs of a right request: `name`, `shape`, `datatype` and flat `data`."""
    batch = [draw(st.integers(1, 3))] if model.batched else []
    chosen = [declared for declared in model.inputs if not declared.optional or draw(st.booleans())]
    if not chosen:
        chosen = [draw(st.sampled_from(model.inputs))]
    return [
        draw(_tensor(declared, batch)) for declared in chosen if protocol != "json" or declared.datatype != "FP16"
    ] or [draw(_tensor(model.inputs[0], batch))]


@st.composite
def _tensor(draw: Draw, declared: Input, batch: list[int]) -> dict[str, Json]:
    shape = batch + [draw(st.integers(0 if len(batch) == 0 else 1, 3)) if size < 0 else size for size in declared.dims]
    # The model waits so long.
    data = [0] if declared.name == "DELAY_MS" else draw(values(declared.datatype, math.prod(shape)))
    return {"name": declared.name, "shape": shape, "datatype": declared.datatype, "data": data}


@st.composite
def documents(draw: Draw, model: Model, protocol: str) -> dict[str, Json]:
    """Draw a right request as the JSON of HTTP has it."""
    document: dict[str, Json] = {"inputs": draw(tensors(model, protocol))}
    if draw(st.booleans()):
        document["id"] = draw(st.sampled_from(("", "a", "request 1")))
    if draw(st.integers(0, 3)) == 0:
        names = draw(st.lists(st.sampled_from(model.outputs), max_size=2, unique=True))
        document["outputs"] = [_output(draw, name) for name in names]
    if model.sequence:
        document["parameters"] = {
            "sequence_id": draw(st.integers(10**6, 2**40)),
            "sequence_start": True,
            "sequence_end": True,
        }
    elif draw(st.integers(0, 3)) == 0:
        document["parameters"] = draw(_PARAMETERS)
    return document


def _output(draw: Draw, name: str) -> dict[str, Json]:
    chosen = draw(st.sampled_from(({}, {}, {"binary_data": False}, {"binary_data": True}, {"classification": 2})))
    # Classes of strings end Triton 2.51.
    if "classification" in chosen and name not in ("SCORES", "RANKS", "OUTPUT1", "SUM"):
        chosen = {}
    return {"name": name, "parameters": dict(chosen)} if chosen else {"name": name}


def _paths(document: Json, path: tuple[Json, ...] = ()) -> list[tuple[Json, ...]]:
    entries: Sequence[tuple[Json, Json]] = ()
    if isinstance(document, dict):
        entries = list(document.items())
    elif isinstance(document, list):
        entries = list(enumerate(document[:4]))
    below = [deeper for key, value in entries for deeper in _paths(value, (*path, key))]
    return [path, *below] if path else below


@st.composite
def spoilt(draw: Draw, document: dict[str, Json], times: int = 1) -> dict[str, Json]:
    """Draw the document with a value removed, doubled, added, or replaced."""
    document = deepcopy(document)
    for _ in range(times):
        paths = _paths(document)
        if not paths:
            break
        *parents, last = draw(st.sampled_from(paths))
        owner = document
        for key in parents:
            owner = owner[key]
        _spoil(draw, owner, last)
    return document


def _spoil(draw: Draw, owner: Json, key: Json) -> None:
    match draw(st.sampled_from(("remove", "double", "junk", "word", "change"))):
        case "remove":
            del owner[key]
        case "double" if isinstance(owner, list):
            owner.insert(key, deepcopy(owner[key]))
        case "double":
            owner["unknown"] = deepcopy(owner[key])
        case "word":
            owner[key] = draw(_WORDS)
        case "change" if isinstance(owner[key], int):
            owner[key] += draw(st.sampled_from((-1, 1)))
        case _:
            owner[key] = draw(_JUNK)


def _times(draw: Draw) -> int:
    return draw(st.sampled_from((0, 1, 1, 1, 2)))


@st.composite
def json_calls(draw: Draw) -> Call:
    """Draw an inference request whose tensors are in JSON."""
    model = draw(st.sampled_from(MODELS))
    document = draw(spoilt(draw(documents(model, "json")), _times(draw)))
    version = draw(st.sampled_from(("", "", "", "/versions/1", "/versions/2", "/versions/x")))
    return post(f"/v2/models/{model.name}{version}/infer", document)


def encoded(datatype: str, data: list[Json]) -> bytes:
    """Return the bytes of a tensor."""
    if datatype == "BYTES":
        strings = np.array([text.encode() for text in data], np.object_)
        return bytes(serialize_byte_tensor(strings).item()) if data else b""
    return bytes(np.array(data, triton_to_np_dtype(datatype)).tobytes())


@st.composite
def binary_calls(draw: Draw) -> Call:
    """Draw an inference request with binary tensors: the JSON, the bytes after it, or the header may be wrong."""
    model = draw(st.sampled_from(MODELS))
    document = draw(documents(model, "binary"))
    tail = b""
    for tensor in document["inputs"]:
        if tensor["datatype"] == "FP16" or draw(st.booleans()):
            content = encoded(tensor["datatype"], tensor.pop("data"))
            tensor["parameters"] = {"binary_data_size": len(content)}
            tail += content
    spoil = draw(st.sampled_from(("nothing", "document", "document", "bytes", "length")))
    if spoil == "document":
        document = draw(spoilt(document))
    head = json.dumps(document).encode()
    length = str(len(head))
    if spoil == "bytes":
        tail = draw(
            st.sampled_from((tail[:-1], tail[1:], tail + b"\0", tail + b"abcd", b"", tail[:4], b"\xff" * len(tail)))
        )
    if spoil == "length":
        length = draw(
            st.sampled_from((str(len(head) - 1), str(len(head) + 1), "0", "-1", "99999", "1", f" {len(head)}"))
        )
    return post(f"/v2/models/{model.name}/infer", head + tail, {"Inference-Header-Content-Length": length})


@st.composite
def generate_calls(draw: Draw) -> Call:
    """Draw a request of the generate extension."""
    model = draw(st.sampled_from([model for model in MODELS if not model.sequence]))
    document: dict[str, Json] = {}
    for tensor in draw(tensors(model, "json")):
        single = len(tensor["data"]) == 1
        document[tensor["name"]] = tensor["data"][0] if single and draw(st.booleans()) else tensor["data"]
    document |= draw(_PARAMETERS)
    if draw(st.integers(0, 3)) == 0:
        document["id"] = draw(st.sampled_from(("a", "", "b c")))
    if draw(st.integers(0, 3)) == 0:
        document["parameters"] = draw(_PARAMETERS)
    path = draw(st.sampled_from(("generate", "generate_stream")))
    return post(f"/v2/models/{model.name}/{path}", draw(spoilt(document, _times(draw))))


def _grpc_parameter(value: Json) -> dict[str, Json]:
    kind = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}[type(value)]
    return {kind: value}


def _grpc_parameters(owner: dict[str, Json]) -> None:
    if "parameters" in owner:
        owner["parameters"] = {key: _grpc_parameter(value) for key, value in owner["parameters"].items()}


@st.composite
def grpc_cases(draw: Draw) -> GrpcCase:
    """Draw a request of ModelInfer or of a stream, with raw or typed contents."""
    model = draw(st.sampled_from(MODELS))
    document = draw(documents(model, "grpc"))
    raw = draw(st.booleans())
    contents: list[str] = []
    for tensor in document["inputs"]:
        data = tensor.pop("data")
        if raw or tensor["datatype"] == "FP16":
            contents.append(base64.b64encode(encoded(tensor["datatype"], data)).decode())
        else:
            typed = (
                [base64.b64encode(text.encode()).decode() for text in data] if tensor["datatype"] == "BYTES" else data
            )
            tensor["contents"] = {_CONTENTS[tensor["datatype"]]: typed}
    for owner in (document, *document.get("outputs", ())):
        _grpc_parameters(owner)
    message = {"model_name": model.name, **document}
    if contents:
        message["raw_input_contents"] = contents
    message = draw(spoilt(message, _times(draw)))
    method = "ModelStreamInfer" if model.decoupled or draw(st.integers(0, 4)) == 0 else "ModelInfer"
    return GrpcCase("generated", method, [message])
