"""Ensembles with models that answer when the test says so: calls, cancellation, back-pressure, errors, counts."""

import asyncio
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.execution.fakes import US, Client, Factory, Submitted, VirtualClock, ask, settle
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal, unavailable
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.execution.ensembles import EnsembleRequest, EnsembleRunner
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps
from argosy_runtime.telemetry.statistics import ModelStatistics


class StepRequest(Submitted):
    """A request that came to a step's model."""

    def __init__(self, index: int, request: InferRequest, deliver: Deliver) -> None:
        super().__init__()
        self.index = index
        self.request = request
        self.deliver = deliver

    def answer(self, *names: str, final: bool = True, error: ServingError | None = None) -> None:
        """Send a response with these outputs; without any and without an error it is a bare final flag."""
        outputs = [Tensor(name, "FP32", np.zeros(1, np.float32)) for name in names] or None
        self.deliver(InferResponse(outputs=outputs, error=error, final=final))


class FakeModels:
    """`Models` that a test answers for."""

    def __init__(self) -> None:
        self.steps: list[StepRequest] = []
        self.holds = 0
        self.at_once: list[ServingError | str] = []
        """What becomes of the next requests before they are submitted: refused, or answered."""

    def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
        step = StepRequest(index, request, deliver)
        self.steps.append(step)
        if self.at_once:
            what = self.at_once.pop(0)
            if isinstance(what, ServingError):
                raise what
            step.answer(what)
        return step

    def hold(self) -> None:
        self.holds += 1

    def release(self) -> None:
        self.holds -= 1


def graph(*steps: tuple[str, str, str]) -> ModelConfig:
    """Return steps as model, what it reads, what it writes; in, out and what is between."""
    config = ModelConfig(name="e")
    config.input.add(name="X")
    config.output.add(name="out")
    for model, reads, writes in steps:
        step = config.ensemble_scheduling.step.add(model_name=model, model_version=-1)
        step.input_map.update({"X" if i == 0 else f"x{i}": name for i, name in enumerate(reads.split())})
        step.output_map["Y"] = writes
    return config


def model_config(name: str, version: int) -> ModelConfig:
    config = ModelConfig(name=name)
    config.model_transaction_policy.decoupled = name.startswith("stream")
    return config


ONE = graph(("a", "X", "out"))
CHAIN = graph(("a", "X", "mid"), ("b", "mid", "out"))
FORK = graph(("a", "X", "left"), ("b", "X", "right"), ("c", "left right", "out"))
STREAM = graph(("stream", "X", "token"), ("b", "token", "out"))


class Bench:
    """An ensemble and the models of its steps."""

    def __init__(self, config: ModelConfig, limit: int = 0) -> None:
        self.models = FakeModels()
        self.statistics = ModelStatistics()
        self.clock = VirtualClock()
        steps = EnsembleSteps.of(config, model_config)
        self.runner = EnsembleRunner(steps, 2, self.models, self.statistics, self.clock, limit)
        self.client = Client()

    def ask(self) -> EnsembleRequest:
        """Send a request."""
        return self.runner.submit(ask("7"), 1, self.client.deliver, self.models)

    def ask_many(self, count: int) -> list[Client]:
        """Send requests of a client each."""
        clients = [Client() for _ in range(count)]
        for client in clients:
            self.runner.submit(ask("7"), 1, client.deliver, self.models)
        return clients

    @property
    def steps(self) -> list[StepRequest]:
        """The requests to the steps' models."""
        return self.models.steps


async def test_a_client_that_cannot_take_a_response_keeps_nothing_from_its_end(caplog):
    bench = Bench(STREAM)

    def gone(response: InferResponse) -> None:
        raise ConnectionError("gone")

    bench.runner.submit(ask("7"), 1, gone, bench.models)
    bench.steps[0].answer("Y", final=False)
    bench.steps[0].answer()
    bench.steps[1].answer("Y")
    assert (bench.runner.running, bench.models.holds) == (0, 0)
    assert "a response of ensemble 'e' could not be delivered" in caplog.text


async def test_a_request_goes_through_its_steps_and_counts_once():
    bench = Bench(CHAIN)
    bench.ask()
    assert bench.models.holds == 1
    bench.steps[0].answer("Y")
    await bench.clock.pass_time(5 * US)
    bench.steps[1].answer("Y")
    (response,) = bench.client.responses
    assert (response.model_name, response.model_version, response.id, response.final) == ("e", "2", "7", True)
    assert [output.name for output in response.outputs] == ["out"]
    assert bench.models.holds == 0
    counts = bench.statistics
    assert (counts.success.count, counts.execution_count, counts.compute_infer.ns) == (1, 1, 5 * US)


