"""ModelStreamInfer: (name, requests, metadata).

A model that fails on a stream with `triton_grpc_error` is not among them: Triton 2.51 dies of it.
"""

from typing import Any

from tests.differential.cases.grpc_infer import request, tensor, text

FINAL = {"triton_enable_empty_final_response": {"bool_param": True}}
STATUS = {"triton_grpc_error": "true"}


def _words(sentence: str, **rest: Any) -> dict[str, Any]:
    return text("words", "text_input", sentence, **rest)


def _row(shape: list[int] | None = None, **rest: Any) -> dict[str, Any]:
    return request("identity", tensor(shape=shape, fp32_contents=[1, 2]), **rest)


def _repeat(values: list[int]) -> dict[str, Any]:
    return request("repeat", tensor("IN", [len(values)], "INT32", int_contents=values))


STREAMS: list[tuple[str, list[dict[str, Any]], dict[str, str]]] = [
    ("words", [_words("a b", id="q")], {}),
    ("no word", [_words("")], {}),
    ("words with a final", [_words("a b", parameters=FINAL)], {}),
    ("no word with a final", [_words("", id="z", parameters=FINAL)], {}),
    ("error within", [_words("a fail b")], {}),
    ("numbers", [_repeat([3, 1, 2])], {}),
    ("plain model", [_row(id="r")], {}),
    ("plain model with a final", [_row(parameters=FINAL)], {}),
    ("good, then wrong", [_row(), _row([2])], {}),
    ("wrong with an id", [_row([2], id="w")], {}),
    ("unknown model", [{"model_name": "nope", "id": "n"}], {}),
    ("unknown model, as status", [{"model_name": "nope"}], STATUS),
    ("ensemble", [request("chain", tensor(fp32_contents=[1, 2]))], {}),
    ("model raises", [text("failing", "HOW", "raise")], {}),
]
