"""`max_inflight_requests`: who may start, and who follows whom."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.scheduling.limits.step_limits import StepLimits


def test_calls_follow_in_their_order():
    limits = StepLimits[str](2, 2)
    assert [limits.enter(0, call) for call in "abcd"] == [True, True, False, False]
    assert limits.enter(1, "e")
    assert [limits.leave(0), limits.leave(0), limits.leave(0)] == ["c", "d", None]
    assert limits.enter(0, "f")
    assert not limits.enter(0, "g")


def test_a_call_that_is_withdrawn_is_passed_over():
    limits = StepLimits[str](1, 1)
    for call in "abc":
        limits.enter(0, call)
    limits.withdraw(0, "b")
    limits.withdraw(0, "a")
    assert (limits.leave(0), limits.leave(0)) == ("c", None)


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("ewl"), st.integers(0, 1)), max_size=60))
def test_never_more_than_the_limit_and_nothing_waits_below_it(limit, steps):
    limits = StepLimits[int](limit, 2)
    open_calls, waiting = [0, 0], [[], []]
    for number, (what, step) in enumerate(steps):
        if what == "e":
            entered = limits.enter(step, number)
            assert entered == (open_calls[step] < limit)
            open_calls[step] += entered
            if not entered:
                waiting[step].append(number)
        elif what == "w" and waiting[step]:
            limits.withdraw(step, waiting[step].pop())
        elif what == "l" and open_calls[step]:
            following = limits.leave(step)
            assert following == (waiting[step].pop(0) if waiting[step] else None)
            open_calls[step] -= following is None
        assert open_calls[step] <= limit
        assert not waiting[step] or open_calls[step] == limit