def test_steps_may_answer_while_they_are_submitted():
    bench = Bench(FORK)
    bench.models.at_once = ["Y", "Y", "Y"]
    bench.ask()
    assert [step.index for step in bench.steps] == [0, 1, 2]
    assert not bench.client.error
    assert bench.client.over


def test_a_cancelled_request_is_answered_and_its_open_steps_are_reported():
    bench = Bench(FORK)
    request = bench.ask()
    bench.steps[0].answer("Y")
    request.cancel()
    request.cancel()
    assert [step.calls for step in bench.steps] == [[], ["cancel"]]
    assert bench.client.responses[-1].error.kind is ErrorKind.CANCELLED
    bench.steps[1].answer("Y")
    assert len(bench.steps) == 2, "nothing follows"
    assert bench.models.holds == 0
    assert bench.statistics.failures[FailureReason.CANCELED] == 1


def test_an_error_of_a_step_is_the_answer_and_its_siblings_are_reported():
    bench = Bench(FORK)
    bench.ask()
    bench.steps[0].answer(error=internal("no"))
    assert bench.client.error == "in ensemble 'e', no"
    assert bench.steps[1].calls == ["cancel"]
    assert bench.statistics.failures[FailureReason.BACKEND] == 1


@pytest.mark.parametrize("at_once", [["Y", unavailable("gone")], [unavailable("gone")]], ids=["second", "first"])
def test_a_step_that_is_refused_is_reported_with_the_ensemble(at_once: list[ServingError | str]):
    bench = Bench(FORK)
    bench.models.at_once = list(at_once)
    request = bench.ask()
    assert bench.client.error == "in ensemble 'e', gone"
    assert bench.models.holds == 0
    assert len(bench.steps) == len(at_once), "no further step begins"
    request.cancel()
    request.pause()


def test_a_slow_client_makes_the_steps_wait_also_those_that_begin_later():
    bench = Bench(STREAM)
    request = bench.ask()
    request.pause()
    bench.steps[0].answer("Y", final=False)
    assert [step.calls for step in bench.steps] == [["pause"], ["pause"]]
    request.resume()
    bench.steps[1].answer("Y")
    bench.steps[0].answer("Y", final=False)
    assert [step.calls for step in bench.steps] == [["pause", "resume"], ["pause", "resume"], []]
    bench.steps[2].answer("Y")
    bench.steps[0].answer()
    assert [response.final for response in bench.client.responses] == [False, False, True]
    assert bench.statistics.success.count == 1


class Numbered(FakeModels):
    """Models whose answers carry the number of the request that they answer."""

    def answer(self, at: int, *, final: bool = True) -> None:
        """Answer the request with this place in `steps` with that number."""
        tensor = Tensor("Y", "FP32", np.full(1, at, np.float32))
        self.steps[at].deliver(InferResponse(outputs=[tensor], final=final))


def numbers(client: Client) -> list[int]:
    """Return what the responses of a client carry, in their order."""
    return [int(response.outputs[0].array[0]) for response in client.responses if response.outputs]


@given(st.permutations(range(1, 6)), st.sampled_from([0, 2]))
def test_a_stream_keeps_its_order_where_instances_of_the_step_behind_it_overtake_one_another(
    finished: list[int], limit: int
):
    bench = Bench(STREAM, limit)
    bench.models = models = Numbered()
    bench.ask()
    for _ in range(5):
        bench.steps[0].answer("Y", final=False)
    bench.steps[0].answer()
    waiting = list(finished)
    while waiting:
        at = next(at for at in waiting if at < len(bench.steps))
        waiting.remove(at)
        models.answer(at)
    assert numbers(bench.client) == [1, 2, 3, 4, 5]
    assert [response.final for response in bench.client.responses] == [False] * 4 + [True]


def test_streams_behind_a_stream_follow_one_another():
    bench = Bench(graph(("stream", "X", "token"), ("stream2", "token", "out")))
    bench.models = models = Numbered()
    bench.ask()
    for _ in range(2):
        bench.steps[0].answer("Y", final=False)
    bench.steps[0].answer()
    for at, final in ((2, False), (1, False), (2, True), (1, False), (1, True)):
        models.answer(at, final=final)
    assert numbers(bench.client) == [1, 1, 1, 2, 2]


