"""Traces of requests in the dispatcher: every record completes once, however its request ends."""

import asyncio

import pytest
from tests.runtime.execution.fakes import TIMES, Client, Factory, FakeInstance, VirtualClock, ask, settle

from argosy_runtime.errors import internal
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.messages import InferRequest
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.traces import OpenTraces, TraceLevel, TraceRecord

pytestmark = pytest.mark.usefixtures("cancelled_tasks")
COMPUTE = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
RAN = ["REQUEST_START", "QUEUE_START", *COMPUTE, "REQUEST_END"]
NOT_RUN = ["REQUEST_START", "QUEUE_START", "REQUEST_END"]


class Bench:
    """A dispatcher with one instance, whose requests are traced."""

    def __init__(self, decoupled: bool = False, **rules: object) -> None:
        self.clock = VirtualClock()
        self.factory = Factory(decoupled)
        self.done: list[TraceRecord] = []
        self.traces = OpenTraces()
        scheduler = DynamicBatcher(BatchingRules(**{"max_batch_size": 8, **rules}))
        self.dispatcher = Dispatcher("m", 3, scheduler, [self.factory], ModelStatistics(), self.clock)

    async def start(self) -> FakeInstance:
        """Return the loaded instance."""
        starting = asyncio.create_task(self.dispatcher.start())
        await settle()
        self.factory.made[0].load()
        await starting
        await self.clock.pass_time(50)
        return self.factory.made[0]

    def ask(self, name: str = "") -> tuple[Client, InferRequest]:
        """Send a traced request."""
        client, request = Client(), ask(name)
        record = TraceRecord(TraceLevel.TIMESTAMPS, "", self.traces, self.done.append)
        request.trace = record.add()

        def deliver(response) -> None:
            is_final = response.final
            client.deliver(response)
            if is_final:
                record.over()

        client.submission = self.dispatcher.submit(request, 1, None, deliver)
        return client, request

    def names(self) -> list[list[str]]:
        """Return the activities of the complete records."""
        return [[name for name, _ in record.traces[0].activities] for record in self.done]


async def test_a_batch_is_traced_with_its_times():
    bench = Bench(delay_ns=100)
    instance = await bench.start()
    bench.ask("a")
    bench.ask("b")
    await bench.clock.pass_time(150)
    assert not bench.done
    instance.finish()
    assert bench.names() == [RAN, RAN]
    stamps = dict(bench.done[0].traces[0].activities)
    began = stamps["COMPUTE_START"]
    assert stamps["QUEUE_START"] == 50
    assert began == 150
    assert stamps["COMPUTE_END"] == began + TIMES.compute_input_ns + TIMES.compute_infer_ns + TIMES.compute_output_ns
    assert stamps["REQUEST_END"] == 200
    assert (bench.done[0].traces[0].model_name, bench.done[0].traces[0].model_version) == ("m", "3")


@pytest.mark.parametrize("end", ["free first", "respond first"])
async def test_a_decoupled_request_is_traced_until_both_its_ends(end: str):
    bench = Bench(decoupled=True)
    instance = await bench.start()
    bench.ask()
    await settle()
    instance.respond(final=False)
    steps = [instance.free, instance.end] if end == "free first" else [instance.end, instance.free]
    steps[0]()
    assert not bench.done
    steps[1]()
    assert bench.names() == [RAN]


async def test_a_failed_batch_and_a_lost_instance_end_the_trace():
    bench = Bench()
    instance = await bench.start()
    bench.ask()
    await settle()
    instance.fail(internal("no"))
    assert bench.names() == [RAN]
    bench.ask()
    await settle()
    instance.die()
    assert bench.names() == [RAN, RAN]


async def test_a_refused_a_cancelled_and_an_unsent_request_end_theirs():
    policies = QueuePolicies(QueuePolicy(max_size=1), {})
    bench = Bench(policies=policies)
    instance = await bench.start()
    bench.ask()
    await settle()
    waiting, _ = bench.ask()
    bench.ask()
    assert bench.names() == [NOT_RUN]
    waiting.submission.cancel()
    assert bench.names() == [NOT_RUN] * 2
    instance.finish()
    instance.refuses = True
    bench.ask()
    await settle()
    assert bench.names() == [NOT_RUN] * 2 + [RAN, NOT_RUN]


async def test_a_trace_is_open_until_its_record_is_complete():
    bench = Bench()
    instance = await bench.start()
    _, request = bench.ask()
    await settle()
    assert bench.traces.find(request.trace.id) is request.trace
    instance.finish()
    assert bench.traces.find(request.trace.id) is None
