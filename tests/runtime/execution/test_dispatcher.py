"""A dispatcher in virtual time: which request goes where and when, with instances that a test controls."""

import asyncio

import pytest
from tests.runtime.execution.fakes import SECOND, TIMES, US, Client, Factory, FakeInstance, VirtualClock, ask, settle

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal, invalid
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.messages import InferRequest, InferResponse, ResponseTemplate
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.tensors import raw_tensor

pytestmark = pytest.mark.usefixtures("cancelled_tasks")


class Bench:
    """A dispatcher and all that it is made of."""

    def __init__(self, instances: int = 1, ordered: bool = False, decoupled: bool = False, **rules: object) -> None:
        self.clock = VirtualClock()
        self.statistics = ModelStatistics()
        self.factory = Factory(decoupled)
        scheduler = DynamicBatcher(BatchingRules(**{"max_batch_size": 8, **rules}))
        order = ResponseOrder() if ordered else None
        makers = [self.factory] * instances
        self.dispatcher = Dispatcher("m", 3, scheduler, makers, self.statistics, self.clock, order)

    async def start(self, *warm_up: list[InferRequest]) -> "Bench":
        """Start with every instance loaded."""
        starting = asyncio.create_task(self.dispatcher.start(warm_up))
        await settle()
        for instance in self.made:
            instance.load()
        await settle()
        if not warm_up:
            await starting
        return self

    @property
    def made(self) -> list[FakeInstance]:
        """Every instance that ever was."""
        return self.factory.made

    def ask(self, name: str = "", rows: int = 1, client: Client | None = None, **fields: object) -> Client:
        """Send a request."""
        client = client or Client()
        client.submission = self.dispatcher.submit(ask(name, rows, **fields), rows, None, client.deliver)
        return client


async def test_requests_of_one_delay_run_together():
    bench = await Bench(delay_ns=100 * US).start()
    a = bench.ask("a")
    await bench.clock.pass_time(40 * US)
    b = bench.ask("b")
    await bench.clock.pass_time(59 * US)
    assert bench.made[0].ids() == []
    await bench.clock.pass_time(1 * US)
    assert bench.made[0].ids() == [["a", "b"]]
    await bench.clock.pass_time(10 * US)
    bench.made[0].finish()
    (response,) = a.responses
    assert (response.model_name, response.model_version, response.id) == ("m", "3", "a")
    assert b.over
    statistics = bench.statistics
    assert (statistics.success.count, statistics.success.ns, statistics.queue.ns) == (2, 180 * US, 160 * US)
    assert (statistics.execution_count, statistics.inference_count, statistics.pending) == (1, 2, 0)
    assert (statistics.compute_infer.count, statistics.compute_infer.ns) == (2, 2 * TIMES.compute_infer_ns)


async def test_the_next_batch_is_at_work_before_the_answers_to_the_last_go_out():
    bench = await Bench(merge=False).start()
    seen = []
    client = Client()
    client.deliver = lambda response: seen.append(bench.made[0].ids())
    bench.ask("a", client=client)
    bench.ask("b")
    bench.made[0].finish()
    assert seen == [[["b"]]]


async def test_what_answers_bring_in_goes_together():
    bench = await Bench().start()

    def again(response: InferResponse) -> None:
        bench.ask(f"after {response.id}")

    for name in "abc":
        client = Client()
        client.deliver = again
        bench.ask(name, client=client)
    bench.made[0].finish()
    bench.made[0].finish()
    assert bench.made[0].ids() == [["after a"]], "b and c were waiting, and went before"
    bench.made[0].finish()
    assert bench.made[0].ids() == [["after b", "after c"]]


async def test_a_client_that_cannot_take_its_answer_harms_no_one():
    bench = await Bench().start()
    broken, other = Client(), Client()

    def deliver(response: InferResponse) -> None:
        raise ConnectionError

    broken.deliver = deliver
    bench.ask("first")
    bench.ask("broken", client=broken)
    bench.ask("other", client=other)
    bench.made[0].finish()
    bench.made[0].finish()
    assert other.over
    bench.ask("later")
    assert bench.made[0].ids() == [["later"]]


