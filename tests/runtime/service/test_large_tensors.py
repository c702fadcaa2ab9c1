"""Large tensors between the server and a model's process: what is answered, what is kept, what is given back."""

import asyncio

import numpy as np
import pytest
from tests.runtime.service.conftest import infer, responses
from tests.waiting import until

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.errors import ServingError
from argosy_runtime.execution.process.wire.arena import ARENA_SIZE, Arena
from argosy_runtime.messages import InferRequest, Tensor

COUNT = 1 << 18  # FP32 elements: a megabyte
CONFIG = """
backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
STRINGS = CONFIG.replace("FP32", "STRING")


def large(number: float, count: int = COUNT) -> InferRequest:
    """Return a request of `count` equal elements."""
    return InferRequest("m", {"X": Tensor("X", "FP32", np.full(count, number, np.float32))})


@pytest.fixture
def arenas(monkeypatch: pytest.MonkeyPatch) -> list[Arena]:
    """Return the server's side of every arena, as processes are started."""
    made: list[Arena] = []
    start = Arena.__init__

    def noted(arena: Arena, fd: int, server: bool) -> None:
        start(arena, fd, server)
        made.append(arena)

    monkeypatch.setattr(Arena, "__init__", noted)
    return made


async def at_rest(*arenas: Arena) -> None:
    """Wait until nothing is left in them whose end was not reported."""
    await until(lambda: all(arena.outgoing.is_empty and not arena.incoming.any_lent for arena in arenas))


async def echoed(plane: DataPlane, number: float, count: int = COUNT) -> bool:
    """Return whether that many elements come back as they were sent."""
    response = await infer(plane, large(number, count))
    return bool((response.outputs[0].array == number).all()) and response.outputs[0].shape == (count,)


async def test_many_at_once_come_back_and_leave_nothing(repository, serve, arenas):
    repository.add("m", config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    for begin in range(0, 1000, 50):
        assert all(await asyncio.gather(*[echoed(plane, number) for number in range(begin, begin + 50)]))
    await at_rest(*arenas)


async def test_they_do_go_by_shared_memory(repository, serve, arenas):
    repository.add("m", config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    response = await infer(plane, large(3))
    assert arenas[-1].incoming.any_lent
    assert (response.outputs[0].array == 3).all()
    del response
    await at_rest(*arenas)


async def test_what_is_larger_than_the_memory_goes_by_the_socket(repository, serve, arenas):
    repository.add("m", config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    assert await echoed(plane, 5, ARENA_SIZE // 4 + 1)
    assert arenas[-1].outgoing.is_empty


async def test_inputs_that_a_model_keeps_stay_as_they_were(repository, serve, arenas):
    """More of them than the memory holds: the others go by the socket."""
    execute = """
    self.kept.append(x)
    y = np.array([kept[0] for kept in self.kept if (kept == kept[0]).all()], np.float32)
    if x[0] < 0:
        self.kept.clear()
        y = x
    """
    repository.add("m", initialize="global np; import numpy as np; self.kept = []", execute=execute, config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    most = ARENA_SIZE // (4 * COUNT) + 8
    for number in range(most):
        response = await infer(plane, large(number))
        assert response.outputs[0].array.tolist() == list(range(number + 1))
    assert not arenas[-1].outgoing.is_empty
    assert await echoed(plane, -1)
    del response
    assert await echoed(plane, -1)
    await at_rest(*arenas)


async def test_answers_that_a_client_keeps_stay_as_they_were(repository, serve, arenas):
    repository.add("m", config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    most = ARENA_SIZE // (4 * COUNT) + 8
    answers = [await infer(plane, large(number)) for number in range(most)]
    assert [(float(one.outputs[0].array[0]), float(one.outputs[0].array[-1])) for one in answers] == [
        (number, number) for number in range(most)
    ]
    answers.clear()
    await at_rest(*arenas)


async def test_a_request_that_is_cancelled_leaves_nothing(repository, serve, arenas, gate):
    repository.add("m", execute=f"x[0] == 1 and {gate.code}", config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    gone = asyncio.ensure_future(infer(plane, large(1)))
    await gate.reached()
    gone.cancel()
    gate.open()
    assert await echoed(plane, 2)
    await at_rest(*arenas)


async def test_with_its_process_goes_what_lay_in_its_memory_and_answers_stay(repository, serve, arenas):
    repository.add("m", execute="x[0] < 0 and os._exit(3)", config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    answer = await infer(plane, large(7))
    reported = await asyncio.gather(*[infer(plane, large(-1)) for _ in range(2)], return_exceptions=True)
    assert any(isinstance(one, ServingError) for one in reported)
    assert (answer.outputs[0].array == 7).all()
    assert await echoed(plane, 3)
    del answer
    await at_rest(arenas[-1])


async def test_strings_and_decoupled_responses_and_calls_of_models(repository, serve, arenas):
    """Strings never lie in shared memory: the process could change their lengths after they were looked at."""
    repository.add("strings", config=STRINGS)
    repository.add("other", execute="y = x + 1", config=CONFIG)
    execute = """
    asked = pb_utils.InferenceRequest(
        model_name="other", inputs=[pb_utils.Tensor("X", x)], requested_output_names=["Y"]
    )
    y = pb_utils.get_output_tensor_by_name(asked.exec(), "Y").as_numpy()
    """
    repository.add("m", execute=execute, config=CONFIG)
    plane = await serve()
    for name in ("strings", "other", "m"):
        await plane.load(name, None, {})
    words = np.array([b"x" * 1000] * 1000, np.object_)
    before = len(arenas)
    answer = await infer(plane, InferRequest("strings", {"X": Tensor("X", "BYTES", words)}))
    assert answer.outputs[0].array.tolist() == words.tolist()
    assert not any(arena.incoming.any_lent for arena in arenas[:before])
    response = await infer(plane, large(4))
    assert (response.outputs[0].array == 5).all()
    async for one in responses(plane, large(6)):
        assert not one.outputs or (one.outputs[0].array == 7).all()
    del response, one
    await at_rest(*arenas)


async def test_without_such_memory_all_goes_by_the_socket(repository, serve, arenas, monkeypatch):
    monkeypatch.delattr("os.memfd_create")
    repository.add("m", config=CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    assert await echoed(plane, 9)
    assert not arenas
