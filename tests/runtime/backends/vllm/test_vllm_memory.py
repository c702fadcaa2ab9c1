"""The memory of an engine: by its footprint on a GPU, small on the CPU, and what the model says before both."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.vllm.opening.memory import CPU_CACHE_BYTES, gpu_bytes, memory_arguments
from argosy_runtime.errors import ErrorKind, ServingError

GIB = 1 << 30


def spec(kind: str = "KIND_MODEL", memory: str = "") -> InstanceSpec:
    config = ModelConfig(name="llm", backend="vllm")
    if memory:
        config.parameters["GPU_MEMORY"].string_value = memory
    return InstanceSpec(config, 1, Path("m"), Path("m/1"), "llm_0", kind, 0)


def total() -> int:
    return 80 * GIB


def test_a_footprint_is_a_share_of_the_gpu() -> None:
    assert memory_arguments(spec(memory=str(20 * GIB)), {}, {}, total) == {"gpu_memory_utilization": 0.25}


def test_without_a_footprint_vllm_decides() -> None:
    assert memory_arguments(spec(), {}, {}, total) == {}


@pytest.mark.parametrize("name", ["gpu_memory_utilization", "kv_cache_memory_bytes"])
@pytest.mark.parametrize("kind", ["KIND_GPU", "KIND_CPU"])
def test_the_models_own_arguments_come_first(name: str, kind: str) -> None:
    assert memory_arguments(spec(kind, str(20 * GIB)), {name: 1}, {}, total) == {}


def test_the_cpu_has_a_small_cache_unless_its_environment_has_one() -> None:
    assert memory_arguments(spec("KIND_CPU"), {}, {}, total) == {"kv_cache_memory_bytes": CPU_CACHE_BYTES}
    assert memory_arguments(spec("KIND_CPU"), {}, {"VLLM_CPU_KVCACHE_SPACE": "1"}, total) == {}


@pytest.mark.parametrize(
    ("memory", "kind", "words"),
    [
        (str(81 * GIB), ErrorKind.UNAVAILABLE, "lower the model's footprint"),
        ("lots", ErrorKind.INVALID_ARG, "parameter 'GPU_MEMORY' is 'lots'"),
        ("0", ErrorKind.INVALID_ARG, "expected 1 or more"),
    ],
)
def test_what_cannot_be_is_an_error(memory: str, kind: ErrorKind, words: str) -> None:
    with pytest.raises(ServingError, match=words) as caught:
        memory_arguments(spec(memory=memory), {}, {}, total)
    assert caught.value.kind is kind


def test_the_size_of_the_gpu_is_vllms(monkeypatch: pytest.MonkeyPatch) -> None:
    platforms = ModuleType("vllm.platforms")
    sizes = {0: 24 * GIB}
    platforms.current_platform = SimpleNamespace(get_device_total_memory=lambda device_id: sizes[device_id])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    assert gpu_bytes() == 24 * GIB
