"""Metadata of calls: what of it becomes parameters."""

from typing import Any

from tests.differential.cases.grpc_infer import request, tensor


def _call(**rest: Any) -> dict[str, Any]:
    return request("parameters", tensor("IN", [1], fp32_contents=[1]), **rest)


CALLS: list[tuple[str, str, list[dict[str, Any]], dict[str, str]]] = [
    ("forwarded metadata", "ModelInfer", [_call()], {"fwd-a": "1", "other": "2"}),
    ("forwarded metadata, binary", "ModelInfer", [_call()], {"fwd-a-bin": "abc"}),
    (
        "forwarded metadata and parameters",
        "ModelInfer",
        [_call(parameters={"fwd-a": {"int64_param": 5}, "b": {"bool_param": True}})],
        {"fwd-a": "1"},
    ),
    ("forwarded reserved metadata", "ModelInfer", [_call()], {"priority": "1"}),
    ("forwarded triton metadata", "ModelInfer", [_call()], {"triton_fwd_x": "1"}),
    ("stream with forwarded metadata", "ModelStreamInfer", [_call(id="a"), _call(id="b")], {"fwd-a": "1"}),
    ("stream with reserved metadata", "ModelStreamInfer", [_call(id="a")], {"triton_fwd_x": "1"}),
]
