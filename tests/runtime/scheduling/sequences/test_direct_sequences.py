"""`direct`: the slot of a sequence is the position of its requests."""

from tests.runtime.scheduling.sequences.bench import IDLE, US, Bench, config

from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler


def test_requests_of_different_sequences_share_a_batch_at_the_positions_of_their_slots():
    bench = Bench()
    bench.send("a1", 1, "S")
    bench.send("b1", 2, "S")
    assert bench.run() == {1: ["a1", "b1"]}
    bench.send("a2", 1)
    bench.send("b2", 2)
    assert bench.run() == {}
    bench.finish()
    assert bench.run() == {1: ["a2", "b2"]}


def test_a_slot_without_a_request_is_not_ready():
    bench = Bench()
    for name, sequence in (("a1", 1), ("b1", 2), ("c1", 3)):
        bench.send(name, sequence, "S")
    bench.run()
    bench.finish()
    bench.send("c2", 3, "E", value=7)
    assert bench.run() == {1: ["-", "-", "c2"]}
    assert bench.values("IN") == [0, 0, 7]
    assert bench.values("READY") == [False, False, True]
    assert bench.values("START") == [0, 0, 0]
    assert bench.values("END") == [0.0, 0.0, 1.0]
    assert bench.values("CORRID") == [0, 0, 3]
    assert len(bench.running[1].requests) == 1


def test_one_request_of_a_sequence_runs_at_a_time():
    bench = Bench()
    bench.send("a1", 1, "S")
    bench.send("a2", 1)
    bench.send("a3", 1, "E")
    for name in ("a1", "a2", "a3"):
        assert bench.run() == {1: [name]}
        bench.finish()
    assert bench.scheduler.sequences == 0


def test_the_lowest_slots_of_all_instances_go_first():
    bench = Bench(instances=2)
    for sequence, name in enumerate(("a", "b", "c"), 1):
        bench.send(name, sequence, "S")
    assert bench.run() == {1: ["a", "c"], 2: ["b"]}


def test_the_backlog_gets_a_slot_as_soon_as_an_end_is_dispatched():
    bench = Bench(size=2)
    for name, sequence in (("a1", 1), ("b1", 2), ("c1", 3)):
        bench.send(name, sequence, "S")
    bench.send("c2", 3, "E")
    assert bench.run() == {1: ["a1", "b1"]}
    bench.finish()
    bench.send("b2", 2, "E")
    assert bench.run() == {1: ["-", "b2"]}
    bench.finish()
    assert bench.run() == {1: ["-", "c1"]}
    bench.finish()
    assert bench.run() == {1: ["-", "c2"]}


def test_a_batch_waits_for_its_share_of_the_slots():
    bench = Bench("direct { max_queue_delay_microseconds: 100 minimum_slot_utilization: 0.75 }")
    bench.send("a1", 1, "S")
    assert bench.run() == {}
    assert bench.wake_at == 100 * US
    bench.now = 50 * US
    bench.send("b1", 2, "S")
    assert bench.run() == {}
    bench.send("c1", 3, "S")
    assert bench.run() == {1: ["a1", "b1", "c1"]}


def test_a_batch_waits_no_longer_than_the_delay_of_its_oldest():
    bench = Bench("direct { max_queue_delay_microseconds: 100 minimum_slot_utilization: 1.0 }")
    bench.send("a1", 1, "S")
    assert bench.run() == {}
    bench.now = 99 * US
    assert bench.run() == {}
    bench.now = 100 * US
    assert bench.run() == {1: ["a1"]}


def test_without_a_share_of_the_slots_no_delay_counts():
    bench = Bench("direct { max_queue_delay_microseconds: 100 }")
    bench.send("a1", 1, "S")
    assert bench.run() == {1: ["a1"]}


def test_requests_of_other_shapes_wait_for_the_next_batch():
    bench = Bench()
    wide = (("IN", (2,), None),)
    narrow = (("IN", (1,), None),)
    bench.send("a1", 1, "S", key=narrow)
    bench.send("b1", 2, "S", key=wide)
    bench.send("c1", 3, "S", key=narrow)
    assert bench.run() == {1: ["a1", "-", "c1"]}
    bench.finish()
    assert bench.run() == {1: ["-", "b1"]}


def test_an_idle_sequence_ends_and_gives_its_slot_away():
    bench = Bench(size=1)
    bench.send("a1", 1, "S")
    bench.run()
    bench.now = 500 * US
    bench.finish()
    bench.send("b1", 2, "S")
    assert bench.run() == {}
    assert bench.wake_at == 500 * US + IDLE
    bench.now = 500 * US + IDLE
    assert bench.run() == {1: ["b1"]}
    error = bench.send("a2", 1)
    assert error is not None
    assert error.message == (
        "inference request for sequence 1 to model 'm' must specify the START flag on the first request of the sequence"
    )


def test_a_sequence_with_a_running_request_is_not_idle():
    bench = Bench(size=1)
    bench.send("a1", 1, "S")
    bench.run()
    bench.now = 5 * IDLE
    bench.run()
    bench.finish()
    assert bench.send("a2", 1) is None
    assert bench.run() == {1: ["a2"]}


def test_nothing_runs_before_enough_requests_wait():
    bench = Bench(size=1)
    bench.scheduler = SequenceScheduler(config(size=1), {}, 2, 1)
    bench.scheduler.instance_added(1)
    bench.send("a1", 1, "S")
    bench.send("b1", 2, "S")
    assert bench.run() == {}
    bench.send("a2", 1)
    assert bench.run() == {1: ["a1"]}
    bench.finish()
    assert bench.run() == {1: ["a2"]}


def test_a_model_without_batches_has_one_sequence_at_a_time():
    bench = Bench(size=0)
    bench.send("a1", 1, "S")
    bench.send("b1", 2, "SE")
    assert bench.run() == {1: ["a1"]}
    bench.send("a2", 1, "E")
    bench.finish()
    assert bench.run() == {1: ["a2"]}
    bench.finish()
    assert bench.run() == {1: ["b1"]}
