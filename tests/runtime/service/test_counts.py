"""Counts of requests that succeed, fail, are answered with an error, stream, or pass through an ensemble."""

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, responses, value
from tests.waiting import until

from argosy_runtime.errors import ServingError

STAGES = ("compute_input", "compute_infer", "compute_output")


def counts(plane, name: str) -> dict[str, object]:
    """Return everything counted about a model, without the durations."""
    statistics = plane.statistics(name, "").model_stats[0]
    reported = {
        field.name: duration.count for field, duration in statistics.inference_stats.ListFields() if duration.count
    }
    batches = {b.batch_size: [getattr(b, stage).count for stage in STAGES] for b in statistics.batch_stats}
    return {"rows": statistics.inference_count, "runs": statistics.execution_count, "batches": batches, **reported}


def every_stage(count: int) -> dict[str, int]:
    return {"success": count, "queue": count, **dict.fromkeys(STAGES, count)}


async def test_an_error_that_a_model_answers_is_an_answer(repository, serve):
    repository.add(
        "m",
        execute="""
        if x[0, 0] < 0:
            answers.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("no", pb_utils.TritonError.CANCELLED)))
            continue
        assert x[0, 0] > 0
        """,
    )
    plane = await serve()
    await plane.load("m", None, {})
    await value(plane, "m", 1)
    for x in (-1, 0):
        with pytest.raises(ServingError):
            await value(plane, "m", x)
    assert counts(plane, "m") == {"rows": 2, "runs": 3, "batches": {1: [3, 3, 3]}, "fail": 1, **every_stage(2)}


STREAM = """
import threading
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            later = threading.Thread(target=self.answer, args=(request,))
            later.start()
            if WAIT:
                later.join()

    def answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "X")
        sender = request.get_response_sender()
        for _ in range(int(x.as_numpy()[0, 0])):
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x.as_numpy())]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.mark.parametrize("wait", [True, False], ids=["within execute", "after execute"])
@pytest.mark.parametrize("count", [0, 3])
async def test_a_stream_counts_once_however_many_its_responses(repository, serve, wait, count):
    config = CONFIG + "model_transaction_policy { decoupled: true }"
    repository.write("m", {"1/model.py": STREAM.replace("WAIT", str(wait))}, config)
    plane = await serve()
    await plane.load("m", None, {})
    got = [response async for response in responses(plane, ask("m", count))]
    # The last response leaves before its execution ends.
    await until(lambda: plane.statistics("m", "").model_stats[0].execution_count)
    assert len([response for response in got if response.outputs]) == count
    assert counts(plane, "m") == {"rows": 1, "runs": 1, "batches": {1: [1, 1, 1]}, **every_stage(1)}
    infer = plane.statistics("m", "").model_stats[0].inference_stats.compute_infer
    assert infer.ns > 0


ENSEMBLE = """
platform: "ensemble" max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling {
  step [ { model_name: "m" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "mid" } },
         { model_name: "m" model_version: -1 input_map { key: "X" value: "mid" } output_map { key: "Y" value: "Y" } } ]
}
"""


async def test_an_ensemble_counts_its_requests_and_its_models_their_own(repository, serve):
    repository.add("m", execute="assert x[0, 0] > 0")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    await infer(plane, ask("e", 1, 2, 3))
    with pytest.raises(ServingError):
        await infer(plane, ask("e", 0))
    ensemble = {"rows": 3, "runs": 1, "batches": {3: [1, 1, 1]}, "fail": 1, **every_stage(1)}
    assert counts(plane, "e") == ensemble
    step = {"rows": 6, "runs": 3, "batches": {1: [1, 1, 1], 3: [2, 2, 2]}, "fail": 1, **every_stage(2)}
    assert counts(plane, "m") == step


FORK = """
platform: "ensemble" max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "C" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling {
  step [ { model_name: "b" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "B" } },
         { model_name: "c" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "C" } } ]
}
"""


async def test_a_step_for_outputs_that_are_left_out_does_not_run(repository, serve):
    repository.add("b")
    repository.add("c", execute="assert False")
    repository.write("e", {"1/.keep": ""}, FORK)
    plane = await serve()
    await plane.load("e", None, {})
    response = await infer(plane, ask("e", 5, requested_outputs=("B",)))
    assert [(tensor.name, tensor.array.tolist()) for tensor in response.outputs] == [("B", [[5]])]
    assert counts(plane, "c")["runs"] == 0
    with pytest.raises(ServingError):
        await infer(plane, ask("e", 5))
