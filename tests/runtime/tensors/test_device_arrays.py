"""Tensors in a device's memory are copied to the host when they are first read, once."""

import numpy as np
import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.repository.serving.reshaping import OutputShapes
from argosy_runtime.scheduling.admission import Admission
from argosy_runtime.telemetry.argosy_families import device_families
from argosy_runtime.telemetry.exposition import exposition
from argosy_runtime.tensors import Tensor, device_tensor
from argosy_runtime.tensors.device_arrays import DeviceArray, DeviceMemory, DeviceTransfers


class FakeMemory(DeviceMemory):
    """Memory of a fake device; `reads` are the elements that were copied to the host."""

    def __init__(self, count: int) -> None:
        self._elements = np.arange(count, dtype=np.float32)
        self.reads: list[tuple[int, int]] = []

    def read(self, offset: int, count: int) -> np.ndarray:
        self.reads.append((offset, count))
        return self._elements[offset : offset + count].copy()

    def __dlpack__(self, *, stream: object = None) -> object:
        return self._elements.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory(24)


def test_rows_and_shapes_are_views(memory: FakeMemory) -> None:
    array = DeviceArray(memory, (4, 6))
    part = array[1:3].reshape((2, 2, 3))[1:2]
    assert part.shape == (1, 2, 3)
    assert memory.reads == []
    assert part.host().tolist() == [[[12, 13, 14], [15, 16, 17]]]
    assert memory.reads == [(12, 6)], "only what was looked at"
    with pytest.raises(ValueError, match="cannot reshape 24 elements"):
        array.reshape((5, 5))


def test_what_passes_on_a_tensor_does_not_look_at_it(memory: FakeMemory) -> None:
    tensor = device_tensor("A", "FP32", DeviceArray(memory, (4, 6)))
    other = tensor.renamed("B").reshaped((4, 2, 3))
    assert (other.name, other.shape, other.spec().size) == ("B", (4, 2, 3), 96)
    assert other.device is not None
    assert memory.reads == []
    assert other.array.tolist() == np.arange(24).reshape(4, 2, 3).tolist()
    assert bytes(other.data) == np.arange(24, dtype=np.float32).tobytes()
    assert memory.reads == [(0, 24)], "once, however often it is asked for"


def test_admission_and_reshape_leave_it_on_the_device(memory: FakeMemory) -> None:
    tensor = "data_type: TYPE_FP32 dims: [ 2, 3 ] reshape { shape: [ 6 ] }"
    config = text_format.Parse(
        f'name: "m" max_batch_size: 4 input {{ name: "A" {tensor} }} output {{ name: "A" {tensor} }}', ModelConfig()
    )
    admission = Admission(config)
    request = InferRequest("m", {"A": device_tensor("A", "FP32", DeviceArray(memory, (4, 2, 3)))})
    assert admission.check(request) == 4
    reshaped = admission.reshape(request.inputs)["A"]
    assert (reshaped.shape, reshaped.device is not None) == ((4, 6), True)
    answered: list[Tensor] = []
    deliver = OutputShapes(config).before(lambda response: answered.extend(response.outputs))
    deliver(InferResponse("m", "1", "", [reshaped]))
    assert (answered[0].shape, answered[0].device is not None) == ((4, 2, 3), True)
    assert memory.reads == []


def test_transfers_are_summed_and_reported() -> None:
    transfers = DeviceTransfers()
    transfers.fetched(100)
    transfers.fetched(20)
    transfers.sent(8)
    text = exposition(device_families(transfers)).decode()
    assert 'argosy_device_copy_count{direction="to_host"} 2\n' in text
    assert 'argosy_device_copy_bytes{direction="to_host"} 120\n' in text
    assert 'argosy_device_copy_count{direction="to_device"} 1\n' in text
    assert 'argosy_device_copy_bytes{direction="to_device"} 8\n' in text
