"""Models that say themselves whether they are ready (`is_ready`): what clients and other models read of it."""

import asyncio

import pytest
from tests.runtime.service.conftest import CONFIG, reason, value
from tests.waiting import until

from argosy_runtime.execution import instance

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
both = pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
MODEL = """
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    {define} is_ready(self):
        {answer}

    def execute(self, requests):
        {execute}
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", r.inputs()[0].as_numpy())]) for r in requests]
"""


def model(answer: str, execute: str = "pass", define: str = "def") -> dict[str, str]:
    """Return the files of a model that answers so."""
    return {"1/model.py": MODEL.format(define=define, answer=answer, execute=execute)}


async def ready(plane, name: str = "m") -> bool:
    """Return whether a model is ready, as a front end asks for it."""
    if (check := plane.readiness_check(name, "")) is not None:
        await check
    return plane.model_ready(name, "")


async def server_ready(plane) -> bool:
    """Return whether the server is ready, as a front end asks for it."""
    if (check := plane.readiness_check()) is not None:
        await check
    return plane.ready()


@both
@pytest.mark.parametrize("define", ["def", "async def"])
async def test_a_model_says_whether_it_is_ready_and_takes_requests_all_the_same(
    repository, serve, isolation, define, tmp_path
):
    sick = tmp_path / "sick"
    repository.write("m", model(f"return not os.path.exists({str(sick)!r})", define=define), CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    assert await ready(plane)
    assert await server_ready(plane)
    sick.touch()
    assert not await ready(plane)
    assert not await server_ready(plane)
    assert await reason(plane, "m") == "model instance 'm_0'" + (
        ": is_ready returned False" if isolation else ": backend 'python': is_ready returned False"
    )
    assert await value(plane, "m", 3) == 3
    sick.unlink()
    assert await ready(plane)
    assert await server_ready(plane)
    assert await reason(plane, "m") == ""


@both
@pytest.mark.parametrize(
    ("answer", "why"),
    [("raise ValueError('no licence')", "ValueError: no licence"), ("return 1", "must return a boolean value")],
)
async def test_an_exception_and_no_boolean_are_not_ready(repository, serve, isolation, answer, why, caplog):
    repository.write("m", model(answer), CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    assert not await ready(plane)
    assert why in await reason(plane, "m")
    assert why in caplog.text


@both
async def test_a_model_that_computes_answers_meanwhile_and_callers_share_a_check(
    repository, serve, isolation, gate, tmp_path
):
    calls = tmp_path / "calls"
    answer = f"with open({str(calls)!r}, 'a') as calls: calls.write('x')\n        time.sleep(0.5); return True"
    repository.write("m", model(answer, execute=gate.code), CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    computing = asyncio.create_task(value(plane, "m", 2))
    await gate.reached()
    assert await asyncio.gather(*(ready(plane) for _ in range(5))) == [True] * 5
    assert calls.read_text() == "x"
    assert not computing.done()
    gate.open()
    assert await computing == 2


@both
async def test_a_check_that_does_not_end_is_not_ready_and_holds_nothing_up(repository, serve, isolation, monkeypatch):
    monkeypatch.setattr(instance, "_READINESS_SECONDS", 0.2)
    repository.write("m", model("time.sleep(20); return True"), CONFIG + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    assert not await ready(plane)
    assert "is_ready takes longer than 0.2 s" in await reason(plane, "m")
    assert await value(plane, "m", 3) == 3
    await asyncio.wait_for(plane.unload("m", False), 10)
    await until(lambda: not plane.model_ready("m", ""))


@both
async def test_another_model_asks_for_it_too(repository, serve, isolation):
    repository.write("m", model("return False"), CONFIG + isolation)
    repository.add("asking", execute="y = x * 0 + pb_utils.is_model_ready('m')", config=CONFIG + isolation)
    plane = await serve()
    for name in ("m", "asking"):
        await plane.load(name, None, {})
    assert await value(plane, "asking") == 0


async def test_models_without_a_check_cost_nothing(repository, serve):
    repository.add("m")
    plane = await serve()
    await plane.load("m", None, {})
    assert plane.readiness_check() is None
    assert plane.readiness_check("m", "") is None
    assert plane.model_ready("m", "")


async def test_without_strict_readiness_the_server_does_not_ask(repository, serve):
    repository.write("m", model("return False"), CONFIG)
    plane = await serve(strict_readiness=False)
    await plane.load("m", None, {})
    assert await server_ready(plane)
    assert not await ready(plane)
