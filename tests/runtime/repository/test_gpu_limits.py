"""The limit of GPU memory beyond which no further model is loaded there (`--model-load-gpu-limit`)."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.serving import instances
from argosy_runtime.repository.serving.instances import InstanceFactory
from argosy_runtime.telemetry.engines import EngineStatistics

GROUPS = 'name: "m" instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0, 1 ] } ]'


def _factory(limits: Mapping[int, float]) -> InstanceFactory:
    folder = ModelFolder("m", Path("m"), "", (1,), {1: ()}, "")
    calls: None = None
    return InstanceFactory(folder, 1, {0: "9.0", 1: "9.0"}, calls, EngineStatistics(), 1.0, None, {}, None, limits)


@pytest.mark.parametrize(("limits", "refused"), [({}, None), ({0: 0.4}, None), ({1: 0.7}, 1), ({0: 0.2, 1: 0.2}, 0)])
def test_a_gpu_that_is_used_more(
    monkeypatch: pytest.MonkeyPatch, limits: Mapping[int, float], refused: int | None
) -> None:
    monkeypatch.setattr(instances, "used_fraction", lambda gpu: {0: 0.3, 1: 0.8}[gpu])
    config = text_format.Parse(GROUPS, ModelConfig())
    if refused is None:
        _factory(limits).require_gpu_memory(config)
        return
    text = f"can not create model 'm': memory limit set for GPU {refused} has exceeded, model loading is rejected."
    with pytest.raises(ServingError) as caught:
        _factory(limits).require_gpu_memory(config)
    assert (caught.value.kind, caught.value.message) == (ErrorKind.UNAVAILABLE, text)
