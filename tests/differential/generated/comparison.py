"""Which generated requests the real Triton is not asked, and which answers to them may differ, each with the reason."""

import json
import math
import re
from typing import Any

from tests.differential.grpc_cases import GrpcCase
from tests.differential.http_calls import Call

Json = Any
_LARGE = 2**31
_DEVIATING = re.compile(
    r"already exists in request|causes total element count|byte size overflow|invalid dimensions"
    r"|invalid shape for input|is reserved for Triton|Failed to parse 'data' field|control 'CORRID' data-type"
    r"|batch-size must be >= 1|Unable to parse Inference-Header-Content-Length|but missing required input"
    # A byte of zero ends JSON for Triton.
    r"|must not be followed by other values"
)


def ends_triton(request: Call | GrpcCase) -> bool:
    """Return whether Triton 2.51 may end on a request, or write beyond its memory.

    It does where JSON has more elements than the shape of an input, where sizes overflow, and for an input of generate
    without elements.
    """
    if isinstance(request, GrpcCase):
        return any(_is_large(entry.get("shape")) for entry in _entries(request.requests[0], "inputs"))
    document = _document(request)
    if document is None:
        return False
    if "/generate" in request.path:
        return any(value == [] or _is_large([value]) for value in document.values())
    return any(_overflows(entry) for entry in _entries(document, "inputs"))


def deviation(request: Call | GrpcCase, triton: Json, argosy: Json) -> bool:
    """Return whether two different answers are a listed deviation. All of them are refusals by Argosy."""
    refusal = _refusal(argosy)
    if _DEVIATING.search(refusal):
        return True
    if not refusal or not _refusal(triton):
        return False
    # Parsers describe faults by their own words, and a map of protobuf has no order.
    alike = ("failed to parse the request JSON buffer", "invalid value")
    return _status(triton) == _status(argosy) and any(text in refusal and text in _refusal(triton) for text in alike)


def _status(answer: Json) -> Json:
    return answer.get("status", answer.get("code"))


def comparable(answer: Json) -> Json:
    """Return an answer with the outputs of `every_type` sorted: the model answers in the order of its inputs, which in
    Triton is that of a map.
    """
    if isinstance(answer, list):
        return [comparable(value) for value in answer]
    if not isinstance(answer, dict):
        return answer
    result = {key: comparable(value) for key, value in answer.items()}
    if result.get("model_name") == "every_type" and "outputs" in result:
        raw = result.pop("raw_output_contents", [])
        outputs = result["outputs"]
        paired = sorted(zip(outputs, raw or [""] * len(outputs), strict=False), key=lambda pair: str(pair[0]["name"]))
        result["outputs"] = [list(pair) for pair in paired]
    return result


def _refusal(answer: Json) -> str:
    if "details" in answer:
        errors = [message.get("error_message", "") for message in answer["messages"]]
        return str(answer["details"] or "".join(errors))
    body = answer["body"]
    return str(body["error"]) if isinstance(body, dict) and "error" in body else ""


def _document(call: Call) -> dict[str, Json] | None:
    try:
        document, _ = json.JSONDecoder().raw_decode(call.body.decode("utf-8", "replace"))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _entries(document: Json, key: str) -> list[dict[str, Json]]:
    entries = document.get(key)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _is_large(shape: Json) -> bool:
    numbers = [size for size in shape if isinstance(size, int | float)] if isinstance(shape, list) else []
    return any(abs(size) >= _LARGE for size in numbers)


def _overflows(entry: dict[str, Json]) -> bool:
    shape, data = entry.get("shape"), entry.get("data")
    if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
        return False
    if _is_large(shape):
        return True
    return isinstance(data, list) and (_elements(data) > math.prod(shape) or 0 in shape)


def _elements(data: list[Json]) -> int:
    return sum(_elements(value) if isinstance(value, list) else 1 for value in data)
