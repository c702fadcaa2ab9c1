"""Tensors stay on the GPU between plans of an ensemble, on a stand-in of TensorRT and a played GPU."""

import numpy as np
from tests.runtime.backends.fake_device import count_transfers
from tests.runtime.backends.plans import WIDE, doubling, gpu, plan, trt
from tests.runtime.service.conftest import Repository, infer

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.repository.options import ControlMode, RepositoryOptions

__all__ = ["gpu", "trt"]

MODEL = """
name: "{name}" backend: "tensorrt" instance_group [ {{ kind: KIND_GPU }} ]
optimization {{ cuda {{ graphs: {graphs} }} }}
"""
ENSEMBLE = """
name: "e" platform: "ensemble" max_batch_size: 8
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling {
  step { model_name: "first" model_version: -1 input_map { key: "X" value: "IN" } output_map { key: "Y" value: "t" } }
  step { model_name: "second" model_version: -1 input_map { key: "X" value: "t" } output_map { key: "Y" value: "OUT" } }
}
"""


async def test_nothing_comes_to_the_host_between_two_plans(repository: Repository, gpu: object) -> None:
    for name, graphs in (("first", "false"), ("second", "true")):
        repository.write(name, {"1/model.plan": plan(doubling(2), **WIDE)}, MODEL.format(name=name, graphs=graphs))
    repository.write("e", {"1/keep": ""}, ENSEMBLE)
    options = RepositoryOptions((repository.path,), ControlMode.EXPLICIT, load_timeout=30.0, unload_grace=5.0)
    plane = DataPlane(options, gpus={0: "9.0"})
    await plane.start()
    for name in ("first", "second", "e"):
        await plane.load(name, None, {})
    for batch in (1, 3, 8):
        inputs = np.arange(batch * 2, dtype=np.float32).reshape(batch, 2)
        with count_transfers() as counts:
            response = await infer(plane, InferRequest("e", {"IN": Tensor("IN", "FP32", inputs)}))
        assert response.outputs[0].array.tolist() == (inputs * 4).tolist()
        assert (counts.to_device, counts.to_host) == (1, 1), "the client's request, and the answer to it"
    await plane.close(grace=5)
