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


def _sequence(model: str, value: int, sequence: int | str, flags: str = "", **rest: Any) -> dict[str, Any]:
    """Return a request of a sequence; `flags` are S for START and E for END."""
    kind = "string_param" if isinstance(sequence, str) else "int64_param"
    parameters: dict[str, Any] = {"sequence_id": {kind: sequence}}
    for flag, name in (("S", "sequence_start"), ("E", "sequence_end")):
        if flag in flags:
            parameters[name] = {"bool_param": True}
    return request(model, tensor("IN", [1, 1], "INT32", int_contents=[value]), parameters=parameters, **rest)


def _sum(value: int, sequence: int | str, flags: str = "", **rest: Any) -> dict[str, Any]:
    return _sequence("sequence_sum", value, sequence, flags, **rest)


def _countdown(value: int, **rest: Any) -> dict[str, Any]:
    return request("countdown_stream", tensor("IN", [1, 1], "INT32", int_contents=[value]), **rest)


STREAMS: list[tuple[str, list[dict[str, Any]], dict[str, str]]] = [
    ("words", [_words("a b", id="q")], {}),
    ("no word", [_words("")], {}),
    ("words with a final", [_words("a b", parameters=FINAL)], {}),
    ("no word with a final", [_words("", id="z", parameters=FINAL)], {}),
    ("error within", [_words("a fail b")], {}),
    ("a response without outputs", [_words("a nothing b", id="e")], {}),
    ("a response without outputs, with a final", [_words("nothing", parameters=FINAL)], {}),
    ("plain model without outputs", [request("every_type", id="e")], {}),
    ("plain model without outputs, with a final", [request("every_type", parameters=FINAL)], {}),
    ("numbers", [_repeat([3, 1, 2])], {}),
    ("plain model", [_row(id="r")], {}),
    ("plain model with a final", [_row(parameters=FINAL)], {}),
    ("good, then wrong", [_row(), _row([2])], {}),
    ("wrong with an id", [_row([2], id="w")], {}),
    ("unknown model", [{"model_name": "nope", "id": "n"}], {}),
    ("unknown model, as status", [{"model_name": "nope"}], STATUS),
    ("ensemble", [request("chain", tensor(fp32_contents=[1, 2]))], {}),
    ("model raises", [text("failing", "HOW", "raise")], {}),
    ("sequence", [_sum(1, 300, "S", id="a"), _sum(2, 300, id="b"), _sum(3, 300, "E", id="c")], {}),
    ("sequence never begun", [_sum(1, 302, id="a"), _sum(2, 302, "SE", id="b"), _sum(3, 302, id="c")], {}),
    ("sequence never begun, as status", [_sum(1, 303, id="a")], STATUS),
    ("sequence of a negative id", [_sum(1, -1, "S"), _sum(1, -1, "E")], {}),
    ("sequence by slots", [_sequence("sequence_slots", 1, 304, "S"), _sequence("sequence_slots", 1, 304, "E")], {}),
    ("iterative", [_countdown(3, id="a")], {}),
    ("iterative with a final", [_countdown(2, id="a", parameters=FINAL)], {}),
    ("iterative, one step", [_countdown(1)], {}),
]
