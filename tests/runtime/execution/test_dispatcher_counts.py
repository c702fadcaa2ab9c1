"""Counts of a dispatcher in virtual time: waiting, responses, busy instances, reasons of failure."""

from tests.runtime.execution.fakes import SECOND, US, ask, settle
from tests.runtime.execution.test_dispatcher import Bench

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal, invalid, unavailable
from argosy_runtime.histograms import DurationHistogram
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy


def count_and_sum(histogram: DurationHistogram) -> tuple[int, int]:
    """Return the count and the sum in microseconds."""
    return sum(histogram.counts), histogram.ns // US


async def test_what_was_answered_together_is_in_the_histograms_one_by_one():
    bench = await Bench().start()
    bench.ask("a")
    bench.ask("b"), bench.ask("c")
    await bench.clock.pass_time(100 * US)
    bench.made[0].finish()
    await bench.clock.pass_time(300 * US)
    bench.made[0].finish()
    statistics = bench.statistics
    assert count_and_sum(statistics.queueing) == (3, 200)
    assert count_and_sum(statistics.durations()) == (3, 100 + 400 + 400)
    assert count_and_sum(statistics.first_responses()) == (3, 900)
    assert count_and_sum(statistics.between_responses) == (0, 0)


async def test_a_stream_has_a_first_response_gaps_and_an_end():
    bench = await Bench(decoupled=True, merge=False).start()
    bench.ask("a")
    for gap in (500, 20, 30):
        await bench.clock.pass_time(gap * US)
        bench.made[0].respond(final=False)
    await bench.clock.pass_time(50 * US)
    bench.made[0].respond()
    statistics = bench.statistics
    assert count_and_sum(statistics.first_responses()) == (1, 500)
    assert count_and_sum(statistics.between_responses) == (3, 100)
    assert count_and_sum(statistics.durations()) == (1, 600)


async def test_a_bare_last_response_ends_a_stream_and_is_no_gap():
    bench = await Bench(decoupled=True, merge=False).start()
    bench.ask("a")
    bench.made[0].respond(final=False)
    await bench.clock.pass_time(70 * US)
    bench.made[0].end()
    assert count_and_sum(bench.statistics.between_responses) == (0, 0)
    assert count_and_sum(bench.statistics.durations()) == (1, 70)


async def test_what_failed_is_in_no_histogram():
    bench = await Bench().start()
    bench.ask("a")
    bench.made[0].finish(internal("no"))
    assert count_and_sum(bench.statistics.durations()) == (0, 0)
    assert count_and_sum(bench.statistics.queueing) == (0, 0)


async def test_warming_up_is_in_no_histogram():
    bench = await Bench().start([ask("warm")])
    bench.made[0].finish()
    await settle()
    assert bench.statistics.success.count == 1
    assert count_and_sum(bench.statistics.durations()) == (0, 0)
    assert count_and_sum(bench.statistics.queueing) == (0, 0)


async def test_instances_are_busy_from_a_batch_to_its_end():
    bench = await Bench(2, merge=False).start()
    bench.ask("a")
    await bench.clock.pass_time(10 * US)
    bench.ask("b")
    assert bench.statistics.busy == 2
    await bench.clock.pass_time(5 * US)
    assert bench.statistics.busy_ns(bench.clock.now()) == 20 * US
    bench.made[0].finish()
    await bench.clock.pass_time(100 * US)
    assert bench.statistics.busy_ns(bench.clock.now()) == 120 * US
    bench.made[1].finish()
    await bench.clock.pass_time(1000 * US)
    assert bench.statistics.busy_ns(bench.clock.now()) == 120 * US
    assert bench.statistics.busy == 0
    assert bench.dispatcher.instances == ["m_0", "m_1"]


async def test_an_instance_that_is_lost_or_refuses_a_batch_is_not_busy():
    bench = await Bench(merge=False).start()
    bench.ask("a")
    bench.made[0].die()
    assert (bench.statistics.busy, bench.dispatcher.instances) == (0, [])
    await bench.clock.pass_time(SECOND)
    bench.made[1].load()
    await bench.clock.pass_time(0)
    bench.made[1].refuses = True
    bench.ask("b")
    assert (bench.statistics.busy, bench.dispatcher.instances) == (0, ["m_1"])


async def test_a_model_that_answers_after_its_execution_is_recognized():
    bench = await Bench(decoupled=True, merge=False).start()
    bench.ask("a")
    bench.made[0].fail(internal("no"))
    bench.ask("b")
    bench.made[0].respond()
    assert not bench.statistics.answers_later
    bench.made[0].free()
    bench.ask("c")
    bench.made[0].batches.pop(0)
    bench.made[0].free()
    assert bench.statistics.answers_later


async def test_running_requests_are_those_of_batches_until_their_last_response():
    bench = await Bench(decoupled=True, merge=False).start()
    bench.ask("a")
    assert bench.dispatcher.running == 1
    bench.made[0].respond(final=False)
    bench.made[0].free()
    bench.ask("b"), bench.ask("c")
    assert (bench.dispatcher.running, bench.statistics.pending) == (2, 1)
    bench.made[0].respond()
    assert bench.dispatcher.running == 1


async def test_a_full_queue_and_a_timeout_in_it_are_distinguished():
    policies = QueuePolicies(QueuePolicy(max_size=1, timeout_ns=50 * US), {})
    bench = await Bench(merge=False, policies=policies).start()
    bench.ask("runs"), bench.ask("waits"), bench.ask("refused")
    await bench.clock.pass_time(60 * US)
    failures = bench.statistics.failures
    assert (failures[FailureReason.REJECTED], failures[FailureReason.TIMEOUT]) == (1, 1)


async def test_an_error_that_the_model_returns_counts_unless_the_request_caused_it():
    bench = await Bench().start()
    for kind in (ErrorKind.INTERNAL, ErrorKind.INVALID_ARG):
        bench.ask("a")
        bench.made[0].finish(ServingError(kind, "no", reason=None))
    assert (bench.statistics.success.count, bench.statistics.model_errors) == (2, 1)


async def test_errors_that_requests_cause_have_a_reason_of_their_own():
    bench = await Bench().start()
    for error in (invalid("a shape"), unavailable("it is being unloaded"), internal("a bug")):
        bench.ask("a")
        bench.made[0].finish(error)
    counts = bench.statistics.failures
    assert counts[FailureReason.INVALID] == counts[FailureReason.OTHER] == counts[FailureReason.BACKEND] == 1


async def test_an_instance_that_ends_by_itself_counts():
    bench = await Bench().start()
    bench.made[0].die()
    await settle()
    assert bench.statistics.instances_lost == 1