async def test_a_batch_that_cannot_be_handed_over_fails_and_the_next_one_goes():
    bench = await Bench(merge=False).start()
    instance = bench.made[0]
    bench.ask("a")
    b, c = bench.ask("b"), bench.ask("c")
    instance.refuses = True
    instance.finish()
    assert "no such thing" in b.error
    await bench.clock.pass_time(0)
    assert instance.ids() == [["c"]]
    instance.finish()
    assert not c.error
    assert bench.statistics.failures[FailureReason.BACKEND] == 1


async def test_outputs_are_those_that_were_requested_in_the_order_of_the_model():
    bench = await Bench(merge=False).start()
    some, every = bench.ask(requested_outputs=("Z",)), bench.ask()
    swapped = bench.ask(requested_outputs=("Z", "Y"))
    for _ in range(3):
        bench.made[0].finish()
    named = [[output.name for output in client.responses[0].outputs] for client in (some, every, swapped)]
    assert named == [["Z"], ["Y", "Z"], ["Y", "Z"]]


@pytest.mark.parametrize(("sent", "retained"), [("YZ", True), ("Y", True), ("Z", True), ("ZY", True), ("YZW", False)])
async def test_a_response_with_some_of_the_requested_outputs_stays_as_it_came(sent: str, retained: bool):
    """Front ends read responses by their templates: a delta of a language model lacks most outputs."""
    bench = await Bench(decoupled=True, merge=False).start()
    client = bench.ask(requested_outputs=("X", "Y", "Z"))
    tensors = [raw_tensor(name, "UINT8", (1,), name.encode()) for name in sent]
    template = ResponseTemplate([tensor.spec() for tensor in tensors], {})
    bench.made[0].respond(response=InferResponse(template=template, raw=[tensor.data for tensor in tensors]))
    (response,) = client.responses
    assert (response.template is template) is retained
    assert [tensor.name for tensor in response.outputs] == [name for name in sent if name != "W"]
    assert [bytes(tensor.data).decode() for tensor in response.outputs] == [name for name in sent if name != "W"]


async def test_order_is_retained_where_it_is_to_be():
    bench = await Bench(2, ordered=True, merge=False).start()
    a, b = bench.ask("a"), bench.ask("b")
    bench.made[1].finish()
    assert not b.over
    bench.made[0].finish()
    assert a.over
    assert b.over


async def test_a_refused_request_does_not_wait_for_its_turn():
    policies = QueuePolicies(QueuePolicy(max_size=1), {})
    bench = await Bench(ordered=True, merge=False, policies=policies).start()
    bench.ask(), bench.ask()
    refused = bench.ask()
    assert "Exceeds maximum queue size" in refused.error
    assert bench.statistics.failures[FailureReason.REJECTED] == 1
    assert bench.statistics.pending == 1


async def test_a_timeout_strikes_while_every_instance_is_busy():
    policies = QueuePolicies(QueuePolicy(timeout_ns=50 * US), {})
    bench = await Bench(merge=False, policies=policies).start()
    running, overdue = bench.ask("a"), bench.ask("b")
    await bench.clock.pass_time(49 * US)
    assert not overdue.over
    await bench.clock.pass_time(1 * US)
    assert overdue.error.endswith("Request timeout expired")
    assert bench.statistics.pending == 0
    bench.made[0].finish()
    assert not running.error


async def test_a_waiting_request_is_cancelled_at_once_a_running_one_later():
    bench = await Bench(merge=False).start()
    running, waiting = bench.ask("a"), bench.ask("b")
    waiting.submission.cancel()
    assert "Request was cancelled" in waiting.error
    running.submission.cancel()
    running.submission.cancel()
    assert bench.made[0].calls == [("cancel", 0)]
    assert not running.over
    bench.made[0].finish()
    assert running.over
    assert bench.statistics.failures[FailureReason.CANCELED] == 2
    assert bench.statistics.pending == 0
    running.submission.cancel()


async def test_a_client_that_was_slow_before_its_request_ran_is_waited_for():
    bench = await Bench(merge=False).start()
    running, waiting = bench.ask("a"), bench.ask("b")
    running.submission.pause()
    waiting.submission.pause()
    assert bench.made[0].calls == [("pause", 0)]
    bench.made[0].finish()
    assert bench.made[0].calls == [("pause", 0), ("pause", 0)]
    waiting.submission.resume()
    assert bench.made[0].calls[-1] == ("resume", 0)


