"""A model that calls another (business logic scripting): what it reads where that cannot be."""

import asyncio

import numpy as np
import pytest
from tests.runtime.service.conftest import CONFIG as FLOATS
from tests.runtime.service.conftest import ask, infer, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, Tensor

CALLER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.call(request) for request in requests]

    def call(self, request):
        name = pb_utils.get_input_tensor_by_name(request, "MODEL").as_numpy()[0].decode()
        x = pb_utils.get_input_tensor_by_name(request, "X")
        answer = pb_utils.InferenceRequest(model_name=name, inputs=[x], requested_output_names=["Y"]).exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", answer.output_tensors()[0].as_numpy())])
"""
CONFIG = """
backend: "python"
input [ { name: "MODEL" data_type: TYPE_STRING dims: [ 1 ] }, { name: "X" data_type: TYPE_FP32 dims: [ 1, 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1, 1 ] } ]
"""
STREAM = """
backend: "python"
input [ { name: "OTHER" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
"""


def through(model: str) -> InferRequest:
    """Return a request that makes the caller call `model`."""
    name = np.array([model.encode()], np.object_)
    x = np.ones((1, 1), np.float32)
    return InferRequest("caller", {"MODEL": Tensor("MODEL", "BYTES", name), "X": Tensor("X", "FP32", x)})


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (
            "nope",
            ErrorKind.UNAVAILABLE,
            (
                "Model nope - Error when running inference: Failed for execute the inference request. Model 'nope' "
                "is not ready."
            ),
        ),
        (
            "stream",
            ErrorKind.UNSUPPORTED,
            (
                "Model stream - Error when running inference: Model stream is using the decoupled. The current BLS "
                "request call doesn't support models using the decoupled transaction policy. Please use "
                "'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'"
            ),
        ),
        (
            "caller",
            ErrorKind.INVALID_ARG,
            (
                "Model caller - Error when running inference: [request id: <id_unknown>] expected 2 inputs but got 1 "
                "inputs for model 'caller'. Got input(s) ['X'], but missing required input(s) ['MODEL']. Please "
                "provide all required input(s)."
            ),
        ),
        ("says no", ErrorKind.NOT_FOUND, "its own words"),
    ],
)
async def test_what_the_caller_reads(repository, serve, model, kind, message):
    repository.write("caller", {"1/model.py": CALLER}, CONFIG)
    repository.write("stream", {"1/model.py": CALLER}, STREAM)
    error = (
        "error = pb_utils.TritonError('its own words', pb_utils.TritonError.NOT_FOUND)\n"
        "answers.append(pb_utils.InferenceResponse(error=error))\ncontinue"
    )
    repository.add("says no", execute=error)
    plane = await serve()
    for name in ("caller", "stream", "says no"):
        await plane.load(name, None, {})
    with pytest.raises(ServingError) as caught:
        await infer(plane, through(model))
    assert (caught.value.kind, caught.value.message) == (kind, message)


async def test_the_answer_comes_back(repository, serve):
    repository.write("caller", {"1/model.py": CALLER}, CONFIG)
    repository.add("double", execute="y = 2 * x")
    plane = await serve()
    for name in ("caller", "double"):
        await plane.load(name, None, {})
    assert (await infer(plane, through("double"))).outputs[0].array.tolist() == [[2.0]]


THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = "model_transaction_policy { decoupled: true }"
both = pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])

# Sends its second response when somebody has seen the first, and goes on until it is cancelled.
STREAMER = """
import os, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            self.send(sender, 0)
            while not os.path.exists({seen!r}):
                time.sleep(0.005)
            number = 0
            while not sender.is_cancelled():
                number += 1
                self.send(sender, number)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def send(self, sender, number):
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.full((1, 1), number, np.float32))]))
"""
READER = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "X")
        call = pb_utils.InferenceRequest(model_name="streamer", inputs=[x], requested_output_names=["Y"])
        responses = call.exec(decoupled=True)
        first = next(responses)
        open({seen!r}, "w").close()
        taken = [next(responses).output_tensors()[0].as_numpy()[0, 0] for _ in range(int(x.as_numpy()[0, 0]))]
        responses.cancel()
        for last in responses:
            pass
        assert taken == list(range(1, 1 + len(taken))), taken
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.full((1, 1), len(taken), np.float32))])
"""
# Answers no request before all are there.
TOGETHER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.waiting = []

    def execute(self, requests):
        self.waiting += [(request.inputs()[0].as_numpy(), request.get_response_sender()) for request in requests]
        if len(self.waiting) == {count}:
            for x, sender in self.waiting:
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]),
                    flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
