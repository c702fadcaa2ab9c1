"""preserve_ordering."""

import pytest

from argosy_runtime.messages import InferResponse
from argosy_runtime.scheduling.ordering import ResponseOrder


def response(name: str, final: bool = True) -> InferResponse:
    return InferResponse(id=name, final=final)


def test_later_responses_wait_for_earlier_requests():
    order, left = ResponseOrder(), []
    a, b, c = [order.expect(lambda argument: left.append(argument.id)) for _ in range(3)]
    b(response("b1"))
    assert left == []
    a(response("a1", final=False))
    assert left == ["a1"]
    c(response("c1"))
    a(response("a2"))
    assert left == ["a1", "a2", "b1", "c1"]


def test_the_first_in_line_streams():
    order, left = ResponseOrder(), []
    first = order.expect(lambda argument: left.append(argument.id))
    for name in "xyz":
        first(response(name, final=name == "z"))
        assert left[-1] == name


def test_what_an_answer_brings_in_at_once_follows_in_order():
    order, left = ResponseOrder(), []

    def again(answer: InferResponse) -> None:
        left.append(answer.id)
        if len(left) < 3:
            order.expect(again)(response(f"after {answer.id}"))

    a, b = order.expect(again), order.expect(again)
    b(response("b"))
    a(response("a"))
    assert left == ["a", "b", "after a", "after b"]


def test_a_delivery_that_raises_stalls_nothing_behind_it():
    order, left = ResponseOrder(), []

    def gone(answer: InferResponse) -> None:
        raise ConnectionError(answer.id)

    first, second, third = (
        order.expect(gone),
        order.expect(gone),
        order.expect(lambda argument: left.append(argument.id)),
    )
    third(response("c"))
    second(response("b1", final=False))
    second(response("b2"))
    with pytest.raises(ConnectionError, match="a"):
        first(response("a"))
    assert left == ["c"]
