"""Streams between models: a decoupled model that calls another one, and what becomes of such calls."""

import asyncio
import time

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, responses, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = "model_transaction_policy { decoupled: true }"
MOST_AHEAD = 64
"""Responses that a thread may have made before the event loop takes one."""
both = pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])

# Answers X times, then with the final flag alone.
REPEAT = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(request.inputs()[0].as_numpy()[0, 0])):
                y = pb_utils.Tensor("Y", np.full((1, 1), number, np.float32))
                sender.send(pb_utils.InferenceResponse([y], parameters={"number": number}))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
# Passes on what another model answers, in a thread of its own, and counts the responses as Triton's examples do.
RELAY = """
import threading
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            arguments = (request.get_response_sender(), request.inputs()[0])
            {begin}

    def relay(self, sender, x):
        call = pb_utils.InferenceRequest(model_name="{called}", inputs=[x], requested_output_names=["Y"])
        count = 0
        for response in call.exec(decoupled=True):
            if len(response.output_tensors()) > 0:
                y = pb_utils.get_output_tensor_by_name(response, "Y")
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y.as_numpy())]))
            count += 1
        assert count - 1 == x.as_numpy()[0, 0], count
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
AT_ONCE = "self.relay(*arguments)"
IN_A_THREAD = "threading.Thread(target=self.relay, args=arguments, daemon=True).start()"
COROUTINE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            sender, x = request.get_response_sender(), request.inputs()[0]
            call = pb_utils.InferenceRequest(model_name="repeat", inputs=[x], requested_output_names=["Y"])
            stream = await call.async_exec(decoupled=True)
            numbers = [response.parameters() async for response in stream]
            again = [response.parameters() async for response in stream]
            assert numbers == again and numbers[-1] == "{}", (numbers, again)
            assert numbers[1] == '{"number": 1}', numbers
            sender.send(pb_utils.InferenceResponse([x]), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


async def stream(plane, model: str, count: float) -> list[float]:
    """Return the numbers that a model answers."""
    answers = [response async for response in responses(plane, ask(model, count))]
    for answer in answers:
        if answer.error is not None:
            raise answer.error
    return [float(answer.outputs[0].array[0, 0]) for answer in answers if not answer.is_empty]


@both
@pytest.mark.parametrize("begin", [AT_ONCE, IN_A_THREAD], ids=["in execute", "in a thread"])
async def test_streams_pass_through_decoupled_models(repository, serve, isolation, begin):
    streaming = CONFIG + DECOUPLED + isolation
    repository.write("repeat", {"1/model.py": REPEAT}, streaming)
    repository.write("relay", {"1/model.py": RELAY.format(begin=begin, called="repeat")}, streaming)
    repository.write("outer", {"1/model.py": RELAY.format(begin=begin, called="relay")}, streaming)
    plane = await serve()
    for name in ("repeat", "relay", "outer"):
        await plane.load(name, None, {})
    streams = await asyncio.gather(*(stream(plane, model, 20) for model in ("relay", "outer") * 4))
    assert streams == [list(range(20))] * 8
    assert await stream(plane, "outer", 0) == []


@both
async def test_a_coroutine_iterates_over_the_responses_of_a_call(repository, serve, isolation):
    repository.write("repeat", {"1/model.py": REPEAT}, CONFIG + DECOUPLED + isolation)
    source = COROUTINE.replace("[x])", '[pb_utils.Tensor("Y", x.as_numpy())])')
    repository.write("caller", {"1/model.py": source}, CONFIG + DECOUPLED + isolation)
    plane = await serve()
    for name in ("repeat", "caller"):
        await plane.load(name, None, {})
    assert await stream(plane, "caller", 5) == [5]


# Writes down that it has sent a response, and that it is cancelled.
ENDLESS = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            with open({sent!r}, "w", buffering=1) as sent:
                while not sender.is_cancelled():
                    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.zeros((1, 1), np.float32))]))
                    print("sent", file=sent)
                print("cancelled", file=sent)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
SLOW_READER = """
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        x = requests[0].inputs()
        call = pb_utils.InferenceRequest(model_name="endless", inputs=x, requested_output_names=["Y"])
        stream = call.exec(decoupled=True)
        next(stream)
        open({reached!r}, "w").close()
        while not os.path.exists({opened!r}):
            time.sleep(0.005)
        for response in stream:
            if response.has_error():
                assert response.error().code() == pb_utils.TritonError.CANCELLED
                break
        return [pb_utils.InferenceResponse(response.output_tensors()) for _ in requests]
