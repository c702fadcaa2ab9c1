"""`oldest`: an instance's dynamic batching of its sequences' first requests, and iterative sequences."""

import pytest
from tests.runtime.scheduling.sequences.bench import US, Bench, config

from argosy_runtime.messages import InferRequest
from argosy_runtime.scheduling.scheduler import not_rescheduled
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler


def test_first_requests_of_sequences_share_batches():
    bench = Bench("oldest { max_candidate_sequences: 3 }", size=2)
    for name, sequence in (("a1", 1), ("b1", 2), ("c1", 3), ("d1", 4)):
        bench.send(name, sequence, "S")
    bench.send("a2", 1, "E")
    assert bench.run() == {1: ["a1", "b1"]}
    bench.finish()
    assert bench.run() == {1: ["c1", "a2"]}
    bench.finish()
    assert bench.run() == {1: ["d1"]}


def test_nothing_runs_before_enough_requests_wait():
    bench = Bench("oldest {}", instances=0)
    bench.scheduler = SequenceScheduler(config("oldest {}"), {}, 2)
    bench.add(1)
    bench.send("a1", 1, "S")
    bench.send("a2", 1)
    assert bench.run() == {}
    bench.send("b1", 2, "S")
    assert bench.run() == {1: ["a1", "b1"]}


def test_a_batch_waits_for_the_delay():
    bench = Bench("oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 100 }")
    bench.send("a1", 1, "S")
    assert bench.run() == {}
    assert bench.wake_at == 100 * US
    bench.now = 100 * US
    bench.send("b1", 2, "S")
    assert bench.run() == {1: ["a1", "b1"]}


def test_an_instance_has_its_own_candidates():
    bench = Bench("oldest { max_candidate_sequences: 1 }", instances=2)
    for name, sequence in (("a1", 1), ("b1", 2), ("c1", 3)):
        bench.send(name, sequence, "S")
    assert bench.run() == {1: ["a1"], 2: ["b1"]}
    bench.send("b2", 2, "E")
    bench.finish(2)
    assert bench.run() == {2: ["b2"]}
    bench.finish(2)
    assert bench.run() == {2: ["c1"]}


def test_a_request_of_an_iterative_model_needs_no_id():
    bench = Bench("oldest { max_candidate_sequences: 4 }", more="iterative_sequence: true")
    bench.send("a", 0)
    bench.send("b", 0, "E")
    assert bench.run() == {1: ["a", "b"]}
    assert bench.values("START") == [1, 1]
    assert bench.values("END") == [0.0, 0.0]
    identifiers = bench.values("CORRID")
    assert len(set(identifiers)) == 2
    slots = bench.running[1].slots
    assert slots is not None
    assert [(message.sequence_id, message.sequence_start) for message in slots.messages] == [
        (identifier, True) for identifier in identifiers
    ]


@pytest.mark.parametrize("flags", ["", "S", "E"])
def test_no_id_of_a_client_leads_to_the_sequence_of_a_request_without_one(flags):
    bench = Bench("oldest { max_candidate_sequences: 4 }", more="iterative_sequence: true")
    bench.send("a", 0)
    bench.run()
    taken = int(str(bench.values("CORRID")[0]))
    assert not bench.scheduler.continues(InferRequest("m", {}, sequence_id=taken))
    refused = bench.send("b", taken, flags)
    assert (refused is None) == (flags == "S")
    assert bench.scheduler.reschedule(bench.requests["a"], bench.now) is None
    bench.running.clear()
    bench.free = [1]
    assert bench.run() == {1: ["b", "a"] if flags == "S" else ["a"]}
    bench.finish()
    assert bench.scheduler.sequences == 0


def test_what_a_model_sees_as_the_id_of_a_request_without_one_cannot_be_guessed():
    seen = []
    for _ in range(2):
        bench = Bench("oldest {}", more="iterative_sequence: true")
        for name in "ab":
            bench.send(name, 0)
        bench.run()
        seen += bench.values("CORRID")
    assert len(set(seen)) == 4
    assert all(0 < one < 1 << 63 for one in seen)
    assert len({one >> 32 for one in seen}) > 1
    assert len({one & 0xFFFFFFFF for one in seen}) == 4


def test_a_rescheduled_request_runs_again_without_its_start():
    bench = Bench("oldest { max_candidate_sequences: 1 }", more="iterative_sequence: true")
    bench.send("a", 0)
    bench.send("b", 0)
    assert bench.run() == {1: ["a"]}
    identifier = bench.values("CORRID")
    assert bench.scheduler.reschedule(bench.requests["a"], bench.now) is None
    assert bench.scheduler.pending == 2
    bench.running.clear()
    bench.free = [1]
    assert bench.run() == {1: ["a"]}
    assert bench.values("START") == [0]
    assert bench.values("CORRID") == identifier
    bench.finish()
    assert bench.scheduler.sequences == 1
    assert bench.run() == {1: ["b"]}


def test_a_request_of_a_plain_sequence_is_not_rescheduled():
    bench = Bench("oldest {}")
    bench.send("a", 1, "S")
    bench.run()
    error = bench.scheduler.reschedule(bench.requests["a"], bench.now)
    assert error is not None
    assert error.message == not_rescheduled().message
