"""Batches on real instances: threads and processes, order, streams, calls between models."""

import asyncio

import numpy as np
import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, responses, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, RequestTemplate, Tensor

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = "model_transaction_policy { decoupled: true }"


async def stream(plane, request: InferRequest) -> list[float]:
    """Return the values of every response."""
    return [float(r.outputs[0].array[0, 0]) async for r in responses(plane, request) if r.outputs]


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_requests_share_batches_and_get_their_own_answers(repository, serve, isolation):
    repository.add("m", execute="y = x * 2; time.sleep(0.02)", config=CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    answers = await asyncio.gather(*(value(plane, "m", n) for n in range(40)))
    assert answers == [2 * n for n in range(40)]
    statistics = plane.statistics("m", "").model_stats[0]
    assert statistics.inference_count == 40
    assert statistics.execution_count < 40
    assert max(batch.batch_size for batch in statistics.batch_stats) == 8


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_a_model_that_raises_fails_its_requests_and_lives_on(repository, serve, isolation):
    repository.add("m", execute="assert x[0, 0] >= 0", config=CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match="AssertionError"):
        await infer(plane, ask("m", -1.0))
    assert await value(plane, "m", 3) == 3


async def test_instances_work_side_by_side(repository, serve):
    config = CONFIG.replace("dynamic_batching { }", "instance_group [ { kind: KIND_CPU count: 3 } ]")
    repository.add("m", execute="time.sleep(0.3); y = x * 0 + os.getpid()", config=config)
    plane = await serve()
    await plane.load("m", None, {})
    assert len(set(await asyncio.gather(*(value(plane, "m") for _ in range(3))))) == 3


async def test_preserve_ordering_holds_the_quick_behind_the_slow(repository, serve, gate):
    config = CONFIG.replace("dynamic_batching { }", "dynamic_batching { preserve_ordering: true }")
    config += "instance_group [ { kind: KIND_CPU count: 2 } ]"
    repository.add("m", execute=f"if x[0, 0]: {gate.code}", config=config)
    plane = await serve()
    await plane.load("m", None, {})
    finished: list[float] = []

    async def one(number: float) -> None:
        await value(plane, "m", number)
        finished.append(number)

    slow = asyncio.create_task(one(1.0))
    await gate.reached()
    quick = asyncio.create_task(one(0.0))
    await until(lambda: plane.statistics("m", "").model_stats[0].execution_count)
    assert finished == []
    gate.open()
    await asyncio.gather(slow, quick)
    assert finished == [1.0, 0.0]


STREAMER = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count = int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0, 0])
            for n in range(count):
                if request.is_cancelled():
                    break
                time.sleep(0.01)
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.full((1, 1), n, np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_decoupled_models_stream(repository, serve, isolation):
    repository.write("s", {"1/model.py": STREAMER}, CONFIG + DECOUPLED + isolation)
    plane = await serve()
    await plane.load("s", None, {})
    assert await stream(plane, ask("s", 3.0)) == [0, 1, 2]
    assert await stream(plane, ask("s", 0.0)) == []
    with pytest.raises(ServingError) as caught:
        await infer(plane, ask("s", 3.0))
    assert caught.value.kind is ErrorKind.UNSUPPORTED


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_a_closed_stream_cancels_the_request(repository, serve, isolation):
    repository.write("s", {"1/model.py": STREAMER}, CONFIG + DECOUPLED + isolation)
    plane = await serve()
    await plane.load("s", None, {})
    answers = responses(plane, ask("s", 100_000.0))
    await anext(answers)
    await answers.aclose()
    assert await asyncio.wait_for(stream(plane, ask("s", 2.0)), 60) == [0, 1]
    assert plane.statistics("s", "").model_stats[0].inference_stats.fail.count == 1


CALLER = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X")
            call = pb_utils.InferenceRequest(model_name="double", requested_output_names=["Y"], inputs=[x])
            answer = call.exec()
            if answer.has_error():
                answers.append(pb_utils.InferenceResponse(error=pb_utils.TritonError(answer.error().message())))
            else:
                y = pb_utils.get_output_tensor_by_name(answer, "Y").as_numpy() + 1
                answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]))
        return answers
