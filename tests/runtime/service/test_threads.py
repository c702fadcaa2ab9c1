"""Models on threads of the server: what nothing can end must not pile up, and must not stay."""

import asyncio

import pytest
from tests.runtime.service.conftest import CONFIG, Repository, settled, value
from tests.waiting import until

from argosy_runtime.backends import python
from argosy_runtime.backends.contract import ModelInstance
from argosy_runtime.errors import ServingError

THREAD = CONFIG + 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
SLOW = """
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        with open({begun!r}, "a") as begun:
            begun.write("x")
        {gate}

    def execute(self, requests):
        answers = [pb_utils.Tensor("Y", request.inputs()[0].as_numpy()) for request in requests]
        return [pb_utils.InferenceResponse([answer]) for answer in answers]

    def finalize(self):
        open({released!r}, "w").close()
"""


async def test_a_load_that_takes_too_long_is_released_when_it_returns(repository: Repository, serve, gate, tmp_path):
    begun, released = tmp_path / "begun", tmp_path / "released"
    source = SLOW.format(begun=str(begun), gate=gate.code, released=str(released))
    repository.write("m", {"1/model.py": source}, THREAD)
    plane = await serve(load_timeout=0.2)
    with pytest.raises(ServingError, match="is still loading after 0"):
        await plane.load("m", None, {})
    for _ in range(3):
        with pytest.raises(ServingError, match="an earlier load of instance 'm_0' took too long and still goes on"):
            await plane.load("m", None, {})
    assert begun.read_text() == "x", "no further one began"
    gate.open()
    await until(released.exists)
    while not await loads(plane):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    assert await value(plane, "m", 3) == 3


async def loads(plane) -> bool:
    """Return whether the model can be loaded again."""
    try:
        await plane.load("m", None, {})
    except ServingError as error:
        return "an earlier load" not in error.message
    return True


class Stubborn:
    """A loaded model that cannot be released."""

    def __init__(self, model: ModelInstance) -> None:
        self.execute = model.execute

    def close(self) -> None:
        raise RuntimeError("it will not go")


async def test_a_model_that_cannot_be_released_does_not_hold_up_its_unload(repository, serve, monkeypatch, caplog):
    load = python.load
    monkeypatch.setattr(python, "load", lambda spec, host: Stubborn(load(spec, host)))
    repository.add("m", config=THREAD)
    plane = await serve(unload_grace=1e6)
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3
    await plane.unload("m", False)
    await settled(plane)
    assert "it will not go" in caplog.text
