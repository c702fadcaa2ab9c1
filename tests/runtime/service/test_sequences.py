"""Sequences while models change, die or are unloaded, with real models in threads and processes."""

import asyncio

import numpy as np
import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer
from tests.waiting import until

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, Tensor

SEQUENCES = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  STRATEGY
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
  MORE
}
"""
STATE = """
  state [ { input_name: "STATE" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] INITIAL } ]
"""
SUM = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x, start, sequence = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("X", "START", "CORRID")
        )
        if x[0, 0] < 0:
            os._exit(3)
        key = int(sequence[0, 0])
        self.sums[key] = x if start[0, 0] else self.sums[key] + x
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", self.sums[key] * FACTOR)])
"""
STATEFUL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x, state = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("X", "STATE"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + state), pb_utils.Tensor("STATE_OUT", x + state)])
"""
COUNTDOWN = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.steps = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x, start, sequence = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("X", "START", "CORRID")
        )
        key = int(sequence[0, 0])
        self.steps[key] = 0 if start[0, 0] else self.steps[key] + 1
        if self.steps[key] < x[0, 0]:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([[self.steps[key]]], np.float32))])
"""


def _config(strategy: str = "direct {}", more: str = "", state: str = "") -> str:
    batching = SEQUENCES.replace("STRATEGY", strategy).replace("MORE", state)
    return CONFIG.replace("dynamic_batching { }", batching) + more


def _request(x: float, sequence: int | str, flags: str = "", **fields: object) -> InferRequest:
    start, end = "S" in flags, "E" in flags
    return ask("m", x, sequence_id=sequence, sequence_start=start, sequence_end=end, **fields)


async def _sum(plane, x: float, sequence: int | str, flags: str = "", **fields: object) -> float:
    response = await infer(plane, _request(x, sequence, flags, **fields))
    return float(response.outputs[0].array[0, 0])


def _write(repository, factor: int, config: str = "", version: int = 1) -> None:
    repository.write("m", {f"{version}/model.py": SUM.replace("FACTOR", str(factor))}, config or _config())


async def test_a_reload_leaves_a_sequence_at_the_version_where_it_began(repository, serve):
    _write(repository, 1)
    plane = await serve(unload_grace=30.0)
    await plane.load("m", None, {})
    assert await _sum(plane, 1, 7, "S") == 1
    _write(repository, 100)
    await plane.load("m", None, {})
    assert await _sum(plane, 2, 8, "S") == 200
    assert await _sum(plane, 2, 7) == 3
    assert await _sum(plane, 2, 8) == 400
    assert await _sum(plane, 3, 7, "E") == 6
    record = plane.registry.records["m"]
    await until(lambda: not record.leaving)
    with pytest.raises(ServingError, match="must specify the START flag"):
        await _sum(plane, 3, 7)
    assert await _sum(plane, 1, 8, "E") == 500


async def test_a_new_version_gets_new_sequences_only(repository, serve):
    config = _config(more="version_policy { latest { num_versions: 2 } }")
    _write(repository, 1, config)
    plane = await serve()
    await plane.load("m", None, {})
    assert await _sum(plane, 1, 7, "S") == 1
    _write(repository, 100, config, version=2)
    await plane.load("m", None, {})
    assert await _sum(plane, 1, 8, "S") == 100
    assert await _sum(plane, 1, 7, "E") == 2
    assert await _sum(plane, 1, 8, "E") == 200


async def test_an_unloaded_model_answers_its_sequences_until_they_end(repository, serve):
    _write(repository, 1)
    plane = await serve(unload_grace=30.0)
    await plane.load("m", None, {})
    await _sum(plane, 1, 7, "S")
    await plane.unload("m", False)
    assert await _sum(plane, 2, 7) == 3
    with pytest.raises(ServingError, match="has no available versions"):
        await _sum(plane, 2, 8, "S")
    assert plane.registry.records["m"].leaving
    assert await _sum(plane, 3, 7, "E") == 6
    await until(lambda: not plane.registry.records["m"].leaving)


async def test_a_server_that_stops_takes_no_new_sequences(repository, serve):
    _write(repository, 1)
    plane = await serve()
    await plane.load("m", None, {})
    await _sum(plane, 1, 7, "S")
    closing = asyncio.create_task(plane.close(1000.0))
    await asyncio.sleep(0)
    with pytest.raises(ServingError, match="Server is stopping, scheduler for model has stopped accepting"):
        await _sum(plane, 1, 8, "S")
    assert await _sum(plane, 2, 7, "E") == 3
    await asyncio.wait_for(closing, 60)


async def test_fewer_instances_keep_the_sequences(repository, serve):
    config = _config(more="instance_group [ { kind: KIND_CPU count: 2 } ]").replace(
        "max_batch_size: 8", "max_batch_size: 1"
    )
    _write(repository, 1, config)
    plane = await serve(unload_grace=30.0)
    await plane.load("m", None, {})
    for sequence in (1, 2):
        assert await _sum(plane, 1, sequence, "S") == 1
    _write(repository, 1, config.replace("count: 2", "count: 1"))
    load = asyncio.create_task(plane.load("m", None, {}))
    await asyncio.sleep(0.2)
    assert await _sum(plane, 1, 1, "E") == 2
    assert await _sum(plane, 1, 2, "E") == 2
    await asyncio.wait_for(load, 20)
    assert await _sum(plane, 1, 3, "SE") == 1


