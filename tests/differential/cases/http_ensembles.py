"""Ensembles whose steps fail, or leave out what later steps take."""

from typing import Any

from tests.differential.http_calls import Call, Case, get, infer, post, tensor


def _int(name: str, value: int) -> dict[str, Any]:
    return tensor(name, [1, 1], "INT32", [value])


def _how(model: str, how: str) -> Call:
    return infer(model, tensor("HOW", [1], "BYTES", [how]))


def _link(value: int, *outputs: str) -> Call:
    rest = {"outputs": [{"name": name} for name in outputs]} if outputs else {}
    return infer("optional_link", _int("IN", value), **rest)


CALLS = {
    "step answers": _how("failing_step", "ok"),
    "step raises": _how("failing_step", "raise"),
    "step error": _how("failing_step", "error"),
    "step not found": _how("failing_step", "NOT_FOUND"),
    "step unavailable": _how("failing_step", "UNAVAILABLE"),
    "step of a step invalid": _how("outer", "INVALID_ARG"),
    "step of a step answers": _how("outer", "ok"),
    "all outputs": _link(3),
    "first output left out": _link(2),
    "second output left out": _link(1),
    "both outputs left out": _link(0),
    "left out and requested": _link(1, "EVEN"),
    "left out, other requested": _link(1, "GOT"),
    "optional input given": infer("optional_edge", _int("IN", 3), _int("MORE", 7)),
    "optional input left out": infer("optional_edge", _int("IN", 3)),
    "optional input and output left out": infer("optional_edge", _int("IN", 0)),
    "required input given": infer("required_link", _int("IN", 3)),
    "required input left out": infer("required_link", _int("IN", 2)),
    "generate": post("/v2/models/optional_link/generate", {"IN": 1}),
    "generate fails": post("/v2/models/failing_step/generate", {"HOW": "error"}),
    "configuration with optional inputs": get("/v2/models/optional_edge/config"),
}
CASES = [Case(f"ensemble {name}", (call,)) for name, call in CALLS.items()]
