"""A model with variants: requests go by their number in flight, and none is lost while variants come and go."""

import asyncio
import json
import os
import signal

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, reason, settled, states, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.options import ControlMode

ROUTED = """
backend: "variants"
parameters {{ key: "variants" value {{ string_value: '{}' }} }}
"""
ONE_BY_ONE = CONFIG.replace("dynamic_batching { }", "")


def routed(*variants: object, **rules: object) -> str:
    """Return the configuration of a routed model."""
    return ROUTED.format(json.dumps({"variants": list(variants), **rules}))


def variant(model: str, limit: int | None = None, version: int = -1) -> dict[str, object]:
    return {"model": model, "maxConcurrency": limit, "version": version}


def add(repository, gate=None, limit: int | None = 2, **rules: object) -> None:
    """Write the variants `low`, which doubles, and `high`, which triples, and their model `m`."""
    wait = f"{gate.code}; " if gate is not None else ""
    repository.add("low", execute=f"{wait}y = x * 2", config=ONE_BY_ONE)
    repository.add("high", execute="y = x * 3")
    repository.write("m", {"1/.keep": ""}, routed(variant("low", limit), variant("high"), **rules))


async def metrics(plane, name: str) -> dict[str, float]:
    """Return a metric's values by variant."""
    text = b"".join([piece async for piece in plane.metrics()]).decode()
    values = {}
    for line in text.splitlines():
        if line.startswith(name + "{"):
            labels, _, number = line.removeprefix(name).rpartition(" ")
            pairs = dict(label.split("=") for label in labels.strip("{}").split(","))
            values[pairs["variant"].strip('"')] = float(number)
    return values


async def test_requests_beyond_the_crossover_go_to_the_other_variant(repository, serve, gate):
    add(repository, gate)
    plane = await serve()
    await plane.load("m", None, {})
    first = [asyncio.create_task(value(plane, "m")) for _ in range(2)]
    await gate.reached()
    assert [await value(plane, "m") for _ in range(3)] == [3.0, 3.0, 3.0]
    gate.open()
    assert await asyncio.gather(*first) == [2.0, 2.0]
    assert await metrics(plane, "argosy_variant_requests_total") == {"low": 2, "high": 3}
    assert await metrics(plane, "argosy_variant_regime") == {"low": 0, "high": 1}
    assert await metrics(plane, "argosy_variant_max_concurrency") == {"low": 2}
    assert plane.registry.find("m").statistics.success.count == 5
    assert plane.registry.find("m").running == 0


async def test_the_regime_goes_back_without_requests(repository, serve):
    add(repository, limit=1, minDwellSeconds=0.05)
    plane = await serve()
    await plane.load("m", None, {})
    await asyncio.gather(*(value(plane, "m") for _ in range(4)))
    regimes = plane.registry.find("m").runner.regimes
    assert regimes.changes
    await until(lambda: regimes.current == 0)
    assert await value(plane, "m") == 2.0


async def test_a_killed_variant_loses_no_request(repository, serve, gate, tmp_path):
    add(repository, limit=8)
    pid = tmp_path / "pid"
    note = f"open({str(pid)!r}, 'w').write(str(os.getpid()))"
    repository.add("low", initialize=note, execute=f"{gate.code}; y = x * 2", config=ONE_BY_ONE)
    plane = await serve()
    await plane.load("m", None, {})
    waiting = [asyncio.create_task(value(plane, "m")) for _ in range(4)]
    await gate.reached()
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert await waiting[0] == 3.0
    gate.open()
    assert set(await asyncio.gather(*waiting)) <= {2.0, 3.0}
    assert (await metrics(plane, "argosy_variant_moved_requests_total"))["low"] >= 1


async def test_requests_of_an_unloaded_variant_move(repository, serve, gate):
    add(repository, gate, limit=8)
    plane = await serve(unload_grace=0.1)
    await plane.load("m", None, {})
    waiting = [asyncio.create_task(value(plane, "m")) for _ in range(4)]
    await gate.reached()
    await plane.unload("low", unload_dependents=False)
    assert await asyncio.gather(*waiting) == [3.0] * 4
    assert await value(plane, "m") == 3.0
    assert (await states(plane))["m:1"] == "READY"
    gate.open()
    await plane.load("low", None, {})
    assert await value(plane, "m") == 2.0