async def test_a_process_that_ends_ends_its_sequences(repository, serve):
    _write(repository, 1)
    plane = await serve()
    await plane.load("m", None, {})
    await _sum(plane, 1, 7, "S")
    with pytest.raises(ServingError, match="its process"):
        await _sum(plane, -1, 7)
    with pytest.raises(ServingError, match="sequence 7 of model 'm' has ended, because the instance that it ran on"):
        await _sum(plane, 1, 7)
    assert await _sum(plane, 5, 7, "S") == 5


@pytest.mark.parametrize("isolation", ["process", "thread"])
@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
async def test_python_models_have_implicit_state(repository, serve, strategy, isolation):
    initial = 'initial_state { name: "a" data_type: TYPE_FP32 dims: [ 1 ] data_file: "ten" }'
    parameter = f'parameters {{ key: "ISOLATION" value {{ string_value: "{isolation}" }} }}'
    config = _config(strategy, parameter, STATE.replace("INITIAL", initial))
    files = {"1/model.py": STATEFUL, "initial_state/ten": np.float32(10).tobytes()}
    repository.write("m", files, config)
    plane = await serve()
    await plane.load("m", None, {})
    assert await _sum(plane, 1, 7, "S") == 11
    assert await _sum(plane, 1, 8, "S") == 11
    assert await _sum(plane, 5, 7) == 16
    assert await _sum(plane, 1, 8, "E") == 12
    assert await _sum(plane, 1, 7, "E") == 17
    response = await infer(plane, _request(1, 7, "SE"))
    assert [tensor.name for tensor in response.outputs] == ["Y"]
    response = await infer(plane, _request(1, 7, "SE", requested_outputs=("Y",)))
    assert response.outputs[0].array[0, 0] == 11


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "failed to open text file for read"),
        (
            {"initial_state/ten": b"ab"},
            "initial_state setting expects 4 bytes, but the data provided from tenonly has 2 bytes",
        ),
    ],
)
async def test_an_initial_state_that_does_not_fit_fails_the_load(repository, serve, files, message):
    initial = 'initial_state { name: "a" data_type: TYPE_FP32 dims: [ 1 ] data_file: "ten" }'
    repository.write("m", {"1/model.py": STATEFUL, **files}, _config(state=STATE.replace("INITIAL", initial)))
    plane = await serve()
    with pytest.raises(ServingError, match=message):
        await plane.load("m", None, {})


async def test_an_initial_state_lies_in_the_folder_of_the_model(repository, serve):
    initial = 'initial_state { name: "a" data_type: TYPE_FP32 dims: [ 1 ] data_file: "../../secret" }'
    repository.write("m", {"1/model.py": STATEFUL}, _config(state=STATE.replace("INITIAL", initial)))
    (repository.path / "secret").write_bytes(bytes(4))
    plane = await serve()
    with pytest.raises(ServingError, match="must be a path inside the model's folder"):
        await plane.load("m", None, {})


@pytest.mark.parametrize("isolation", ["process", "thread"])
async def test_a_model_releases_requests_to_be_scheduled_again(repository, serve, isolation):
    parameter = f'parameters {{ key: "ISOLATION" value {{ string_value: "{isolation}" }} }}'
    config = _config("oldest { max_candidate_sequences: 4 }", parameter, "iterative_sequence: true")
    repository.write("m", {"1/model.py": COUNTDOWN}, config)
    plane = await serve()
    await plane.load("m", None, {})
    answers = await asyncio.gather(*[infer(plane, ask("m", count)) for count in (3, 0, 5, 1)])
    assert [answer.outputs[0].array[0, 0] for answer in answers] == [3, 0, 5, 1]
    statistics = plane.statistics("m", "").model_stats[0]
    assert statistics.inference_stats.success.count == 4
    assert not plane.owes


async def test_a_plain_model_cannot_have_requests_scheduled_again(repository, serve):
    repository.write("m", {"1/model.py": COUNTDOWN}, _config("oldest {}"))
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match="while the model is not configured to handle such a flag"):
        await infer(plane, _request(2, 7, "S"))


async def test_ids_of_both_types(repository, serve):
    config = _config().replace("TYPE_UINT64", "TYPE_STRING")
    source = SUM.replace("FACTOR", "1").replace("int(sequence[0, 0])", "sequence[0, 0].decode()")
    repository.write("m", {"1/model.py": source}, config)
    plane = await serve()
    await plane.load("m", None, {})
    assert await _sum(plane, 1, "one", "S") == 1
    assert await _sum(plane, 1, "one", "E") == 2
    with pytest.raises(ServingError, match="control 'CORRID' data-type is 'UINT64', but model 'm' expects 'BYTES'"):
        await _sum(plane, 1, 7, "S")


async def test_a_warm_up_names_the_controls(repository, serve):
    warm_up = """
    model_warmup [ {
      name: "w" batch_size: 1
      inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } }
      inputs { key: "START" value { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } }
      inputs { key: "CORRID" value { data_type: TYPE_UINT64 dims: [ 1 ] zero_data: true } }
    } ]
    """
    source = SUM.replace("FACTOR", "1").replace("self.sums = {}", "self.sums = {0: np.zeros((1, 1), np.float32)}")
    repository.write("m", {"1/model.py": source}, _config(more=warm_up))
    plane = await serve()
    await plane.load("m", None, {})
    assert await _sum(plane, 1, 7, "SE") == 1


async def test_a_client_cannot_send_a_control(repository, serve):
    _write(repository, 1)
    plane = await serve()
    await plane.load("m", None, {})
    request = _request(1, 7, "S")
    request.inputs = {**request.inputs, "START": Tensor("START", "INT32", np.ones((1, 1), np.int32))}
    with pytest.raises(ServingError, match="expected 1 inputs but got 2 inputs for model 'm'"):
        await infer(plane, request)
