"""What begins a sequence, what ends one, and what is refused, for both strategies."""

import pytest
from tests.runtime.scheduling.sequences.bench import IDLE, US, Bench, config

from argosy_runtime.errors import ErrorKind, FailureReason
from argosy_runtime.messages import InferResponse

NOT_BEGUN = (
    "inference request for sequence {} to model 'm' must specify the START flag on the first request of the sequence"
)
BOTH = pytest.mark.parametrize("strategy", ["direct {}", "oldest {}"])
CORRID_MISFIT = (
    "[request id: a] sequence batching control 'CORRID' data-type is 'BYTES', but model 'm' expects 'UINT64'"
)


@BOTH
def test_the_first_request_needs_a_start(strategy: str):
    bench = Bench(strategy)
    error = bench.send("a", 7)
    assert error is not None
    assert (error.kind, error.message) == (ErrorKind.INVALID_ARG, NOT_BEGUN.format(7))


@BOTH
def test_a_sequence_that_has_ended_needs_a_start_again(strategy: str):
    bench = Bench(strategy)
    bench.send("a1", 7, "SE")
    error = bench.send("a2", 7)
    assert error is not None
    assert error.message == NOT_BEGUN.format(7)
    assert bench.send("b1", 7, "S") is None


def test_a_request_without_an_id_is_refused():
    bench = Bench()
    error = bench.send("a", 0, "S")
    assert error is not None
    assert error.message == "inference request to model 'm' must specify a non-zero or non-empty correlation ID"


def test_an_id_has_the_type_of_its_control():
    bench = Bench()
    error = bench.send("a", "text", "S")
    assert error is not None
    assert error.message == CORRID_MISFIT


def test_a_request_has_one_row():
    bench = Bench()
    bench.send("a", 1, "S")
    queued = bench.requests["a"]
    queued.size = 2
    error = bench.scheduler.submit(queued)
    assert error is not None
    assert error.message == (
        "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher"
    )


@BOTH
def test_a_start_within_a_sequence_begins_it_again(strategy: str):
    bench = Bench(strategy, size=1)
    bench.send("a1", 1, "S")
    bench.send("a2", 1, "S")
    bench.send("a3", 1, "E")
    for name, start in (("a1", 1), ("a2", 1), ("a3", 0)):
        assert bench.run() == {1: [name]}
        assert bench.values("START") == [start]
        bench.finish()
    assert bench.scheduler.sequences == 0


@BOTH
def test_a_cancelled_request_ends_its_sequence(strategy: str):
    bench = Bench(strategy, size=1)
    for name, flags in (("a1", "S"), ("a2", ""), ("a3", ""), ("a4", "")):
        bench.send(name, 1, flags)
    bench.send("b1", 2, "S")
    assert bench.run() == {1: ["a1"]}
    assert bench.scheduler.cancel(bench.requests["a3"])
    bench.run()
    assert [*bench.refused] == ["a4"]
    assert bench.refused["a4"].kind is ErrorKind.CANCELLED
    assert bench.send("a5", 1) is not None
    bench.finish()
    assert bench.run() == {1: ["a2"]}
    bench.finish()
    assert bench.run() == {1: ["b1"]}


@BOTH
def test_a_cancelled_request_in_the_backlog_ends_all_of_its_sequence(strategy: str):
    bench = Bench(strategy, size=1)
    bench.send("a1", 1, "S")
    bench.send("b1", 2, "S")
    bench.send("b2", 2)
    bench.run()
    assert bench.scheduler.cancel(bench.requests["b2"])
    bench.run()
    assert [*bench.refused] == ["b1"]
    assert (bench.scheduler.pending, bench.scheduler.sequences) == (0, 1)


@BOTH
def test_a_timeout_in_the_backlog_refuses_all_of_the_sequence(strategy: str):
    bench = Bench(strategy, size=1)
    bench.send("a1", 1, "S")
    bench.run()
    bench.send("b1", 2, "S")
    bench.send("b2", 2, timeout_us=300)
    bench.send("b3", 2, "E", timeout_us=400)
    bench.run()
    assert bench.wake_at == 300 * US
    bench.now = 300 * US
    bench.run()
    assert {*bench.refused} == {"b1", "b2", "b3"}
    error = bench.refused["b1"]
    assert error.message == "timeout of the corresponding sequence has been expired"
    assert (error.kind, error.reason) == (ErrorKind.UNAVAILABLE, FailureReason.REJECTED)


