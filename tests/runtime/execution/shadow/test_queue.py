"""When copies begin: while no request waits for an instance, and one of the candidate is free."""

from tests.runtime.execution.fakes import SECOND
from tests.runtime.execution.shadow.shadowed import Shadowed

from argosy_runtime.telemetry.shadow.statistics import Obstacle


def _mirrored(one: Shadowed) -> list[str]:
    """Return the ids of the copies that were sent."""
    return [request.id for request, _, _ in one.candidate.requests]


def _with_one_instance() -> Shadowed:
    one = Shadowed()
    one.stable.instances = one.candidate.instances = 1
    return one


def _busy(one: Shadowed) -> None:
    """Have a request wait for the stable version's only instance."""
    one.stable.statistics.busy = one.stable.statistics.pending = 1


async def test_a_copy_waits_while_a_request_waits_for_an_instance_and_then_begins() -> None:
    one = _with_one_instance()
    _busy(one)
    one.send("a")
    one.stable.answer()
    assert _mirrored(one) == []
    one.send("b")
    one.stable.statistics.pending = 0
    one.stable.answer(at=1)
    assert _mirrored(one) == ["a", "b"], "one batch"
    assert one.order[-3:] == ["client got it", "2 got a", "2 got b"]
    for at in (0, 1):
        one.candidate.answer(at=at)
    assert one.outcomes == {"equal": 2}
    assert one.is_over()


async def test_the_end_of_a_request_that_is_not_copied_is_noticed() -> None:
    one = Shadowed(share=500_000)
    one.stable.instances = 1
    one.send("a")
    _busy(one)
    one.send("b")
    one.send("c")
    one.stable.answer(at=1)
    assert _mirrored(one) == []
    one.stable.statistics.pending = 0
    one.stable.answer(at=2)
    assert _mirrored(one) == ["b"]


async def test_requests_that_wait_for_their_batch_hold_no_copy_back() -> None:
    one = _with_one_instance()
    one.stable.statistics.pending = 1
    one.send("a")
    assert _mirrored(one) == ["a"]


async def test_no_copy_waits_at_the_candidate() -> None:
    one = _with_one_instance()
    for name in "abc":
        one.send(name)
    one.send("d")
    assert _mirrored(one) == ["a"]
    one.candidate.answer()
    assert _mirrored(one) == ["a", "b", "c"], "the next ones share a batch"
    one.candidate.answer(at=1)
    assert _mirrored(one) == ["a", "b", "c"]
    one.candidate.statistics.busy = 1
    one.candidate.answer(at=2)
    assert _mirrored(one) == ["a", "b", "c"], "its instance is not free yet"