MANY_AT_ONCE = """
import asyncio
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    async def execute(self, requests):
        answers = await asyncio.gather(*(self.ask(number) for number in range({count})))
        assert [answer.output_tensors()[0].as_numpy()[0, 0] for answer in answers] == list(range({count}))
        y = np.full((1, 1), len(answers), np.float32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]) for _ in requests]

    def ask(self, number):
        x = pb_utils.Tensor("X", np.full((1, 1), number, np.float32))
        return pb_utils.InferenceRequest(model_name="together", inputs=[x], requested_output_names=["Y"]).async_exec()
"""


@both
async def test_responses_of_a_called_model_come_one_by_one_until_cancelled(repository, serve, tmp_path, isolation):
    seen = str(tmp_path / "seen")
    repository.write("streamer", {"1/model.py": STREAMER.format(seen=seen)}, FLOATS + DECOUPLED + isolation)
    repository.write("reader", {"1/model.py": READER.format(seen=seen)}, FLOATS + isolation)
    plane = await serve()
    for name in ("streamer", "reader"):
        await plane.load(name, None, {})
    assert await value(plane, "reader", 1000) == 1000
    assert plane.statistics("streamer", "").model_stats[0].inference_stats.fail.count == 1, "cancelled"


@both
async def test_any_number_of_calls_are_open_at_once(repository, serve, isolation):
    count = 200
    alone = FLOATS.replace("dynamic_batching { }", "") + isolation
    repository.write("together", {"1/model.py": TOGETHER.format(count=count)}, alone)
    repository.write("caller", {"1/model.py": MANY_AT_ONCE.format(count=count)}, alone)
    plane = await serve()
    for name in ("together", "caller"):
        await plane.load(name, None, {})
    assert await value(plane, "caller") == count


async def test_a_model_that_dies_leaves_no_call_open(repository, serve, tmp_path):
    seen = str(tmp_path / "seen")
    reader = READER.format(seen=seen).replace(
        "first = next(responses)", "first = next(responses); import os; os._exit(3)"
    )
    repository.write("streamer", {"1/model.py": STREAMER.format(seen=seen)}, FLOATS + DECOUPLED)
    repository.write("reader", {"1/model.py": reader}, FLOATS)
    plane = await serve()
    for name in ("streamer", "reader"):
        await plane.load(name, None, {})
    with pytest.raises(ServingError, match="exited with code 3"):
        await infer(plane, ask("reader", 1.0))
    open(seen, "w").close()  # noqa: ASYNC230
    await until(lambda: plane.statistics("streamer", "").model_stats[0].inference_stats.fail.count)


async def test_models_that_load_others_do_not_wait_for_one_another(repository, serve):
    for name in ("one", "two"):
        repository.add(name, initialize=f"pb_utils.load_model('under {name}')", config=FLOATS)
        repository.add(f"under {name}", config=FLOATS)
    plane = await serve(parallel_loads=1)
    await asyncio.wait_for(asyncio.gather(plane.load("one", None, {}), plane.load("two", None, {})), 60)
    assert [await value(plane, name, 2.0) for name in ("one", "two", "under one", "under two")] == [2.0] * 4
