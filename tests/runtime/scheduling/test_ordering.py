"""preserve_ordering."""

from argosy_runtime.scheduling.ordering import ResponseOrder


def test_later_responses_wait_for_earlier_requests():
    order: ResponseOrder[str, str] = ResponseOrder()
    for key in "abc":
        order.expect(key)
    assert order.receive("b", "b1", final=True) == []
    assert order.receive("a", "a1", final=False) == [("a", "a1")]
    assert order.receive("c", "c1", final=True) == []
    assert order.receive("a", "a2", final=True) == [("a", "a2"), ("b", "b1"), ("c", "c1")]


def test_the_first_in_line_streams():
    order: ResponseOrder[str, int] = ResponseOrder()
    order.expect("a")
    assert [order.receive("a", n, final=n == 2) for n in range(3)] == [[("a", 0)], [("a", 1)], [("a", 2)]]
