"""Models that answer when `execute` has returned, and clients that read slower than they are answered."""

import asyncio

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, responses, value
from tests.waiting import until

from argosy_runtime.frontends.response_stream import HIGH_WATER

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = "model_transaction_policy { decoupled: true }"
both = pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])

# Answers no request before the second is there, which it gets because its `execute` has returned.
IN_PAIRS = """
import threading
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.waiting = []

    def execute(self, requests):
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            self.waiting.append((x, request.get_response_sender()))
        if len(self.waiting) > 1:
            waiting, self.waiting = self.waiting, []
            threading.Thread(target=self.answer, args=(waiting,)).start()

    def answer(self, waiting):
        for x, sender in waiting:
            if x[0, 0] < 0:
                del sender
                continue
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + sum(x for x, _ in waiting))]),
                flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# Streams as fast as it can, in a thread; tells a request for 0 responses how many it has sent.
FAST = """
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sent = 0

    def execute(self, requests):
        for request in requests:
            count = int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0, 0])
            sender = request.get_response_sender()
            if count:
                threading.Thread(target=self.stream, args=(sender, count)).start()
            else:
                self.answer(sender, self.sent, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def stream(self, sender, count):
        for number in range(count):
            if sender.is_cancelled():
                break
            self.answer(sender, number)
            self.sent += 1
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def answer(self, sender, number, flags=0):
        y = np.full((1, 1), number, np.float32)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]), flags=flags)
"""
MANY = 20_000


async def sent(plane) -> int:
    """Return the number of answers of the streaming model, once it sends no more."""
    before, now = -1, 0
    while before != now or now < HIGH_WATER:
        before, now = now, await _sent(plane)
    return now


async def _sent(plane) -> int:
    async for response in responses(plane, ask("s", 0.0)):
        if response.outputs:
            return int(response.outputs[0].array[0, 0])
    raise AssertionError("no answer")


@both
async def test_a_model_that_is_not_decoupled_may_answer_later(repository, serve, isolation):
    config = CONFIG.replace("dynamic_batching { }", "") + isolation
    repository.write("m", {"1/model.py": IN_PAIRS}, config)
    plane = await serve()
    await plane.load("m", None, {})
    assert await asyncio.gather(value(plane, "m", 1), value(plane, "m", 2)) == [4, 5]
    statistics = plane.statistics("m", "").model_stats[0]
    assert (statistics.inference_count, statistics.inference_stats.success.count) == (2, 2)


@both
async def test_one_that_never_answers_is_reported(repository, serve, isolation):
    config = CONFIG.replace("dynamic_batching { }", "") + isolation
    repository.write("m", {"1/model.py": IN_PAIRS}, config)
    plane = await serve()
    await plane.load("m", None, {})
    one, other = await asyncio.gather(value(plane, "m", 2), infer(plane, ask("m", -1.0)), return_exceptions=True)
    assert one == 3
    assert str(other) == "Python model 'm' released its request without sending a response."


@pytest.fixture(params=["", THREAD], ids=["process", "thread"])
async def slow_client(request, repository, serve):
    """Return a server, and a stream of which a client has read the first response."""
    config = CONFIG.replace("dynamic_batching { }", "") + DECOUPLED + request.param
    repository.write("s", {"1/model.py": FAST}, config)
    plane = await serve()
    await plane.load("s", None, {})
    stream = responses(plane, ask("s", float(MANY)))
    await anext(stream)
    return plane, stream


async def test_a_slow_client_holds_its_model_up(slow_client):
    plane, stream = slow_client
    assert await sent(plane) < MANY / 2
    rest = [int(response.outputs[0].array[0, 0]) async for response in stream if response.outputs]
    assert rest == list(range(1, MANY))


async def test_a_slow_client_that_goes_lets_its_model_go_on(slow_client):
    plane, stream = slow_client
    before = await sent(plane)
    await stream.aclose()
    await until(lambda: plane.statistics("s", "").model_stats[0].inference_stats.fail.count)
    assert before <= await sent(plane) < MANY
