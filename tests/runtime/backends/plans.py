"""Plans for the stand-in of TensorRT, and the played GPU that they run on."""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from argosy_runtime.backends.devices import cuda
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse, Tensor

STANDINS = Path(__file__).parents[2] / "standins"
GPU, MACHINE = STANDINS / "gpu", STANDINS / "machine"
FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


@contextmanager
def standin(version: str = "10.16.1.11") -> Iterator[Any]:
    """Let `tensorrt` be the stand-in, of that release; remove it at the end, with what imported it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(GPU))
        import tensorrt

        tensorrt.become(version)
        yield tensorrt
        for name in [module for module in sys.modules if _needs_tensorrt(module)]:
            del sys.modules[name]


def _needs_tensorrt(module: str) -> bool:
    own = ("argosy_runtime.backends.tensorrt", "argosy_builder.tensorrt")
    return module.split(".")[0] in ("tensorrt", "played_cuda") or any(
        module == name or module.startswith(f"{name}.") for name in own
    )


@contextmanager
def played(compute_capability: str = "9.0") -> Iterator[Any]:
    """Yield a GPU without faults, whose driver the server loads."""
    import played_cuda

    driver = played_cuda.fresh(compute_capability)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "_driver", lambda: driver)
        yield driver
        gc.collect()  # what is let go of later would look for a real driver
        assert driver.faults == []


def info(name: str, kind: int, *shape: int | str | None) -> onnx.ValueInfoProto:
    """Return a tensor's description, with None or a name for each varying dimension."""
    return helper.make_tensor_value_info(name, kind, list(shape))


def model(
    nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any], initializers: Any = (), doc: str = ""
) -> onnx.ModelProto:
    """Return an ONNX model."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, doc_string=doc)


def node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    """Return a node, named after its first output."""
    return helper.make_node(operator, inputs, outputs, name=f"make_{outputs[0]}", **attributes)


def plan(of: onnx.ModelProto, version: str = "10.16.1.11", **meta: Any) -> bytes:
    """Return a plan of the stand-in's."""
    from tensorrt import _plans

    return bytes(_plans.write(of, _plans.Meta(**meta), version))


def doubling(*dims: int | str | None, kind: int = FLOAT) -> onnx.ModelProto:
    """Return a model in which `Y` is twice `X`, with the batch in front."""
    shape = ("batch", *dims)
    return model([node("Add", ["X", "X"], ["Y"])], [info("X", kind, *shape)], [info("Y", kind, *shape)])


def ranges(least: int, best: int, most: int, *dims: int) -> dict[str, Any]:
    """Return a profile of `X` for batches in these bounds."""
    return {"X": [[size, *dims] for size in (least, best, most)]}


CONFIG = """
name: "m" backend: "tensorrt" platform: "tensorrt_plan" max_batch_size: {batch}
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
instance_group [ {{ name: "m" kind: KIND_GPU gpus: [ 0 ] {group} }} ]
{more}
"""
WIDE = {"profiles": [ranges(1, 4, 8, 2)]}
PROFILES = {"profiles": [ranges(1, 1, 2, 2), ranges(1, 8, 16, 2), ranges(1, 4, 8, 2)]}


def reshaping() -> Any:
    """Return a model in which `Y` is `X` in the shape that `S` says, and `T` is that shape."""
    return model(
        [node("Reshape", ["X", "S"], ["Y"]), node("Shape", ["Y"], ["T"])],
        [info("X", FLOAT, "batch", 4), info("S", INT64, 3)],
        [info("Y", FLOAT, None, None, None), info("T", INT64, 3)],
    )


SHAPE_META = {
    "profiles": [{"X": [[1, 4], [2, 4], [8, 4]], "S": [[3], [3], [3]]}],
    "values": [{"S": [[1, 1, 1], [2, 2, 2], [8, 4, 4]]}],
    "shape_tensors": ["S", "T"],
}


def refusal(load_it: Callable[[], Any]) -> ServingError:
    """Return the error that it raises."""
    with pytest.raises(ServingError) as caught:
        load_it()
    return caught.value


@pytest.fixture(scope="module")
def trt() -> Iterator[Any]:
    """Yield the stand-in."""
    with standin() as module:
        yield module


@pytest.fixture
def gpu(trt: Any) -> Iterator[Any]:
    """Yield its GPU's driver."""
    with played() as driver:
        yield driver


@pytest.fixture
def backend(gpu: Any) -> Any:
    """Return the backend, on both."""
    return importlib.import_module("argosy_runtime.backends.tensorrt")


@pytest.fixture
def load(backend: Any, model_folder: Callable[[str], Any], host: Any) -> Iterator[Callable[..., Any]]:
    """Yield a function that loads a model of this plan and configuration."""
    instances: list[Any] = []

    class Load:
        """Loads models, and the last one again."""

        spec: Any = None

        def again(self, name: str) -> Any:
            instances.append(backend.load(replace(self.spec, name=name), host))
            return instances[-1]

        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return made(*arguments, **named)

    loading = Load()

    def made(content: bytes, batch: int = 8, dims: str = "-1", group: str = "", more: str = "", text: str = "") -> Any:
        folder = model_folder(text or CONFIG.format(batch=batch, dims=dims, group=group, more=more))
        (folder.version_dir / "model.plan").write_bytes(content)
        loading.spec = folder.spec(kind="KIND_GPU")
        return loading.again("m_0")

    yield loading
    for instance in instances:
        if instance._batcher is not None:
            instance.close()
    instances.clear()


def rows(*values: list[float], kind: type = np.float32) -> Tensor:
    """Return the input `X`."""
    return Tensor("X", "FP32" if kind is np.float32 else "FP16", np.array(values, kind))


def ask(tensor: Tensor, keep: bool = False, **more: Tensor) -> InferRequest:
    """Return a request for `Y`, which stays on the device if `keep` is true."""
    return InferRequest("m", {"X": tensor, **more}, requested_outputs=("Y",), device_outputs=frozenset("Y" * keep))


def result(response: InferResponse) -> Any:
    """Return the values of the only output."""
    assert response.error is None, response.error
    return response.outputs[0].array.tolist()