"""


@both
async def test_a_producer_waits_for_the_reader_and_ends_with_the_client(repository, serve, tmp_path, isolation):
    sent, reached, opened = tmp_path / "sent", tmp_path / "reached", tmp_path / "opened"
    repository.write("endless", {"1/model.py": ENDLESS.format(sent=str(sent))}, CONFIG + DECOUPLED + isolation)
    source = SLOW_READER.format(reached=str(reached), opened=str(opened))
    repository.write("reader", {"1/model.py": source}, CONFIG + isolation)
    plane = await serve()
    for name in ("endless", "reader"):
        await plane.load(name, None, {})
    requested = asyncio.create_task(infer(plane, ask("reader", 1.0)))
    await until(reached.exists)
    await until(lambda: sent.read_text().count("sent") >= 32)
    async with asyncio.timeout(30):
        before = 0
        while (size := sent.stat().st_size) != before:  # it does not go on for ever: it waits
            before = size
            await asyncio.sleep(1)
    requested.cancel()
    await until(lambda: sent.read_text().endswith("cancelled\n"))
    opened.touch()
    repository.add("other")
    await plane.load("other", None, {})
    assert await value(plane, "other", 3) == 3


CALLER = """
import concurrent.futures
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.executor = concurrent.futures.ThreadPoolExecutor()

    def execute(self, requests):
        call = pb_utils.InferenceRequest(model_name="held", inputs=requests[0].inputs(), requested_output_names=["Y"])
        answer = self.executor.submit(call.exec).result()
        assert not answer.has_error(), answer.error().message()
        return [pb_utils.InferenceResponse(answer.output_tensors()) for _ in requests]
"""


async def test_the_call_of_a_foreign_thread_is_its_own_model_s(repository, serve, gate):
    repository.write("caller", {"1/model.py": CALLER}, CONFIG + THREAD)
    repository.add("held", initialize=f"self.wait = lambda: {gate.code}", execute="self.wait()")
    repository.add("later", config=CONFIG + THREAD)
    plane = await serve()
    for name in ("caller", "held", "later"):
        await plane.load(name, None, {})
    requested = asyncio.create_task(value(plane, "caller", 4))
    await gate.reached()
    await plane.unload("later", False)
    await until(lambda: "later" not in plane.registry.records or not any(plane.registry.records["later"].serving()))
    await asyncio.sleep(0.2)
    gate.open()
    assert await requested == 4


@both
async def test_a_decoupled_call_that_is_refused_is_an_iterator_over_the_error(repository, serve, isolation):
    source = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        call = pb_utils.InferenceRequest(model_name="nope", inputs=requests[0].inputs(), requested_output_names=["Y"])
        (answer,) = call.exec(decoupled=True)
        return [pb_utils.InferenceResponse(error=answer.error()) for _ in requests]
"""
    repository.write("caller", {"1/model.py": source}, CONFIG + isolation)
    plane = await serve()
    await plane.load("caller", None, {})
    with pytest.raises(ServingError, match="Model 'nope' is not ready") as caught:
        await infer(plane, ask("caller", 1.0))
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_thread_waits_for_an_event_loop_that_delivers_nothing(repository, serve, tmp_path):
    sent = tmp_path / "sent"
    repository.write("endless", {"1/model.py": ENDLESS.format(sent=str(sent))}, CONFIG + DECOUPLED + THREAD)
    plane = await serve()
    await plane.load("endless", None, {})
    answers = responses(plane, ask("endless", 1.0))
    assert (await anext(answers)).error is None
    before = sent.read_text().count("sent")
    time.sleep(1)  # noqa: ASYNC251 - the event loop stands still
    assert sent.read_text().count("sent") <= before + 1 + MOST_AHEAD
    await anext(answers)
    await answers.aclose()
    await until(lambda: sent.read_text().endswith("cancelled\n"))
