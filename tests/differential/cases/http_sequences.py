"""Sequences over HTTP: slots, controls, ids of both types, implicit state, requests that are scheduled again."""

from typing import Any

from tests.differential.http_calls import Call, Case, infer, tensor


def _flags(sequence: Any, flags: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {} if sequence is None else {"sequence_id": sequence}
    return parameters | {name: True for flag, name in (("S", "sequence_start"), ("E", "sequence_end")) if flag in flags}


def _send(model: str, value: Any, sequence: Any = None, flags: str = "", datatype: str = "INT32", **more: Any) -> Call:
    """Return a request of a sequence; `flags` are S for START and E for END."""
    values = value if isinstance(value, list) else [value]
    shape = [1, len(values)] if datatype == "INT32" else [len(values)]
    return infer(model, tensor("IN", shape, datatype, values), parameters=_flags(sequence, flags) | more)


def _sum(value: int, sequence: Any, flags: str = "", **more: Any) -> Call:
    return _send("sequence_sum", value, sequence, flags, **more)


def _slots(value: Any, sequence: Any, flags: str = "") -> Call:
    return _send("sequence_slots", value, sequence, flags)


def _text(value: str, sequence: Any, flags: str = "") -> Call:
    return _send("sequence_text", value, sequence, flags, "BYTES")


def _state(value: int, sequence: Any, flags: str = "") -> Call:
    return _send("sequence_state", value, sequence, flags)


def _chain(value: int, sequence: Any = None, flags: str = "") -> Call:
    return infer("sequence_chain", tensor("VALUE", [1, 1], "INT32", [value]), parameters=_flags(sequence, flags))


CASES = [
    Case("one after the other", (_sum(1, 100, "S"), _sum(2, 100), _sum(3, 100), _sum(4, 100, "E"))),
    Case("two at a time", tuple(_sum(i, 101 + i % 2, "S" if i < 2 else "E" if i > 5 else "") for i in range(8))),
    Case("start and end in one", (_sum(5, 103, "SE"), _sum(5, 103))),
    Case("start again", (_sum(1, 104, "S"), _sum(2, 104, "S"), _sum(3, 104, "E"), _sum(3, 104))),
    Case("never begun", (_sum(1, 105), _sum(1, 105, "E"))),
    Case("ended", (_sum(1, 106, "S"), _sum(1, 106, "E"), _sum(1, 106), _sum(1, 106, "E"))),
    Case("id 0", (_sum(1, 0, "S"), _sum(1, 0, "SE"), _sum(1, 0))),
    Case("no id", (_sum(1, None, "S"), _sum(1, None))),
    Case("empty id", (_sum(1, "", "S"),)),
    Case("largest id", (_sum(1, 2**64 - 1, "S"), _sum(2, 2**64 - 1, "E"))),
    Case("id beyond 64 bits", (_sum(1, 2**64, "S"),)),
    Case("id of another type", (_sum(1, 1.5, "S"), _sum(1, True, "S"), _sum(1, [1], "S"))),
    Case("start of another type", (_sum(1, 107, sequence_start=1), _sum(1, 107, sequence_start="true"))),
    Case("end of another type", (_sum(1, 107, sequence_end=1),)),
    Case("start that is false", (_sum(1, 108, sequence_start=False),)),
    Case("timeout and priority", (_sum(1, 109, "S", timeout=1, priority=2), _sum(1, 109, "E", timeout=1))),
    Case("a wrong request within", (_sum(1, 110, "S"), _send("sequence_sum", [1, 2], 110), _sum(2, 110, "E"))),
    Case(
        "two rows",
        (
            infer("sequence_slots", tensor("IN", [2, 1], "INT32", [1, 2]), parameters={"sequence_id": 8}),
            infer("sequence_sum", tensor("IN", [4, 1], "INT32", [1] * 4), parameters={"sequence_id": 8}),
        ),
    ),
    Case("a row too many", (infer("sequence_slots", tensor("IN", [4, 1], "INT32", [1] * 4)),)),
    Case("slots of one", (_slots(1, 111, "S"), _slots(1, 111), _slots(1, 111, "E"))),
    Case(
        "slots of three",
        (
            _slots(1, 112, "S"),
            _slots(1, 113, "S"),
            _slots(1, 114, "S"),
            _slots(1, 113),
            _slots(1, 112, "E"),
            _slots(1, 114),
            _slots(1, 115, "SE"),
            _slots(1, 113, "E"),
            _slots(1, 114, "E"),
        ),
    ),
    Case("slots of other shapes", (_slots([1], 116, "S"), _slots([1, 2], 117, "SE"), _slots([1, 2, 3], 116, "E"))),
    Case("id of 32 bits", (_slots(1, 2**32 + 5, "SE"), _slots(1, 2**31, "SE"))),
    Case("slots without an id", (_slots(1, 0, "S"),)),
    Case("slots never begun", (_slots(1, 118),)),
    Case("ensemble", (_chain(1, 119, "S"), _chain(2, 119), _chain(3, 119, "E"), _chain(4, 119))),
    Case("ensemble without an id", (_chain(1), _chain(1, 0, "S"))),
    Case("ensemble and its step", (_chain(1, 120, "S"), _sum(2, 120), _chain(3, 120, "E"))),
    Case("from a model", (infer("sequence_caller", tensor("IN", [4], "INT32", [1, 2, 3, 4])),)),
    Case("scheduled again", tuple(_send("countdown", value) for value in (0, 1, 3))),
    Case("scheduled again, with an id", (_send("countdown", 2, 200, "S"), _send("countdown", 1, 200))),
    Case("text ids", (_text("a", "one", "S"), _text("b", "two", "S"), _text("c", "one", "E"), _text("d", "two", "E"))),
    Case("text id never begun", (_text("a", "three"),)),
    Case("text id, empty", (_text("a", "", "S"),)),
    Case("long text id", (_text("a", "x" * 128, "SE"),)),
    Case("state", (_state(1, 121, "S"), _state(2, 121), _state(3, 121, "E"))),
]