@BOTH
def test_a_timeout_counts_no_more_once_the_sequence_has_a_slot(strategy: str):
    bench = Bench(strategy, size=1)
    bench.send("a1", 1, "SE")
    bench.run()
    bench.send("b1", 2, "S", timeout_us=300)
    bench.finish()
    bench.now = 300 * US
    assert bench.run() == {1: ["b1"]}


@BOTH
def test_an_instance_that_ends_ends_its_sequences(strategy: str):
    bench = Bench(strategy, size=1, instances=2)
    bench.send("a1", 1, "S")
    bench.send("b1", 2, "S")
    bench.run()
    bench.send("a2", 1)
    bench.scheduler.instance_lost(1)
    bench.run()
    error = bench.refused["a2"]
    assert error.kind is ErrorKind.UNAVAILABLE
    lost = "sequence 1 of model 'm' has ended, because the instance that it ran on was lost"
    assert error.message == f"{lost}; start it again"
    later = bench.send("a3", 1)
    assert later is not None
    assert later.message == (
        NOT_BEGUN.format(1) + ": sequence 1 of model 'm' has ended, because the instance that it ran on was lost"
    )
    assert bench.send("b2", 2) is None
    assert bench.send("a4", 1, "S") is None
    bench.scheduler.completed(bench.requests["a1"], InferResponse(), bench.now)
    bench.add(3)
    assert bench.run() == {3: ["a4"]}
    assert bench.scheduler.sequences == 2


@BOTH
def test_an_instance_leaves_once_its_sequences_have_ended(strategy: str):
    bench = Bench(strategy, size=1, instances=2)
    bench.send("a1", 1, "S")
    bench.run()
    bench.finish()
    bench.scheduler.instance_retired(1)
    bench.send("b1", 2, "S")
    bench.send("c1", 3, "S")
    bench.send("a2", 1, "E")
    assert not bench.scheduler.may_retire(1)
    assert bench.run() == {1: ["a2"], 2: ["b1"]}
    bench.finish(1)
    assert bench.scheduler.may_retire(1)
    assert bench.run() == {}


@BOTH
def test_drain_takes_every_waiting_request_and_ends_the_sequences(strategy: str):
    bench = Bench(strategy, size=1)
    bench.send("a1", 1, "S")
    bench.run()
    bench.send("a2", 1, "E")
    bench.send("b1", 2, "S")
    taken = bench.scheduler.drain()
    assert [queued.request.id for queued in taken] == ["a2", "b1"]
    assert bench.scheduler.pending == 0
    bench.finish()
    assert bench.scheduler.sequences == 0
    assert bench.run() == {}


def test_a_sequence_in_the_backlog_is_not_idle():
    bench = Bench(size=1)
    bench.send("a1", 1, "S")
    bench.run()
    bench.send("b1", 2, "S")
    bench.now = 3 * IDLE
    bench.run()
    assert bench.refused == {}
    bench.finish()
    bench.now = 4 * IDLE
    assert bench.run() == {1: ["b1"]}


def test_requests_of_open_sequences_continue():
    bench = Bench()
    bench.send("a1", 1, "S")
    bench.send("b1", 2, "SE")
    bench.send("a2", 1)
    bench.send("c", 3)
    requests = bench.requests
    assert bench.scheduler.continues(requests["a2"].request)
    assert not bench.scheduler.continues(requests["a1"].request)
    assert not bench.scheduler.continues(requests["c"].request)


def test_the_limits_of_a_queue_refuse_a_request_and_not_its_sequence():
    bench = Bench(size=1)
    limited = config(size=1)
    limited.parameters[
        "queue_policies"
    ].string_value = '{"default_queue_policy": {"max_queue_size": 2, "default_timeout_microseconds": 50}}'
    bench.scheduler.apply(limited)
    bench.send("a1", 1, "S")
    bench.run()
    bench.send("a2", 1)
    bench.send("b1", 2, "S")
    refusal = bench.send("a3", 1, "E")
    assert refusal is not None
    assert refusal.message == "[request id: a3] Exceeds maximum queue size"
    bench.now = 50 * US
    bench.run()
    assert list(bench.refused) == ["b1"], "only a sequence in the backlog has the timeout"
    bench.finish()
    assert bench.run() == {1: ["a2"]}
    assert bench.send("a3", 1, "E") is None
    bench.finish()
    assert bench.run() == {1: ["a3"]}
