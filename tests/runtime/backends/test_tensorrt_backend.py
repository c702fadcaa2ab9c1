"""The TensorRT backend on a stand-in of the library, and a played GPU whose streams work only when waited for."""

import gc
from typing import Any

import numpy as np
import pytest
import torch
from tests.runtime.backends.fake_device import count_transfers
from tests.runtime.backends.plans import (
    CONFIG,
    FLOAT,
    INT64,
    PROFILES,
    SHAPE_META,
    WIDE,
    ask,
    backend,
    doubling,
    gpu,
    info,
    load,
    model,
    node,
    plan,
    ranges,
    refusal,
    reshaping,
    result,
    rows,
    trt,
)

from argosy_runtime.backends.devices import dlpack
from argosy_runtime.errors import ErrorKind
from argosy_runtime.messages import InferRequest, Tensor

__all__ = ["backend", "gpu", "load", "trt"]


@pytest.mark.parametrize("version", ["10.16.1.11", "11.4.0.106"])
def test_a_batch_is_joined_run_once_and_split(trt: Any, load: Any, responder: Any, gpu: Any, version: str) -> None:
    trt.become(version)
    instance = load(plan(doubling(2), version, **WIDE))
    for _ in range(3):
        responder.sent.clear()
        with count_transfers() as counts:
            instance.execute([ask(rows([1, 2])), ask(rows([3, 4], [5, 6]))], responder)
        assert result(responder.only(0)) == [[2, 4]]
        assert result(responder.only(1)) == [[6, 8], [10, 12]]
        assert counts.to_host == 1
    trt.become("10.16.1.11")


def test_memory_of_the_device_is_used_again(load: Any, responder: Any, gpu: Any) -> None:
    instance = load(plan(doubling(2), **WIDE))
    for _ in range(5):
        responder.sent.clear()
        instance.execute([ask(rows([1, 2]))], responder)
    assert gpu.allocations == 2, "one block for the input, one for the output"


def test_what_is_retained_stays_on_the_device_until_somebody_looks(load: Any, responder: Any) -> None:
    instance = load(plan(doubling(2), **WIDE))
    with count_transfers() as counts:
        instance.execute([ask(rows([1, 2]), keep=True), ask(rows([3, 4]), keep=True)], responder)
    assert counts.to_host == 0
    retained = [responder.only(index).outputs[0].renamed("X") for index in range(2)]
    responder.sent.clear()
    with count_transfers() as counts:
        instance.execute([ask(retained[0], keep=True)], responder)
        instance.execute([ask(retained[1], keep=True), ask(retained[0])], responder)
    assert counts.to_device == 0
    matches = [result(response) for _, response in responder.sent]
    assert matches == [[[4, 8]], [[12, 16]], [[4, 8]]]
    responder.sent.clear()
    instance.execute([ask(rows([9, 9]))], responder)
    assert retained[0].array.tolist() == [[2, 4]], "a later batch does not touch it"


