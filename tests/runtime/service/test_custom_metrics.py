"""Metrics that models make: theirs as long as they are, whatever becomes of their instances."""

import os
import signal

import pytest
from tests.runtime.service.conftest import CONFIG, settled, value
from tests.waiting import until

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
both = pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
MAKE = """
family = pb_utils.MetricFamily(name="calls", description="Calls.", kind=pb_utils.MetricFamily.COUNTER)
self.calls = family.Metric(labels={"model": "m"})
"""
COUNT = "self.calls.increment(1); y = x * 0 + self.calls.value()"


async def series(plane) -> dict[str, float]:
    """Return the samples of `calls`."""
    text = b"".join([part async for part in plane.metrics()]).decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith("calls{")]
    return {name: float(number) for name, _, number in lines}


@both
async def test_an_edited_model_goes_on_counting(repository, serve, isolation):
    repository.add("m", MAKE, COUNT, CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m") == 1
    repository.add("m", MAKE, COUNT + " + 100", CONFIG + isolation)
    await plane.load("m", None, {})
    await settled(plane)
    assert [await value(plane, "m") for _ in range(2)] == [102, 103]
    assert await series(plane) == {'calls{model="m"}': 3}
    await plane.unload("m", False)
    await settled(plane)
    assert await series(plane) == {}


@both
async def test_the_instance_that_stays_keeps_what_both_had(repository, serve, isolation):
    def config(count: int) -> str:
        return CONFIG + isolation + f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]"

    repository.add("m", MAKE, COUNT, config(2))
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m") == 1
    repository.add("m", MAKE, COUNT, config(1))
    await plane.load("m", None, {})
    await settled(plane)
    assert await value(plane, "m") == 2
    assert await series(plane) == {'calls{model="m"}': 2}


async def test_what_died_has_no_metrics_and_what_comes_back_goes_on(repository, serve, tmp_path):
    gate = tmp_path / "gate"
    hold = f"\nwhile os.path.exists({str(gate)!r}): time.sleep(0.01)"
    repository.add("m", hold + MAKE, COUNT.replace("self.calls.value()", "os.getpid()"))
    plane = await serve()
    await plane.load("m", None, {})
    gate.touch()
    os.kill(int(await value(plane, "m")), signal.SIGKILL)
    await until(lambda: not plane.exposed.custom.families())
    gate.unlink()
    await value(plane, "m")
    assert await series(plane) == {'calls{model="m"}': 2}


@both
async def test_a_metric_made_in_every_execute_loses_no_count(repository, serve, isolation):
    execute = MAKE.replace("self.calls", "calls") + COUNT.replace("self.calls", "calls") + "\ndel calls"
    repository.add("m", execute=execute, config=CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    assert [await value(plane, "m") for _ in range(20)] == list(range(1, 21))


@both
async def test_a_model_that_fails_to_load_leaves_no_metric(repository, serve, isolation):
    repository.add("m", MAKE + "raise RuntimeError('no')", config=CONFIG + isolation)
    plane = await serve()
    with pytest.raises(Exception, match="no"):
        await plane.load("m", None, {})
    assert await series(plane) == {}


async def test_wrong_names_are_exceptions_in_the_model_and_leave_the_text_intact(repository, serve):
    execute = """
    made = []
    for name, labels in (("a b", {}), ("calls", {"a-b": 1}), ("calls", {"__name__": "x"}), ("nv_inference_count", {})):
        try:
            made.append(pb_utils.MetricFamily(name, "", pb_utils.MetricFamily.COUNTER).Metric(labels=labels))
        except pb_utils.TritonModelException:
            pass
    y = x * 0 + len(made)
    """
    repository.add("m", execute=execute)
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m") == 0
    assert await series(plane) == {}
