"""Idle variants on an engine that can sleep, in processes of their own, with the stand-in for vLLM."""

import json
import os
import signal

import pytest
from tests.runtime.service.lora_models import add_adapter, text, vllm
from tests.runtime.service.test_variants import routed, variant
from tests.waiting import until

__all__ = ["vllm"]
pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("vllm")]
IDLE, OTHER = "idle", "other"


def add(repository, model: str = "tiny") -> None:
    """Write a routed model whose second variant is idle, and sleeps soon."""
    arguments = {"model": model, "enable_sleep_mode": True, "enable_lora": True}
    for name, own in ((OTHER, {"model": "tiny"}), (IDLE, arguments)):
        repository.write(name, {"1/model.json": json.dumps(own)}, 'backend: "vllm"')
    repository.write("m", {"1/.keep": ""}, routed(variant(OTHER, 8), variant(IDLE), idleTimeoutSeconds=0.2))


async def asleep(plane) -> None:
    """Wait until the idle variant has fallen asleep."""
    model = plane.registry.find(IDLE)
    await until(lambda: model.asleep and model._sleep._falling.done())


def process(plane) -> int:
    """Return the process of the idle variant, which may be asleep."""
    served = plane.registry.find(IDLE)
    slots = [*served._instances.all, *served._sleep._sleepers]
    ((_, slot),) = slots
    return slot.instance._connection._process.pid


async def metric(plane, start: str) -> float | None:
    """Return the one sample of the idle variant with this name and these first labels, None if there is none."""
    lines = b"".join([piece async for piece in plane.metrics()]).decode().splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(start) and f'"{IDLE}"' in line]
    return values[0] if values else None


async def test_an_idle_engine_sleeps_in_its_process(repository, serve):
    add(repository)
    add_adapter(repository, "late", base=IDLE)
    plane = await serve()
    await plane.load("m", None, {})
    first = process(plane)
    await asleep(plane)
    assert process(plane) == first
    assert await metric(plane, "argosy_engines_asleep") == 1
    assert await metric(plane, "argosy_variant_asleep") == 1
    assert await metric(plane, "argosy_instances{") == 0
    offloaded = [
        line async for piece in plane.metrics() for line in piece.decode().splitlines() if "weights_offloaded" in line
    ]
    assert any(f'model_name="{IDLE}"' in line and line.endswith(" 1") for line in offloaded)
    await plane.load("late", None, {})
    assert await text(plane, "m") == "abc"
    assert plane.registry.find(IDLE).asleep
    assert await text(plane, IDLE) == "abc"
    assert process(plane) == first
    assert await text(plane, "late") == "lat"
    await asleep(plane)
    assert await text(plane, "late") == "lat"
    assert process(plane) == first


@pytest.mark.parametrize("model", ["insomnia", "coma"])
async def test_an_engine_that_cannot_sleep_or_wake_is_loaded_again(repository, serve, model):
    add(repository, model)
    plane = await serve()
    await plane.load("m", None, {})
    first = process(plane)
    await asleep(plane)
    assert bool(plane.registry.find(IDLE)._sleep.names) == (model == "coma")
    assert await text(plane, IDLE) == "abc"
    assert process(plane) != first


async def test_an_engine_that_dies_asleep_answers_the_next_request(repository, serve):
    add(repository)
    plane = await serve()
    await plane.load("m", None, {})
    await asleep(plane)
    os.kill(process(plane), signal.SIGKILL)
    await until(lambda: not plane.registry.find(IDLE)._sleep.names)
    assert await metric(plane, "argosy_engines_asleep") == 0
    assert await text(plane, IDLE) == "abc"


async def test_a_sleeping_engine_ends_with_its_model(repository, serve):
    add(repository)
    plane = await serve()
    await plane.load("m", None, {})
    await asleep(plane)
    pid = process(plane)
    await plane.unload(IDLE, unload_dependents=False)
    await until(lambda: not os.path.exists(f"/proc/{pid}"))
    assert await text(plane, "m") == "abc"
