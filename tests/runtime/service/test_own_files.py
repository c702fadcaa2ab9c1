"""Each GPU opens the file that `cc_model_filenames` names for its compute capability; the GPUs are played."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.runtime.backends.fake_device import FakeStream, fake_device
from tests.runtime.service.conftest import Repository, infer

from argosy_runtime.backends import onnxruntime as onnx_backend
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.onnxruntime import options
from argosy_runtime.dataplane import DataPlane
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.repository.options import ControlMode, RepositoryOptions

GPUS = {0: "8.0", 1: "9.0", 2: "12.0"}
CONFIG = """
name: "m" backend: "onnxruntime"
{tensors}
instance_group [ {{ kind: KIND_GPU gpus: [ {gpu} ] }} ]
cc_model_filenames [ {{ key: "9.0" value: "ninety.onnx" }}, {{ key: "12.0" value: "gone.onnx" }} ]
"""
TENSORS = """
max_batch_size: 4
input [ { name: "A" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def onnx_file(factor: float, output: str = "B") -> bytes:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1]) for name in ("A", output)]
    constant = helper.make_tensor("factor", TensorProto.FLOAT, [], [factor])
    node = helper.make_node("Mul", ["A", "factor"], [output])
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.fixture(autouse=True)
def played_gpus(monkeypatch: pytest.MonkeyPatch) -> list[InstanceSpec]:
    """Let the host's memory play each GPU's; return the specs by which instances were loaded."""
    specs: list[InstanceSpec] = []

    def device_of(spec: InstanceSpec) -> object:
        specs.append(spec)
        return fake_device(FakeStream())

    monkeypatch.setattr(onnx_backend, "device_of", device_of)
    on_host = options.providers
    monkeypatch.setattr(
        options, "providers", lambda config, kind, device, stream=None: on_host(config, "KIND_CPU", 0, None)
    )
    return specs


@contextmanager
def files(repository: Repository, tensors: str, gpu: int, **extra: bytes) -> Iterator[DataPlane]:
    written = {"1/model.onnx": onnx_file(2), "1/ninety.onnx": onnx_file(3), **extra}
    repository.write("m", written, CONFIG.format(tensors=tensors, gpu=gpu))
    yield DataPlane(
        RepositoryOptions((repository.path,), ControlMode.EXPLICIT, load_timeout=30.0, unload_grace=5.0), gpus=GPUS
    )


@pytest.mark.parametrize(("gpu", "product"), [(0, 2), (1, 3)])
@pytest.mark.parametrize("tensors", [TENSORS, ""])
async def test_a_gpu_opens_its_own_file_or_the_default(
    repository: Repository, gpu: int, product: float, tensors: str
) -> None:
    with files(repository, tensors, gpu) as plane:
        await plane.start()
        await plane.load("m", None, {})
        response = await infer(plane, InferRequest("m", {"A": Tensor("A", "FP32", np.ones((1, 1), np.float32))}))
        assert response.outputs[0].array.tolist() == [[product]]
        assert plane.registry.find("m").config.default_model_filename == "model.onnx"
        await plane.close(grace=5)


async def test_what_is_left_out_is_read_from_the_gpus_own_file(repository: Repository) -> None:
    with files(repository, "", 1, **{"1/ninety.onnx": onnx_file(3, "OTHER")}) as plane:
        await plane.start()
        await plane.load("m", None, {})
        assert [output.name for output in plane.registry.find("m").config.output] == ["OTHER"]
        await plane.close(grace=5)


async def test_a_file_that_is_not_there_is_named(repository: Repository) -> None:
    with files(repository, TENSORS, 2) as plane:
        await plane.start()
        with pytest.raises(ServingError, match=r"unable to find '.*/m/1/gone.onnx' for model instance 'm_0_0'"):
            await plane.load("m", None, {})
        await plane.close(grace=5)
