"""The way of tensors to a device, between its models, and home; the device is this machine's own memory."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from tests.runtime.backends.fake_device import FakeStream, count_transfers, fake_device

from argosy_runtime.backends import onnxruntime as onnx_backend
from argosy_runtime.backends import pytorch as torch_backend
from argosy_runtime.backends.devices.batch import AddressedMemory
from argosy_runtime.backends.pytorch import transfers
from argosy_runtime.backends.pytorch.tensors import TorchMemory
from argosy_runtime.messages import InferRequest, InferResponse, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")

CONFIG = """
name: "{name}" backend: "{backend}" max_batch_size: 16
input [ {{ name: "A" data_type: TYPE_{kind} dims: [ -1 ] }} ]
output [ {{ name: "SAME" data_type: TYPE_{kind} dims: [ -1 ] }} ]
output [ {{ name: "TWICE" data_type: TYPE_{kind} dims: [ -1 ] }} ]
"""
KINDS = {
    "FP32": (np.dtype(np.float32), TensorProto.FLOAT),
    "FP16": (np.dtype(np.float16), TensorProto.FLOAT16),
    "BF16": (np.dtype(ml_dtypes.bfloat16), TensorProto.BFLOAT16),
    "INT64": (np.dtype(np.int64), TensorProto.INT64),
}


class Twice(torch.nn.Module):
    def forward(self, a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a, a * 2


def save_torch(folder: Any) -> None:
    torch.jit.save(torch.jit.script(Twice()), folder / "model.pt")  # type: ignore[no-untyped-call]


def save_onnx(folder: Any, kind: int) -> None:
    infos = [helper.make_tensor_value_info(name, kind, ["batch", None]) for name in ("A", "SAME", "TWICE")]
    # By way of FP32, since the host cannot compute with BF16.
    nodes = [
        helper.make_node("Constant", [], ["two"], value=helper.make_tensor("two", TensorProto.FLOAT, [], [2])),
        helper.make_node("Identity", ["A"], ["SAME"]),
        helper.make_node("Cast", ["A"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "two"], ["twice"]),
        helper.make_node("Cast", ["twice"], ["TWICE"], to=kind),
    ]
    made = helper.make_graph(nodes, "g", infos[:1], infos[1:])
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> FakeStream:
    """Let everything be a device from here on."""
    made = FakeStream()
    monkeypatch.setattr(transfers, "HOSTS", [])
    monkeypatch.setattr(onnx_backend, "device_of", lambda spec: fake_device(made))
    return made


@pytest.fixture(params=["pytorch", "onnxruntime"])
def load(request: pytest.FixtureRequest, stream: FakeStream, model_folder: Callable[[str], Any], host: Any) -> Any:
    return loader(request.param, model_folder, host)


def loader(backend: str, model_folder: Callable[[str], Any], host: Any) -> Callable[..., Any]:
    def made(kind: str = "FP32", extra: str = "") -> Any:
        folder = model_folder(CONFIG.format(name=backend, backend=backend, kind=kind) + extra)
        if backend == "pytorch":
            save_torch(folder.version_dir)
            return torch_backend.load(folder.spec(), host)
        save_onnx(folder.version_dir, KINDS[kind][1])
        return onnx_backend.load(folder.spec(), host)

    return made


def ask(tensor: Tensor, keep: bool = False, outputs: tuple[str, ...] = ("TWICE",)) -> InferRequest:
    retained = frozenset(outputs) if keep else frozenset()
    return InferRequest("m", {"A": tensor}, requested_outputs=outputs, device_outputs=retained)


def host_tensor(*rows: list[float], kind: str = "FP32") -> Tensor:
    return Tensor("A", kind, np.array(rows).astype(KINDS[kind][0]))


def output(response: InferResponse) -> Tensor:
    assert response.error is None, response.error
    return response.outputs[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_goes_there_once_and_comes_home_once(load: Any, responder: Any, kind: str) -> None:
    instance = load(kind)
    requests = [ask(host_tensor([1, 2], kind=kind)), ask(host_tensor([3, 4], [5, 6], kind=kind))]
    for _ in range(2):  # first without the buffers, which the batch lets grow
        responder.sent.clear()
        with count_transfers() as counts:
            instance.execute(requests, responder)
        assert output(responder.only(0)).array.tolist() == [[2, 4]]
        assert output(responder.only(1)).array.tolist() == [[6, 8], [10, 12]]
        assert output(responder.only(1)).array.dtype == KINDS[kind][0]
        assert output(responder.only(0)).device is None
        assert counts.to_host == 1


def test_what_is_retained_stays_until_somebody_looks(load: Any, responder: Any) -> None:
    instance = load()
    with count_transfers() as counts:
        instance.execute([ask(host_tensor([1, 2]), keep=True), ask(host_tensor([3, 4]), keep=True)], responder)
    assert counts.to_host == 0
    second = output(responder.only(1))
    assert second.device is not None
    assert second.shape == (1, 2)
    with count_transfers() as counts:
        assert second.array.tolist() == [[6, 8]]
        assert second.array.tolist() == [[6, 8]]
        assert second.renamed("B").array.tolist() == [[6, 8]]
    assert counts.to_host == 1


def test_one_batch_for_those_who_keep_and_those_who_do_not(load: Any, responder: Any) -> None:
    instance = load()
    instance.execute([ask(host_tensor([1, 2]), keep=True), ask(host_tensor([3, 4]))], responder)
    assert output(responder.only(0)).device is not None
    assert output(responder.only(0)).array.tolist() == [[2, 4]]
    assert output(responder.only(1)).device is None
    assert output(responder.only(1)).array.tolist() == [[6, 8]]


def test_a_later_batch_does_not_touch_what_an_earlier_one_gave(load: Any, responder: Any) -> None:
    instance = load()
    instance.execute([ask(host_tensor([0, 0]))], responder)  # the buffers have their size
    responder.sent.clear()
    instance.execute([ask(host_tensor([1, 2]))], responder)
    retained_first = output(responder.only())
    responder.sent.clear()
    instance.execute([ask(host_tensor([3, 4]), keep=True)], responder)
    retained_second = output(responder.only())
    instance.execute([ask(host_tensor([9, 9]))], responder)
    assert retained_first.array.tolist() == [[2, 4]]
    assert retained_second.array.tolist() == [[6, 8]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("producer", ["pytorch", "onnxruntime"])
@pytest.mark.parametrize("consumer", ["pytorch", "onnxruntime"])
def test_a_model_takes_what_another_left_without_a_copy(
    stream: FakeStream, model_folder: Any, host: Any, responder: Any, producer: str, consumer: str, kind: str
) -> None:
    first = loader(producer, model_folder, host)(kind)
    second = first if producer == consumer else loader(consumer, model_folder, host)(kind)
    requests = [ask(host_tensor([1, 2], [3, 4], kind=kind), keep=True), ask(host_tensor([5, 6], kind=kind), keep=True)]
    with count_transfers() as counts:
        first.execute(requests, responder)
    middle = [output(responder.only(index)) for index in range(2)]
    responder.sent.clear()
    assert isinstance(middle[0].device.memory, TorchMemory if producer == "pytorch" else AddressedMemory)
    with count_transfers() as counts:
        # Two joined on the device; one alone, from the middle of a block, as it is; and one that is reshaped.
        second.execute([ask(tensor.renamed("A"), keep=True) for tensor in middle], responder)
        second.execute([ask(middle[1].renamed("A"), keep=True)], responder)
        second.execute([ask(middle[0].renamed("A").reshaped((1, 4)), keep=True)], responder)
    assert (counts.to_device, counts.to_host) == (0, 0)
    results = [response.outputs[0].array.tolist() for _, response in responder.sent]
    assert results == [[[4, 8], [12, 16]], [[20, 24]], [[20, 24]], [[4, 8, 12, 16]]]


def test_host_and_device_in_one_batch(load: Any, responder: Any) -> None:
    instance = load()
    instance.execute([ask(host_tensor([1, 2]), keep=True)], responder)
    retained = output(responder.only()).renamed("A")
    responder.sent.clear()
    requests = [ask(host_tensor([5, 5])), ask(retained), ask(host_tensor([6, 6])), ask(host_tensor([7, 7]))]
    instance.execute(requests, responder)
    results = [output(responder.only(index)).array.tolist() for index in range(4)]
    assert results == [[[10, 10]], [[4, 8]], [[12, 12]], [[14, 14]]]


def test_buffers_are_used_again_and_can_be_turned_off(
    stream: FakeStream, model_folder: Any, host: Any, responder: Any
) -> None:
    instance = loader("onnxruntime", model_folder, host)()
    for _ in range(3):
        instance.execute([ask(host_tensor([1, 2]))], responder)
    assert stream.allocated == [64, 64], "one for each direction"
    instance.close()
    assert stream.closed
    stream.allocated.clear()
    off = "optimization { input_pinned_memory { enable: false } output_pinned_memory { enable: false } }"
    folder = model_folder(CONFIG.format(name="off", backend="onnxruntime", kind="FP32") + off)
    save_onnx(folder.version_dir, TensorProto.FLOAT)
    instance = onnx_backend.load(folder.spec(), host)
    responder.sent.clear()
    for _ in range(3):
        instance.execute([ask(host_tensor([1, 2]))], responder)
    assert stream.allocated == []
    assert output(responder.of(0)[2]).array.tolist() == [[2, 4]]


def test_a_run_that_fails_leaves_the_instance_well(load: Any, responder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = load()
    instance.execute([InferRequest("m", {"NO": host_tensor([1, 2])}, requested_outputs=("TWICE",))], responder)
    assert responder.only().error is not None
    responder.sent.clear()
    instance.execute([ask(host_tensor([1, 2]))], responder)
    assert output(responder.only()).array.tolist() == [[2, 4]]


def test_strings_stay_on_the_host(stream: FakeStream, model_folder: Any, host: Any, responder: Any) -> None:
    pbtxt = """name: "s" backend: "onnxruntime" max_batch_size: 4
        input [ { name: "A" data_type: TYPE_STRING dims: [ 1 ] } ]
        output [ { name: "B" data_type: TYPE_STRING dims: [ 1 ] } ]"""
    folder = model_folder(pbtxt)
    infos = [helper.make_tensor_value_info(name, TensorProto.STRING, ["batch", 1]) for name in ("A", "B")]
    made = helper.make_graph([helper.make_node("Identity", ["A"], ["B"])], "g", infos[:1], infos[1:])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder.version_dir / "model.onnx")
    instance = onnx_backend.load(folder.spec(), host)
    texts = Tensor("A", "BYTES", np.array([["é".encode()]], np.object_))
    with count_transfers() as counts:
        instance.execute([InferRequest("s", {"A": texts}, device_outputs=frozenset({"B"}))], responder)
    assert output(responder.only()).array.tolist() == [["é".encode()]]
    assert (counts.to_device, counts.to_host) == (0, 0)
