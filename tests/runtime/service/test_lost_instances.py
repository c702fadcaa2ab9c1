"""Instances whose process dies: while others load, and later; what comes back is warm."""

import asyncio
import os
import signal
from contextlib import nullcontext, suppress

import psutil
import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, value
from tests.waiting import until

from argosy_runtime.errors import ServingError

TWO = CONFIG.replace("dynamic_batching { }", "instance_group [ { kind: KIND_CPU count: 2 } ]")
WARM = """
model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value { data_type: TYPE_FP32 dims: 1 zero_data: true } } } ]
"""


async def at_rest(pid: int) -> None:
    """Wait until a process has sent all that it had to send: all of its threads sleep, three times in turn."""
    looks = 0
    while looks < 3:
        await asyncio.sleep(0.05)
        states = {psutil.Process(thread.id).status() for thread in psutil.Process(pid).threads()}
        looks = looks + 1 if states == {psutil.STATUS_SLEEPING} else 0


async def test_an_instance_that_dies_while_another_loads_comes_back(repository, serve, gate, caplog):
    first = repository.path.parent / "first"
    code = f"""
    if args["model_instance_name"].endswith("_0"):
        with open({str(first)!r}, "w") as file:
            file.write(str(os.getpid()))
    elif not os.path.exists({str(gate.opened)!r}):
        {gate.code}
    """
    repository.add("m", initialize=code, execute="time.sleep(0.05); y = x * 0 + os.getpid()", config=TWO)
    plane = await serve()
    loading = asyncio.create_task(plane.load("m", None, {}))
    await gate.reached()
    await until(lambda: first.exists() and first.read_text())
    pid = int(first.read_text())
    await at_rest(pid)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: "it is being restarted" in caplog.text)
    gate.open()
    await loading
    seen: set[float] = set()
    while len(seen) < 2:
        seen |= set(await asyncio.gather(*(value(plane, "m") for _ in range(4))))
    assert pid not in seen


@pytest.mark.parametrize("isolation", ["process", "thread"])
async def test_an_instance_that_gives_itself_up_comes_back(repository, serve, isolation, caplog):
    log = repository.path.parent / "log"
    initialize = f"""
    with open({str(log)!r}, "a") as log:
        log.write("loaded ")
    """
    execute = """
    if x[0, 0] < 0:
        from argosy_runtime.backends.python.pb_utils import context
        from argosy_runtime.errors import internal
        context.current().host.lost(internal("the engine is dead"))
    """
    parameter = f'parameters {{ key: "ISOLATION" value {{ string_value: "{isolation}" }} }}'
    repository.add("m", initialize, execute, CONFIG + parameter)
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 5) == 5
    with suppress(ServingError):  # on a thread the batch that gives up may still be answered
        await infer(plane, ask("m", -1))
    await until(lambda: log.read_text() == "loaded loaded ")
    assert await value(plane, "m", 6) == 6
    assert "the engine is dead" in caplog.text


ILLEGAL = "CUDA error: an illegal memory access was encountered"
# What torch raises, of torch's name, without the time that torch takes to import.
TORCH = f"""
    accelerator_error = type("AcceleratorError", (RuntimeError,), {{"__module__": "torch"}})
    words = {ILLEGAL!r} + "\\nCompile with TORCH_USE_CUDA_DSA"
"""


def placed(kind: str, isolation: str) -> str:
    """Return the configuration of a model on that kind of device."""
    group = f"instance_group [ {{ kind: {kind} count: 1 }} ]"
    return f'{CONFIG}{group} parameters {{ key: "ISOLATION" value {{ string_value: "{isolation}" }} }}'


@pytest.mark.parametrize("isolation", ["process", "thread"])
async def test_an_instance_with_a_device_error_is_reloaded(repository, serve, isolation, caplog):
    log = repository.path.parent / "log"
    initialize = f"""
    with open({str(log)!r}, "a") as log:
        log.write("loaded ")
    """
    execute = f"""
    {TORCH}
    if x[0, 0] < 0:
        raise accelerator_error(words)
    """
    repository.add("m", initialize, execute, placed("KIND_MODEL", isolation))
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 5) == 5
    with pytest.raises(ServingError, match="illegal memory access"):
        await infer(plane, ask("m", -1))
    await until(lambda: log.read_text() == "loaded loaded ")
    assert await value(plane, "m", 6) == 6
    assert "met an error of its device" in caplog.text


@pytest.mark.parametrize("isolation", ["process", "thread"])
@pytest.mark.parametrize("answered", [False, True])
async def test_a_request_that_waits_runs_after_the_reload(repository, serve, gate, isolation, answered, caplog):
    execute = f"""
    {TORCH}
    if x[0, 0] < 0:
        if {answered}:
            response = pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)])
            request.get_response_sender().send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        {gate.code}
        raise accelerator_error(words)
    """
    repository.add("m", execute=execute, config=placed("KIND_MODEL", isolation))
    plane = await serve()
    await plane.load("m", None, {})
    poison = asyncio.create_task(infer(plane, ask("m", -1)))
    await gate.reached()
    waiting = asyncio.create_task(value(plane, "m", 6))
    await asyncio.sleep(0.05)
    gate.open()
    with nullcontext() if answered else pytest.raises(ServingError, match="illegal memory access"):
        await poison
    assert await waiting == 6
    assert "met an error of its device" in caplog.text


@pytest.mark.parametrize("isolation", ["process", "thread"])
@pytest.mark.parametrize(("kind", "error"), [("KIND_CPU", "accelerator_error"), ("KIND_MODEL", "ValueError")])
async def test_an_instance_that_speaks_of_a_device_stays(repository, serve, isolation, kind, error):
    execute = f"""
    {TORCH}
    if x[0, 0] < 0:
        raise {error}(words)
    y = x * 0 + id(self)
    """
    repository.add("m", "pass", execute, placed(kind, isolation))
    plane = await serve()
    await plane.load("m", None, {})
    before = await value(plane, "m", 5)
    for _ in range(4):
        with pytest.raises(ServingError, match="illegal memory access"):
            await infer(plane, ask("m", -1))
        assert await value(plane, "m", 5) == before


async def test_what_comes_back_is_warm_before_it_answers(repository, serve):
    log = repository.path.parent / "log"
    code = f"""
    with open({str(log)!r}, "a") as log:
        log.write(f"{{os.getpid()}} {{x[0, 0]:g}}\\n")
    if x[0, 0] < 0:
        os._exit(1)
    """
    repository.add("m", execute=code, config=CONFIG + WARM)
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match="exited with code 1"):
        await infer(plane, ask("m", -1))
    assert await value(plane, "m", 5) == 5
    (first, _), (_, _), (second, _), _ = lines = [line.split() for line in log.read_text().splitlines()]
    assert [x for _, x in lines] == ["0", "-1", "0", "5"]
    assert first != second
    statistics = plane.statistics("m", "").model_stats[0]
    assert statistics.inference_stats.success.count == 3