async def test_a_copy_is_followed_by_a_rest_of_four_times_its_duration_in_which_the_stable_version_is_idle() -> None:
    one = _with_one_instance()
    one.send("a")
    one.stable.answer()
    await one.clock.pass_time(SECOND // 10)
    one.candidate.answer()
    one.send("b")
    one.stable.answer(at=1)
    await one.clock.pass_time(SECOND // 5)
    one.stable.statistics.instance_taken(one.clock.now())
    await one.clock.pass_time(SECOND)
    one.stable.statistics.instance_freed(one.clock.now())
    await one.clock.pass_time(SECOND // 5 - 1)
    assert _mirrored(one) == ["a"], "it was idle for less than 0.4 s"
    await one.clock.pass_time(SECOND // 100)
    assert _mirrored(one) == ["a", "b"]
    one.send("c")
    await one.clock.pass_time(SECOND)
    assert _mirrored(one) == ["a", "b"], "no rest begins while a copy runs"


async def test_a_candidate_without_instances_of_its_own_or_that_answers_later_takes_what_is_allowed() -> None:
    one = Shadowed(max_in_flight=3)
    one.candidate.instances = None
    other = Shadowed(max_in_flight=3)
    other.candidate.instances = 1
    other.candidate.statistics.answers_later = True
    for shadowed in (one, other):
        for name in "abcd":
            shadowed.send(name)
        assert _mirrored(shadowed) == ["a", "b", "c"]
        assert shadowed.outcomes == {"skipped": 1}


async def test_a_copy_that_waits_for_ten_seconds_is_skipped() -> None:
    one = _with_one_instance()
    _busy(one)
    one.send("a")
    await one.clock.pass_time(9 * SECOND)
    one.send("b")
    await one.clock.pass_time(SECOND)
    assert (one.outcomes, one.statistics.obstacles[Obstacle.BUSY]) == ({"skipped": 1}, 1)
    await one.clock.pass_time(9 * SECOND)
    assert (one.outcomes, one.statistics.obstacles[Obstacle.BUSY]) == ({"skipped": 2}, 2)
    assert one.is_over()
    one.stable.statistics.pending = 0
    one.stable.answer(at=0)
    one.stable.answer(at=1)
    assert _mirrored(one) == []


async def test_a_wait_whose_end_is_not_noticed_ends_at_its_timeout() -> None:
    one = _with_one_instance()
    _busy(one)
    one.send("a")
    one.stable.statistics.pending = 0
    await one.clock.pass_time(10 * SECOND)
    assert _mirrored(one) == ["a"]


async def test_what_waits_for_a_candidate_that_hangs_has_failed() -> None:
    one = _with_one_instance()
    one.send("a")
    one.candidate.statistics.busy = 1
    one.stable.answer()
    await one.clock.pass_time(25 * SECOND)
    one.send("b")
    one.stable.answer(at=1)
    await one.clock.pass_time(10 * SECOND)
    assert one.outcomes == {"failed": 2}
    assert one.statistics.failures["TIMEOUT"] == 2
    assert one.is_over()


async def test_what_waits_for_a_candidate_that_answers_slowly_is_skipped() -> None:
    one = _with_one_instance()
    one.send("a")
    one.candidate.statistics.busy = 1
    one.send("b")
    one.stable.answer()
    one.stable.answer(at=1)
    await one.clock.pass_time(10 * SECOND)
    assert (one.outcomes, one.statistics.obstacles[Obstacle.IN_FLIGHT]) == ({"skipped": 1}, 1)


async def test_a_sequence_ends_with_a_copy_that_waited_too_long() -> None:
    one = _with_one_instance()
    _busy(one)
    one.send("s1", sequence_id=7, sequence_start=True)
    one.send("other")
    await one.clock.pass_time(5 * SECOND)
    one.send("s2", sequence_id=7)
    await one.clock.pass_time(5 * SECOND)
    one.send("s3", sequence_id=7, sequence_end=True)
    assert one.outcomes == {"skipped": 3}
    assert one.is_over()


async def test_the_end_of_the_shadow_ends_the_wait() -> None:
    one = _with_one_instance()
    _busy(one)
    one.send("a")
    one.mirror.close()
    one.stable.statistics.pending = 0
    one.stable.answer()
    await one.clock.pass_time(20 * SECOND)
    assert (_mirrored(one), one.outcomes) == ([], {"canceled": 1})


async def test_durations_leave_out_the_time_in_queues_and_before_the_copy_began() -> None:
    one = _with_one_instance()
    _busy(one)
    one.send("a")
    request = one.stable.requests[0][0]
    assert request.queue_trace is not None
    request.queue_trace.ns = 2 * SECOND
    await one.clock.pass_time(5 * SECOND)
    one.stable.statistics.pending = 0
    one.stable.answer()
    await one.clock.pass_time(4 * SECOND)
    trace = one.candidate.requests[0][0].queue_trace
    assert trace is not None
    trace.ns = SECOND
    one.candidate.answer()
    assert (one.statistics.stable.ns, one.statistics.candidate.ns) == (3 * SECOND, 3 * SECOND)


async def test_a_copy_that_waits_behind_the_requests_of_other_models_has_not_failed() -> None:
    one = Shadowed()
    one.send("a")
    trace = one.candidate.requests[0][0].queue_trace
    assert trace is not None
    trace.waiting, trace.calls = 1, True
    one.stable.answer()
    await one.clock.pass_time(31 * SECOND)
    assert (one.outcomes, one.statistics.obstacles[Obstacle.BUSY]) == ({"uncompared": 1}, 1)
    assert one.statistics.calls == 1