async def test_a_variant_that_fails_to_load_leaves_the_other(repository, serve):
    add(repository)
    repository.add("low", initialize="raise ValueError('broken engine')", config=ONE_BY_ONE)
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m") == 3.0
    assert (await states(plane)) == {"low:1": "UNAVAILABLE", "high:1": "READY", "m:1": "READY"}
    assert (await metrics(plane, "argosy_variant_ready")) == {"low": 0, "high": 1}
    repository.add("low", execute="y = x * 2", config=ONE_BY_ONE)
    await plane.load("low", None, {})
    assert await value(plane, "m") == 2.0
    await plane.unload("low", unload_dependents=False)
    await plane.unload("high", unload_dependents=False)
    await settled(plane)
    with pytest.raises(ServingError, match="no available versions"):
        await value(plane, "m")


async def test_an_idle_variant_sleeps_and_is_woken_by_requests(repository, serve, gate):
    add(repository, gate, idleTimeoutSeconds=0.2)
    plane = await serve()
    await plane.load("m", None, {})
    high = plane.registry.find("high")
    await until(lambda: high.asleep and not high.takes_batches)
    assert (await states(plane))["high:1"] == "READY"
    assert (await metrics(plane, "argosy_variant_asleep")) == {"low": 0, "high": 1}
    waiting = [asyncio.create_task(value(plane, "m")) for _ in range(6)]
    await gate.reached()
    await until(lambda: not high.asleep)
    assert await value(plane, "m") == 3.0
    gate.open()
    assert await asyncio.gather(*waiting) == [2.0] * 6
    await until(lambda: high.asleep and not high.takes_batches)
    assert await value(plane, "high") == 3.0


async def test_requests_wait_for_a_sleeping_variant_if_no_other_answers(repository, serve):
    add(repository, idleTimeoutSeconds=0.2)
    plane = await serve()
    await plane.load("m", None, {})
    await until(lambda: plane.registry.find("high").asleep)
    await plane.unload("low", unload_dependents=False)
    assert await asyncio.gather(*(value(plane, "m") for _ in range(5))) == [3.0] * 5


async def test_requests_of_a_variant_that_cannot_be_woken_fail(repository, serve):
    add(repository, idleTimeoutSeconds=0.2)
    plane = await serve()
    await plane.load("m", None, {})
    high = plane.registry.find("high")
    await until(lambda: high.asleep and not high.takes_batches)
    repository.add("high", initialize="raise ValueError('no memory')")
    with pytest.raises(ServingError, match=r"cannot be woken: .*no memory") as failure:
        await value(plane, "high")
    assert failure.value.kind is ErrorKind.UNAVAILABLE
    assert await value(plane, "m") == 2.0


async def test_errors_of_requests_do_not_move(repository, serve):
    add(repository)
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match="'m'") as failure:
        await infer(plane, ask("m", requested_outputs=("Z",)))
    assert failure.value.kind is ErrorKind.INVALID_ARG
    assert sum((await metrics(plane, "argosy_variant_moved_requests_total")).values()) == 0


async def test_another_crossover_is_taken_without_a_reload(repository, serve, gate):
    add(repository, gate)
    plane = await serve()
    await plane.load("m", None, {})
    low, statistics = plane.registry.find("low"), plane.registry.find("m").statistics
    repository.write("m", {}, routed(variant("low", 1), variant("high")))
    await plane.load("m", None, {})
    assert plane.registry.find("low") is low
    assert plane.registry.find("m").statistics is statistics
    first = asyncio.create_task(value(plane, "m"))
    await gate.reached()
    assert await value(plane, "m") == 3.0
    gate.open()
    assert await first == 2.0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (routed(), "0 variants; 1 to 8"),
        (routed(variant("low"), variant("low")), "each variant must be another model"),
        (routed(variant("low", 8), variant("high", 4), variant("other")), "grow from one variant to the next"),
        (routed(variant("low"), variant("high"), hysteresis=1), "hysteresis must be"),
        (routed({"model": "low", "limit": 3}), "unknown field `limit`"),
        ('backend: "variants"', "no list of variants"),
        (routed(variant("low"), variant("e")), "must be a model, not an ensemble"),
        (routed(variant("low"), variant("wide")), "output 'Y' of 'low' is not that of 'wide'"),
    ],
)
async def test_wrong_variants_are_refused(repository, serve, config, message):
    add(repository)
    repository.add(
        "wide", config=CONFIG.replace('"Y" data_type: TYPE_FP32 dims: [ 1 ]', '"Y" data_type: TYPE_FP32 dims: [ 2 ]')
    )
    repository.write("e", {"1/.keep": ""}, 'platform: "ensemble" max_batch_size: 8' + _ENSEMBLE)
    repository.write("m", {}, config)
    plane = await serve(ControlMode.NONE)
    assert message in await reason(plane, "m")


_ENSEMBLE = """
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step [ {
  model_name: "low" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" }
} ] }
"""