def test_an_error_behind_a_stream_waits_for_no_earlier_piece():
    bench = Bench(STREAM)
    bench.ask()
    for _ in range(2):
        bench.steps[0].answer("Y", final=False)
    bench.steps[2].answer(error=internal("no"))
    assert bench.client.error == "in ensemble 'e', no"
    assert bench.steps[1].calls == ["cancel"]


async def test_a_request_that_is_over_leaves_no_circle_to_keep_its_tensors():
    factory, clock = Factory(), VirtualClock()
    dispatcher = Dispatcher("m", 1, DynamicBatcher(BatchingRules()), [factory], ModelStatistics(), clock)
    starting = asyncio.create_task(dispatcher.start())
    await settle()
    factory.made[0].load()
    await starting

    class Models(FakeModels):
        def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
            return dispatcher.submit(request, 1, None, deliver)

    models = Models()
    runner = EnsembleRunner(EnsembleSteps.of(ONE, model_config), 2, models, ModelStatistics(), clock)
    array = np.zeros(1, np.float32)
    tensors = weakref.ref(array)
    gc.disable()
    try:
        request = InferRequest("e", {"X": Tensor("X", "FP32", array)})
        runner.submit(request, 1, lambda response: None, models)
        del array, request
        assert tensors() is not None
        factory.made[0].finish()
        await settle()
        assert tensors() is None
    finally:
        gc.enable()


def test_a_step_has_no_more_open_requests_than_the_limit():
    bench = Bench(CHAIN, limit=2)
    clients = bench.ask_many(4)
    assert [step.index for step in bench.steps] == [0, 0]
    bench.steps[0].answer("Y")
    assert [step.index for step in bench.steps] == [0, 0, 1, 0]
    for number in range(1, 8):
        bench.steps[number].answer("Y")
    assert all(client.over for client in clients)
    assert (bench.runner.running, bench.models.holds) == (0, 0)


def test_a_stream_waits_while_the_step_behind_it_is_full():
    bench = Bench(STREAM, limit=1)
    bench.ask()
    stream = bench.steps[0]
    stream.answer("Y", final=False)
    assert stream.calls == []
    stream.answer("Y", final=False)
    stream.answer("Y", final=False)
    assert (stream.calls, len(bench.steps)) == (["pause"], 2)
    bench.steps[1].answer("Y")
    assert (stream.calls, len(bench.steps)) == (["pause"], 3)
    bench.steps[2].answer("Y")
    assert (stream.calls, len(bench.steps)) == (["pause", "resume"], 4)
    stream.answer()
    bench.steps[3].answer("Y")
    assert [response.final for response in bench.client.responses] == [False, False, True]


def test_a_client_that_reads_slowly_holds_a_stream_that_a_full_step_has_let_go():
    bench = Bench(STREAM, limit=1)
    request = bench.ask()
    for _ in range(2):
        bench.steps[0].answer("Y", final=False)
    request.pause()
    bench.steps[1].answer("Y")
    assert bench.steps[0].calls == ["pause", "pause"]
    request.resume()
    assert bench.steps[0].calls == ["pause", "pause", "resume"]


def test_what_waits_leaves_with_its_request():
    bench = Bench(ONE, limit=1)
    clients = [Client() for _ in range(4)]
    requests = [bench.runner.submit(ask("7"), 1, client.deliver, bench.models) for client in clients[:3]]
    requests[1].cancel()
    assert clients[1].responses[-1].error.kind is ErrorKind.CANCELLED
    bench.steps[0].answer("Y")
    assert len(bench.steps) == 2, "the third one follows the first"
    requests[2].cancel()
    bench.steps[1].answer("Y")
    bench.runner.submit(ask("7"), 1, clients[3].deliver, bench.models)
    bench.steps[2].answer("Y")
    assert [bool(client.error) for client in clients] == [False, True, True, False]
    assert (bench.runner.running, bench.models.holds) == (0, 0)


def test_an_error_lets_a_waiting_stream_go_on():
    bench = Bench(STREAM, limit=1)
    bench.ask()
    for _ in range(2):
        bench.steps[0].answer("Y", final=False)
    bench.steps[1].answer(error=internal("no"))
    assert bench.client.error == "in ensemble 'e', no"
    assert bench.steps[0].calls == ["pause", "resume", "cancel"]
    assert len(bench.steps) == 2


def test_many_waiting_calls_that_are_answered_at_once_need_no_deep_stack():
    bench = Bench(ONE, limit=1)
    clients = bench.ask_many(5000)
    bench.models.at_once = ["Y"] * 4999
    bench.steps[0].answer("Y")
    assert all(client.over for client in clients)