async def test_a_models_own_error_is_an_answer_and_others_are_failures():
    bench = await Bench().start()
    bench.ask("first")
    own, failed, fine = bench.ask(), bench.ask(), bench.ask()
    bench.made[0].finish()
    bench.made[0].finish(ServingError(ErrorKind.INTERNAL, "own", None), internal("no"))
    assert (own.error, failed.error, fine.error) == ("own", "no", "")
    assert bench.statistics.success.count == 3
    assert bench.statistics.failures[FailureReason.BACKEND] == 1
    assert bench.statistics.inference_count == 3


async def test_a_stream_goes_on_after_its_batch_and_is_charged_to_its_end():
    bench = await Bench(decoupled=True, merge=False).start()
    client = bench.ask("a")
    bench.made[0].respond(final=False)
    bench.made[0].free()
    bench.ask("b")
    assert bench.made[0].ids() == [["a"], ["b"]], "it takes another while it streams"
    await bench.clock.pass_time(500 * US)
    bench.made[0].respond()
    assert len(client.responses) == 2
    assert client.over
    assert (bench.statistics.success.count, bench.statistics.execution_count) == (1, 1)
    assert bench.statistics.compute_infer.ns == 500 * US


async def test_a_dead_instance_fails_its_batch_and_its_successor_goes_on():
    bench = await Bench().start()
    struck, waiting = bench.ask("a"), bench.ask("b")
    bench.made[0].die()
    assert struck.error == "m_0 died"
    assert bench.dispatcher.ready
    await bench.clock.pass_time(SECOND)
    bench.made[1].load()
    await settle()
    assert bench.made[1].ids() == [["b"]]
    bench.made[1].finish()
    assert waiting.over
    assert not waiting.error


async def test_where_none_comes_back_requests_are_refused_until_one_does():
    bench = await Bench().start()
    bench.ask("a")
    waiting = bench.ask("b")
    bench.made[0].die()
    await bench.clock.pass_time(SECOND)
    bench.made[1].load(invalid("gone for good"))
    await settle()
    assert "gone for good" in waiting.error
    assert not bench.dispatcher.ready
    assert "gone for good" in bench.ask("c").error
    await bench.clock.pass_time(SECOND)
    bench.made[2].load()
    await settle()
    assert bench.dispatcher.ready
    bench.ask("d")
    assert bench.made[2].ids() == [["d"]]


async def test_closing_answers_what_was_accepted_and_refuses_what_comes():
    bench = await Bench(merge=False).start()
    running, waiting = bench.ask("a"), bench.ask("b")
    closing = asyncio.create_task(bench.dispatcher.close(grace=10))
    await settle()
    assert "being unloaded" in bench.ask("c").error
    bench.made[0].finish()
    bench.made[0].finish()
    await closing
    assert (running.error, waiting.error) == ("", "")
    assert bench.made[0].stopped


async def test_closing_ends_with_its_grace():
    bench = await Bench(merge=False).start()
    running, waiting = bench.ask("a"), bench.ask("b")
    closing = asyncio.create_task(bench.dispatcher.close(grace=10))
    await bench.clock.pass_time(10 * SECOND)
    await closing
    assert "was unloaded" in waiting.error
    assert "was unloaded" in running.error
    assert bench.statistics.pending == 0


async def test_warm_up_counts_and_comes_before_any_request():
    bench = await Bench().start([ask("warm"), ask("warm")])
    waiting = bench.ask("a")
    assert bench.made[0].ids() == [["warm", "warm"]]
    bench.made[0].finish()
    await settle()
    assert bench.made[0].ids() == [["a"]]
    assert not waiting.over
    assert (bench.statistics.inference_count, bench.statistics.execution_count) == (2, 1)


async def test_draining_and_closing_both_end_with_the_last_answer():
    bench = await Bench().start()
    bench.ask()
    waiting = asyncio.create_task(bench.dispatcher.drained())
    abandoned = asyncio.create_task(bench.dispatcher.drained())
    await settle()
    closing = asyncio.create_task(bench.dispatcher.close(grace=60))
    await settle()
    abandoned.cancel()
    await settle()
    assert not waiting.done()
    assert not closing.done()
    bench.made[0].finish()
    await settle()
    assert waiting.done()
    assert closing.done()
    await asyncio.gather(waiting, closing)
