"""A dispatcher of sequences in virtual time: slots, states, instances that leave or die, requests that come again."""

import asyncio

import pytest
from tests.runtime.execution.fakes import SECOND, US, Client, Factory, FakeInstance, VirtualClock, ask, settle
from tests.runtime.scheduling.sequences.bench import IDLE, config

from argosy_runtime.errors import ErrorKind, ServingError, invalid
from argosy_runtime.execution.dispatching.sequence_dispatcher import SequenceDispatcher
from argosy_runtime.messages import RESCHEDULED, InferResponse
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler
from argosy_runtime.telemetry.statistics import ModelStatistics

pytestmark = pytest.mark.usefixtures("cancelled_tasks")


class Bench:
    """A dispatcher and all that it is made of."""

    def __init__(self, strategy: str = "direct {}", size: int = 4, more: str = "", instances: int = 1) -> None:
        self.clock = VirtualClock()
        self.statistics = ModelStatistics()
        self.factory = Factory()
        scheduler = SequenceScheduler(config(strategy, size, more), {})
        makers = [self.factory] * instances
        self.dispatcher = SequenceDispatcher("m", 3, scheduler, makers, self.statistics, self.clock)

    async def start(self) -> "Bench":
        """Start with every instance loaded."""
        starting = asyncio.create_task(self.dispatcher.start())
        await settle()
        for instance in self.made:
            instance.load()
        await starting
        return self

    @property
    def made(self) -> list[FakeInstance]:
        """Every instance that ever was."""
        return self.factory.made

    def ask(self, name: str, sequence: int, flags: str = "") -> Client:
        """Send a request of a sequence; `flags` are S for START and E for END."""
        client = Client()
        request = ask(name, 1, sequence_id=sequence, sequence_start="S" in flags, sequence_end="E" in flags)
        try:
            client.submission = self.dispatcher.submit(request, 1, None, client.deliver)
        except ServingError as error:
            client.deliver(InferResponse(error=error))
        return client


async def test_slots_without_a_request_change_no_statistics():
    bench = await Bench().start()
    a1, b1 = bench.ask("a1", 1, "S"), bench.ask("b1", 2, "S")
    assert bench.made[0].ids() == [["a1"]]
    bench.made[0].finish()
    assert bench.made[0].ids() == [["", "b1"]]
    bench.made[0].finish()
    assert a1.over
    assert b1.over
    statistics = bench.statistics
    assert (statistics.success.count, statistics.inference_count, statistics.execution_count) == (2, 2, 2)
    assert sorted(statistics.batches) == [1]
    assert (statistics.pending, bench.dispatcher.running) == (0, 0)


async def test_the_next_request_of_a_sequence_runs_before_the_answer_to_the_last_goes_out():
    bench = await Bench("oldest {}").start()
    seen = []
    client = bench.ask("a1", 1, "S")
    bench.ask("a2", 1)
    client.submission.deliver = lambda response: seen.append(bench.made[0].ids())
    bench.made[0].finish()
    assert seen == [[["a2"]]]


async def test_a_failed_request_does_not_end_its_sequence():
    bench = await Bench().start()
    bench.ask("a1", 1, "S")
    b1 = bench.ask("b1", 2, "S")
    bench.made[0].finish()
    bench.made[0].fail(invalid("no"))
    assert b1.error == "no"
    bench.ask("b2", 2, "E")
    assert bench.made[0].ids() == [["", "b2"]]


async def test_an_instance_that_dies_ends_its_sequences_with_an_error_that_says_so():
    bench = await Bench("oldest {}", instances=2).start()
    a1, b1 = bench.ask("a1", 1, "S"), bench.ask("b1", 2, "S")
    a2 = bench.ask("a2", 1)
    bench.made[0].die()
    assert a1.error == "m_0 died"
    lost = "sequence 1 of model 'm' has ended, because the instance that it ran on was lost"
    assert a2.error == f"{lost}; start it again"
    assert not b1.over
    a3 = bench.ask("a3", 1)
    assert a3.responses[0].error.kind is ErrorKind.INVALID_ARG
    assert a3.error.endswith("sequence 1 of model 'm' has ended, because the instance that it ran on was lost")
    bench.ask("a4", 1, "S")
    bench.made[1].finish()
    assert bench.made[1].ids() == [["a4"]]


async def test_the_cancellation_of_a_waiting_request_answers_those_behind_it():
    bench = await Bench(size=1).start()
    bench.ask("a1", 1, "S")
    a2, a3 = bench.ask("a2", 1), bench.ask("a3", 1, "E")
    a2.submission.cancel()
    assert a2.responses[0].error.kind is ErrorKind.CANCELLED
    assert a3.error == "[request id: a3] Request was cancelled"
    b1 = bench.ask("b1", 2, "SE")
    bench.made[0].finish()
    bench.made[0].finish()
    assert b1.over
    assert not bench.dispatcher.owes


