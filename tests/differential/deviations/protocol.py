"""Answers of Argosy that differ from Triton's on purpose: headers and forms of bodies."""

from typing import Any

from tests.differential.deviations.case import Deviation

_NEWER = "rules of later releases"
_RESERVED = "Header '{}' is reserved for Triton usage and cannot be forwarded."
_TWO = {"name": "OUTPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}
_IDENTITY = {"model_name": "identity", "model_version": "1", "outputs": [_TWO]}
_FACTS = (
    '{"correlation_id": 0, "flags": 0, "inputs": ["IN"], "outputs": ["PARAMETERS", "REQUEST"], '
    '"request_id": "", "timeout": 0}'
)


def _error(message: str, status: int = 400) -> list[Any]:
    return [{"status": status, "type": "<error>", "body": {"error": message}}]


def _answered(body: Any) -> list[Any]:
    return [{"status": 200, "type": "application/json", "body": body}]


def _rpc(message: str) -> dict[str, Any]:
    return {"code": "INVALID_ARGUMENT", "details": message, "messages": []}


def _text(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "datatype": "BYTES", "shape": [1], "data": [value]}


def _twice(output: str, request: str = "<id_unknown>") -> str:
    return f"[request id: {request}] output '{output}' already exists in request"


_LENGTH = "Unable to parse Inference-Header-Content-Length, got: "
_DEPTH = "JSON nesting depth exceeds maximum allowed limit (100)"
_SHAPE = "invalid shape for input 'INPUT0': shape "
_MOST = 2**63 - 1
_READY = "Invalid value for 'ready': expected a boolean"
_CHUNKS = "a length with chunks"
_EMPTY = "a header without a value"

PROTOCOL: dict[tuple[str, str], Deviation] = {
    ("http_infer", "infer an output twice"): Deviation(_NEWER, _error(_twice("OUTPUT0"))),
    ("grpc", "infer output twice"): Deviation(_NEWER, _rpc(_twice("OUTPUT0"))),
    ("http_errors", "wrong data too short"): Deviation(
        _NEWER,
        _error("Failed to parse 'data' field: shape does not match true shape", 500),
    ),
    ("grpc", "forwarded reserved metadata"): Deviation(_NEWER, _rpc(_RESERVED.format("priority"))),
    ("grpc", "forwarded triton metadata"): Deviation(_NEWER, _rpc(_RESERVED.format("triton_fwd_x"))),
    ("grpc", "stream with reserved metadata"): Deviation(
        _NEWER,
        {
            "code": "OK",
            "details": "",
            "messages": [{"error_message": _RESERVED.format("triton_fwd_x"), "infer_response": {"id": "a"}}],
        },
    ),
    ("http_protocol", "protocol forwarded reserved header"): Deviation(_NEWER, _error(_RESERVED.format("priority"))),
    ("http_protocol", "protocol forwarded triton header"): Deviation(_NEWER, _error(_RESERVED.format("triton_fwd_x"))),
    ("http_protocol", "protocol forwarded header, empty"): Deviation(
        _EMPTY,
        _answered(
            {
                "model_name": "parameters",
                "model_version": "1",
                "outputs": [_text("PARAMETERS", '{"fwd-a": ""}'), _text("REQUEST", _FACTS)],
            }
        ),
    ),
    ("http_protocol", "protocol encoding empty"): Deviation(_EMPTY, _answered(_IDENTITY)),
    ("http_protocol", "protocol chunks"): Deviation(_CHUNKS, _answered(_IDENTITY)),
    ("http_protocol", "protocol three chunks"): Deviation(_CHUNKS, _answered(_IDENTITY)),
    ("http_protocol", "protocol header length no number"): Deviation(_NEWER, _error(f"{_LENGTH}abc")),
    ("http_protocol", "protocol header length empty"): Deviation(_NEWER, _error(_LENGTH)),
    ("http_protocol", "protocol nesting of 100"): Deviation(_NEWER, _error(f"Unable to parse 'data': {_DEPTH}")),
    ("http_protocol", "protocol nesting of 120, strings"): Deviation(_NEWER, _error(_DEPTH)),
    ("http_protocol", "protocol elements beyond int64"): Deviation(
        _NEWER,
        _error(f"{_SHAPE}[16,{2**60 + 2}] causes total element count to exceed maximum size of {_MOST}"),
    ),
    ("http_protocol", "protocol bytes beyond int64"): Deviation(
        _NEWER,
        _error(
            f"byte size overflow for input 'INPUT0': element count ({4 * (2**60 + 2)}) * data type size (4) exceeds "
            f"maximum allowed size ({_MOST})"
        ),
    ),
    ("http_protocol", "protocol dimension beyond int64"): Deviation(
        _NEWER,
        _error(f"{_SHAPE}[1,{2**63}] contains one or more invalid dimensions"),
    ),
    ("http_protocol", "protocol index ready number"): Deviation(_NEWER, _error(_READY)),
    ("http_protocol", "protocol index ready text"): Deviation(_NEWER, _error(_READY)),
    ("http_protocol", "protocol output twice of three"): Deviation(_NEWER, _error(_twice("OUTPUT1"))),
    ("http_protocol", "protocol output twice with an id"): Deviation(_NEWER, _error(_twice("OUTPUT0", "me"))),
    ("http_protocol", "protocol generate the same parameter twice"): Deviation(
        "equal keys of generate",
        _answered({"length": 2, "model_name": "text", "model_version": "1", "text_output": "a?"}),
    ),
}
