"""What the frameworks of instances have reserved of GPUs, by GPU: unknown where one instance does not say."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import ReservedMemory
from argosy_runtime.modelconfig import InstancePlacement
from argosy_runtime.repository.serving.instances import InstanceCalls, InstanceFactory, Reserved
from argosy_runtime.telemetry.engines import EngineStatistics
from argosy_runtime.telemetry.machine.attribution import OnGpu


def factory(monkeypatch: pytest.MonkeyPatch, reserved: Reserved) -> InstanceFactory:
    unused: Any = SimpleNamespace()
    made = InstanceFactory(unused, 1, {0: "9.0", 1: "9.0"}, unused, EngineStatistics(), 1.0, None, {})
    monkeypatch.setattr(made, "_reserved", reserved)
    return made


def on_gpus(monkeypatch: pytest.MonkeyPatch, text: str, reserved: Reserved) -> dict[int, OnGpu]:
    config = text_format.Parse(text, ModelConfig(name="m", backend="python"))
    made = factory(monkeypatch, reserved)
    return made.on_gpus(config, made.placements(config))


BOTH = "instance_group { name: 'g' count: 2 kind: KIND_GPU gpus: [0, 1] }"


def test_a_report_of_an_instance_is_stored_by_its_name_and_device() -> None:
    reserved: Reserved = {}
    unused: Any = SimpleNamespace()
    placement = InstancePlacement("g_0", "KIND_GPU", 1, "")
    calls = InstanceCalls(unused, placement, EngineStatistics(), reserved)
    assert asyncio.run(calls.do(ReservedMemory({1: 70}), 0)) is None
    assert reserved == {("g_0", 1): ReservedMemory({1: 70})}


def test_gpus_have_their_number_of_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_gpus(monkeypatch, BOTH, {}) == {0: OnGpu(2), 1: OnGpu(2)}
    assert on_gpus(monkeypatch, "instance_group { count: 1 kind: KIND_CPU }", {}) == {}
    assert on_gpus(monkeypatch, "instance_group { count: 1 kind: KIND_MODEL }", {}) == {0: OnGpu(1), 1: OnGpu(1)}
    named = (
        "parameters { key: 'gpu_device_ids' value { string_value: '1' } } instance_group { kind: KIND_MODEL count: 1 }"
    )
    assert on_gpus(monkeypatch, named, {}) == {1: OnGpu(1)}


def test_a_sum_needs_every_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [("g_0", 0, 30), ("g_1", 0, 50), ("g_0", 1, 70)]
    reserved = {(name, gpu): ReservedMemory({gpu: size}) for name, gpu, size in reports}
    assert on_gpus(monkeypatch, BOTH, reserved) == {0: OnGpu(2, 80), 1: OnGpu(2, None)}