async def test_a_running_request_that_is_cancelled_leaves_its_sequence():
    bench = await Bench(size=1).start()
    a1 = bench.ask("a1", 1, "S")
    a1.submission.cancel()
    assert bench.made[0].calls == [("cancel", 0)]
    bench.made[0].finish()
    bench.ask("a2", 1)
    assert bench.made[0].ids() == [["a2"]]


async def test_an_idle_sequence_ends_by_itself():
    bench = await Bench(size=1).start()
    bench.ask("a1", 1, "S")
    b1 = bench.ask("b1", 2, "SE")
    bench.made[0].finish()
    await bench.clock.pass_time(IDLE - 1)
    assert bench.made[0].ids() == []
    await bench.clock.pass_time(1)
    assert bench.made[0].ids() == [["b1"]]
    bench.made[0].finish()
    assert b1.over
    assert not bench.dispatcher.owes


async def test_while_it_closes_sequences_that_have_begun_go_on():
    bench = await Bench(size=2).start()
    bench.ask("a1", 1, "S")
    bench.made[0].finish()
    closing = asyncio.create_task(bench.dispatcher.close(10))
    await settle()
    assert not closing.done()
    begins = bench.ask("b1", 2, "S")
    assert begins.responses[0].error.kind is ErrorKind.UNAVAILABLE
    a2 = bench.ask("a2", 1, "E")
    bench.made[0].finish()
    assert a2.responses[0].error is None
    await settle()
    assert closing.done()
    assert bench.made[0].stopped


async def test_a_sequence_that_never_ends_does_not_keep_a_model_from_closing():
    bench = await Bench(size=2).start()
    bench.ask("a1", 1, "S")
    bench.made[0].finish()
    closing = asyncio.create_task(bench.dispatcher.close(10))
    for _ in range(200):
        await bench.clock.pass_time(100 * 500 * US)
        if closing.done():
            break
        bench.ask("a2", 1)
        bench.made[0].finish()
    assert closing.done()
    assert bench.clock.now() <= 10 * SECOND + 100 * 500 * US


async def test_an_instance_is_released_once_its_sequences_have_ended():
    bench = await Bench(size=1, instances=2).start()
    bench.ask("a1", 1, "S")
    bench.made[0].finish()
    group = bench.dispatcher.group
    (gone,) = group.swap([], [group.slots[0]])
    bench.ask("b1", 2, "S")
    assert bench.made[1].ids() == [["b1"]]
    await settle()
    assert not gone.done()
    bench.ask("a2", 1, "E")
    assert bench.made[0].ids() == [["a2"]]
    bench.made[0].finish()
    await settle()
    assert gone.done()
    assert bench.made[0].stopped
    bench.ask("c1", 3, "S")
    bench.made[1].finish()
    assert bench.made[1].ids() == []


async def test_an_instance_that_is_to_leave_and_dies_ends_its_sequences():
    bench = await Bench(size=1, instances=2).start()
    bench.ask("a1", 1, "S")
    bench.made[0].finish()
    group = bench.dispatcher.group
    (gone,) = group.swap([], [group.slots[0]])
    bench.made[0].die()
    await settle()
    assert gone.done()
    assert bench.ask("a2", 1).error.endswith("was lost")


async def test_a_rescheduled_request_comes_again_until_it_is_answered():
    bench = await Bench("oldest {}", more="iterative_sequence: true").start()
    a = bench.ask("a", 0)
    for _ in range(3):
        assert bench.made[0].ids() == [["a"]]
        bench.made[0].respond(response=RESCHEDULED)
        bench.made[0].free()
        bench.made[0].batches.pop(0)
        assert not a.over
    bench.made[0].finish()
    assert a.responses[0].error is None
    assert (bench.statistics.execution_count, bench.statistics.success.count) == (4, 1)
    assert (bench.statistics.pending, bench.dispatcher.owes) == (0, False)


async def test_a_request_that_cannot_be_rescheduled_is_answered():
    bench = await Bench("oldest {}").start()
    a = bench.ask("a", 1, "S")
    bench.made[0].respond(response=RESCHEDULED)
    bench.made[0].free()
    assert a.error == (
        "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle "
        "such a flag."
    )


async def test_a_cancelled_request_is_not_rescheduled():
    bench = await Bench("oldest {}", more="iterative_sequence: true").start()
    a = bench.ask("a", 0)
    a.submission.cancel()
    bench.made[0].respond(response=RESCHEDULED)
    bench.made[0].free()
    assert a.responses[0].error.kind is ErrorKind.CANCELLED
    assert not bench.dispatcher.owes