"""


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_models_call_models(repository, serve, isolation):
    repository.add("double", execute="y = 2 * x")
    repository.write("caller", {"1/model.py": CALLER}, CONFIG + isolation)
    plane = await serve()
    await plane.load("caller", None, {})
    with pytest.raises(ServingError, match="double"):
        await infer(plane, ask("caller", 5.0))
    await plane.load("double", None, {})
    assert await value(plane, "caller", 5) == 11


async def test_timeouts_strike_while_the_instance_is_busy(repository, serve, gate):
    config = CONFIG.replace(
        "dynamic_batching { }",
        "dynamic_batching { default_queue_policy { default_timeout_microseconds: 50000 max_queue_size: 2 } }",
    ).replace("max_batch_size: 8", "max_batch_size: 1")
    repository.add("m", execute=gate.code, config=config)
    plane = await serve()
    await plane.load("m", None, {})
    running = asyncio.create_task(value(plane, "m"))
    await gate.reached()
    waiting = [asyncio.create_task(value(plane, "m")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(ServingError, match="Exceeds maximum queue size"):
        await infer(plane, ask("m"))
    for task in waiting:
        with pytest.raises(ServingError, match="Request timeout expired"):
            await task
    assert not running.done(), "they were told while the first still ran"
    gate.open()
    assert await running == 1


async def test_a_model_without_a_batch_dimension_keeps_its_queue_limits(repository, serve, gate):
    config = CONFIG.replace("max_batch_size: 8", "max_batch_size: 0").replace("dims: [ 1 ]", "dims: [ -1, 1 ]")
    limit = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
    repository.add("m", execute=gate.code, config=config.replace("dynamic_batching { }", limit))
    plane = await serve()
    await plane.load("m", None, {})
    running = asyncio.create_task(value(plane, "m", 1))
    await gate.reached()
    waiting = asyncio.create_task(value(plane, "m", 2))
    await asyncio.sleep(0)
    with pytest.raises(ServingError, match="Exceeds maximum queue size"):
        await value(plane, "m", 3)
    gate.open()
    assert (await running, await waiting) == (1, 2)


RESHAPING = """
platform: "ensemble" max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1, 1 ] reshape { shape: [ 1 ] } } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1, 1, 1 ] reshape { shape: [ 1 ] } } ]
ensemble_scheduling { step [ { model_name: "m" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }
"""


@pytest.mark.parametrize("templated", [False, True])
async def test_an_ensembles_own_reshape_surrounds_its_steps(repository, serve, templated):
    repository.add("m", execute="assert x.shape == (2, 1); y = x + 1")
    repository.write("e", {"1/.keep": ""}, RESHAPING)
    plane = await serve()
    await plane.load("e", None, {})
    array = np.array([[[1]], [[2]]], np.float32)
    alone = InferRequest("e", {"X": Tensor("X", "FP32", array)})
    template = RequestTemplate(alone)
    for _ in range(2):
        request = template.request("", [array.tobytes()]) if templated else alone
        assert (await infer(plane, request)).outputs[0].array.tolist() == [[[[2]]], [[[3]]]]
        alone = InferRequest("e", {"X": Tensor("X", "FP32", array)})


async def test_large_tensors_pass_unchanged(repository, serve):
    config = CONFIG.replace("dims: [ 1 ]", "dims: [ -1 ]")
    repository.add("m", config=config)
    plane = await serve()
    await plane.load("m", None, {})
    array = np.arange(300_000, dtype=np.float32).reshape(1, -1)
    request = ask("m")
    request.inputs["X"] = type(request.inputs["X"])("X", "FP32", array)
    response = await infer(plane, request)
    np.testing.assert_array_equal(response.outputs[0].array, array)