def test_torch_takes_what_an_engine_left_and_the_other_way(
    load: Any, responder: Any, gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argosy_runtime.backends.pytorch.tensors import TorchMemory, from_device
    from argosy_runtime.tensors import device_tensor
    from argosy_runtime.tensors.device_arrays import DeviceArray

    # The played device's memory is the host's, and torch only accepts that as what DLPack calls the host's.
    monkeypatch.setattr(dlpack, "CUDA", dlpack.CPU)
    instance = load(plan(doubling(2), **WIDE))
    instance.execute([ask(rows([1, 2], [3, 4]), keep=True)], responder)
    left = responder.only().outputs[0].device
    taken = from_device("FP32", left)
    assert taken.tolist() == [[2, 4], [6, 8]]
    del left
    responder.sent.clear()
    gc.collect()
    assert taken.tolist() == [[2, 4], [6, 8]], "who takes it keeps it"
    on_device = device_tensor("X", "FP32", DeviceArray(TorchMemory(torch.tensor([[5.0, 6.0]])), (1, 2)))
    with count_transfers() as counts:
        instance.execute([ask(on_device)] * 2, responder)
    assert result(responder.only(1)) == [[10, 12]]
    assert counts.to_device == 0


@pytest.mark.parametrize(
    ("group", "batch", "used"),
    [
        ("", 2, 0),
        ('profile: [ "0", "1", "2" ]', 1, 0),
        ('profile: [ "0", "1", "2" ]', 3, 2),
        ('profile: [ "0", "1", "2" ]', 6, 1),  # as far from 8 as from 4: the lower index
        ('profile: [ "0", "1", "2" ]', 7, 1),
        ('profile: [ "2", "0" ]', 7, 2),
        ('profile: [ "1" ]', 1, 1),
    ],
)
def test_the_profile_whose_best_batch_is_nearest(
    load: Any, responder: Any, monkeypatch: pytest.MonkeyPatch, group: str, batch: int, used: int
) -> None:
    instance = load(plan(doubling(2), **PROFILES), group=group)
    contexts = instance._batcher._framework._contexts
    ran: list[int] = []
    for context in contexts:
        real = context.run
        monkeypatch.setattr(
            context, "run", lambda *arguments, c=context, r=real: (ran.append(c.profile.index), r(*arguments))[1]
        )
    inputs = [[float(value), 0.0] for value in range(batch)]
    instance.execute([ask(rows(*inputs))], responder)
    assert result(responder.only()) == [[2 * value, 0] for value, _ in inputs]
    assert ran == [used]


def test_what_fits_no_profile_is_refused_in_tritons_words(load: Any, responder: Any, host: Any) -> None:
    instance = load(plan(doubling(None), profiles=[ranges(1, 1, 2, 4), ranges(2, 4, 8, 4)]), group='profile: ["0","1"]')
    instance.execute([ask(rows([1, 2, 3]))], responder)
    error = responder.only().error
    assert error.kind is ErrorKind.INTERNAL
    assert error.message == (
        "request specifies invalid shape for input 'X' for m_0. Error details: model expected the shape of dimension 1 "
        "to be between 4 and 4 but received 3"
    )
    assert host.lines[-1][1].startswith("failed to find any Optimization Profile among [ 0[0] 1[1]] to support")
    responder.sent.clear()
    instance.execute([ask(rows([1, 2, 3, 4]))], responder)
    assert result(responder.only()) == [[2, 4, 6, 8]]


@pytest.mark.parametrize("name", ["3", "7"])
def test_a_profile_that_is_not_there(load: Any, name: str) -> None:
    error = refusal(lambda: load(plan(doubling(2), **PROFILES), group=f'profile: [ "{name}" ]'))
    assert error.message == (
        f"Can not set the specified optimization profile {name}[{name}] for m_0. Expected optimization profile index "
        "range 0-2"
    )


SHAPES = """
name: "m" backend: "tensorrt" platform: "tensorrt_plan" max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] },
        { name: "S" data_type: TYPE_INT64 dims: [ 2 ] is_shape_tensor: true } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1, -1 ] },
         { name: "T" data_type: TYPE_INT64 dims: [ 2 ] is_shape_tensor: true } ]
instance_group [ { name: "m" kind: KIND_GPU gpus: [ 0 ] } ]
"""


def shape_request(values: list[int], *arguments: list[float]) -> InferRequest:
    tensor = Tensor("S", "INT64", np.array(values, np.int64))
    return InferRequest("m", {"S": tensor, "X": rows(*arguments)}, requested_outputs=("Y", "T"))


def test_shape_tensors_lead_with_the_size_of_the_batch(load: Any, responder: Any) -> None:
    instance = load(plan(reshaping(), **SHAPE_META), text=SHAPES)
    one, two = shape_request([2, 2], [1, 2, 3, 4]), shape_request([2, 2], [5, 6, 7, 8], [9, 10, 11, 12])
    instance.execute([one, two, shape_request([4, 1], [1, 2, 3, 4])], responder)
    matches = [[output.array.tolist() for output in responder.only(index).outputs] for index in range(3)]
    assert matches[0] == [[[[1, 2], [3, 4]]], [[2, 2]]]
    assert matches[1] == [[[[5, 6], [7, 8]], [[9, 10], [11, 12]]], [[2, 2], [2, 2]]]
    assert matches[2] == [[[[1], [2], [3], [4]]], [[4, 1]]], "other values are another run"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([2, 5], "The shape value at index 2 is expected to be in range from 1 to 4, Got: 5"),
        ([2], "mismatch between the number of shape values. Expecting 3. Got 2"),
    ],
)
def test_shape_values_out_of_their_range(load: Any, responder: Any, values: list[int], message: str) -> None:
    instance = load(plan(reshaping(), **SHAPE_META), text=SHAPES)
    instance.execute([shape_request(values, [1, 2, 3, 4])], responder)
    assert message in responder.only().error.message


NONZERO = """
name: "m" backend: "tensorrt" platform: "tensorrt_plan"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_INT64 dims: [ 1, -1 ] } ]
instance_group [ { name: "m" kind: KIND_GPU gpus: [ 0 ] } ]
"""


@pytest.fixture
def nonzero(load: Any) -> Any:
    """Return an instance whose output's shape depends on the data."""
    results = model([node("NonZero", ["X"], ["Y"])], [info("X", FLOAT, None)], [info("Y", INT64, 1, None)])
    return load(plan(results, profiles=[ranges(1, 4, 64)]), text=NONZERO)


def test_outputs_whose_shape_the_data_decides(nonzero: Any, responder: Any) -> None:
    for inputs in ([0, 1, 0, 2], [0, 0], [3] * 50):
        responder.sent.clear()
        nonzero.execute([ask(Tensor("X", "FP32", np.array(inputs, np.float32)))], responder)
        assert result(responder.only()) == [[index for index, value in enumerate(inputs) if value]]


def test_what_the_data_shaped_is_not_touched_by_the_next_run(nonzero: Any, responder: Any) -> None:
    nonzero.execute([ask(Tensor("X", "FP32", np.array([0, 1, 1], np.float32)), keep=True)], responder)
    retained = responder.only().outputs[0]
    responder.sent.clear()
    nonzero.execute([ask(Tensor("X", "FP32", np.array([1, 0, 0], np.float32)))], responder)
    assert result(responder.only()) == [[0]]
    assert retained.array.tolist() == [[1, 2]]


def graphs(spec: str = "") -> str:
    return f"dynamic_batching {{ preferred_batch_size: [ 4 ] }} optimization {{ cuda {{ graphs: true {spec} }} }}"


def test_graphs_run_the_batches_they_were_captured_for(load: Any, responder: Any, gpu: Any) -> None:
    instance = load(plan(doubling(2), **WIDE), more=graphs())
    for batch, launched in ((1, 1), (4, 2), (8, 3), (3, 3), (4, 4)):
        responder.sent.clear()
        inputs = [[float(value), 1.0] for value in range(batch)]
        instance.execute([ask(rows(*inputs))], responder)
        assert result(responder.only()) == [[2 * value, 2] for value, _ in inputs]
        assert gpu.launched == launched, batch
    responder.sent.clear()
    instance.execute([ask(rows([1, 1]), keep=True)], responder)
    retained = responder.only().outputs[0]
    responder.sent.clear()
    instance.execute([ask(rows([7, 7]))], responder)
    assert retained.array.tolist() == [[2, 2]], "the graph's next run does not touch it"


def test_a_lower_bound_lets_smaller_batches_use_a_graph(load: Any, responder: Any, gpu: Any) -> None:
    spec = 'graph_spec { batch_size: 4 input { key: "X" value { dim: [ 2 ] } } graph_lower_bound { batch_size: 2 } }'
    instance = load(plan(doubling(None), profiles=[{"X": [[1, 1], [4, 2], [8, 4]]}]), more=graphs(spec))
    for inputs, launched in (([[1, 2]], 0), ([[1, 2], [3, 4]], 1), ([[1, 2, 3], [4, 5, 6]], 1), ([[1, 2]] * 4, 2)):
        responder.sent.clear()
        instance.execute([ask(rows(*[[float(item) for item in row] for row in inputs]))], responder)
        assert result(responder.only()) == [[2 * item for item in row] for row in inputs]
        assert gpu.launched == launched


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("batch_size: 9", "graph spec expects 'batch_size' to be >= 1 and <= 8"),
        ("batch_size: 2 graph_lower_bound { batch_size: 3 }", "expects 'batch_size' to be <= graph spec 'batch_size'"),
        ('batch_size: 2 input { key: "X" value { dim: [ -1 ] } }', "expects input 'X' to have dimension >= 0"),
    ],
)
def test_a_graph_spec_that_no_batch_fits(load: Any, spec: str, message: str) -> None:
    more = "optimization { cuda { graphs: true graph_spec { %s } } }" % spec  # noqa: UP031
    error = refusal(lambda: load(plan(doubling(2), **WIDE), more=more))
    assert message in error.message
    assert error.kind is ErrorKind.INVALID_ARG


def test_engines_with_shape_tensors_have_no_graphs(load: Any, host: Any, gpu: Any, responder: Any) -> None:
    more = " optimization { cuda { graphs: true } }"
    instance = load(plan(reshaping(), **SHAPE_META), text=SHAPES + more)
    assert ("warning", "Detected shape tensor, CUDA graph is not captured for m_0") in host.lines
    instance.execute([shape_request([2, 2], [1, 2, 3, 4])], responder)
    assert responder.only().error is None
    assert gpu.launched == 0


def test_instances_of_a_gpu_share_the_engine_and_not_the_stream(
    load: Any, responder: Any, gpu: Any, backend: Any, host: Any
) -> None:
    first = load(plan(doubling(2), **WIDE), more="optimization { priority: PRIORITY_MAX }")
    second = load.again("m_1")
    assert first._plan is second._plan
    assert len(gpu.streams) == 2
    assert {stream.priority for stream in gpu.streams.values()} == {-5}
    second.close()
    assert len(gpu.streams) == 1
    first.execute([ask(rows([1, 2]))], responder)
    assert result(responder.only()) == [[2, 4]]


def test_all_memory_is_returned(backend: Any, model_folder: Any, host: Any, responder: Any, gpu: Any) -> None:
    folder = model_folder(CONFIG.format(batch=8, dims="2", group="", more="optimization { cuda { graphs: true } }"))
    (folder.version_dir / "model.plan").write_bytes(plan(doubling(2), **WIDE))
    instance = backend.load(folder.spec(kind="KIND_GPU"), host)
    instance.execute([ask(rows([1, 2]))], responder)
    responder.sent.clear()
    instance.close()
    del instance
    gc.collect()
    assert gpu.live == {}
    assert gpu.streams == {}
    assert gpu.graphs == {}


def test_a_gpu_without_space(load: Any, responder: Any, gpu: Any) -> None:
    instance = load(plan(doubling(2), **WIDE))
    gpu.total_memory = 0
    instance.execute([ask(rows([1, 2]))], responder)
    assert responder.only().error.message == "CUDA's cuMemAlloc_v2 failed with 2: out of memory"
    gpu.total_memory = 1 << 20
    responder.sent.clear()
    instance.execute([ask(rows([1, 2]))], responder)
    assert result(responder.only()) == [[2, 4]]
