"""The end of a server: what was accepted is answered, with all the calls that this takes; nothing new is."""

import asyncio

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, value

from argosy_runtime.errors import ServingError

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
CALL = """
answer = pb_utils.InferenceRequest(model_name={model!r}, inputs=[pb_utils.Tensor("X", x)], requested_output_names=["Y"])
answer = answer.exec()
if answer.has_error():
    raise RuntimeError(answer.error().message())
y = answer.output_tensors()[0].as_numpy() + 1
"""


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_a_model_may_call_others_until_what_was_accepted_is_answered(repository, serve, gate, isolation):
    repository.add("last", execute="y = 2 * x")
    repository.add("middle", execute=CALL.format(model="last"), config=CONFIG + isolation)
    repository.add("first", execute=gate.code + CALL.format(model="middle"), config=CONFIG + isolation)
    plane = await serve()
    for name in ("last", "middle", "first"):
        await plane.load(name, None, {})
    pending = [asyncio.create_task(value(plane, "first", x)) for x in (3, 5)]
    await gate.reached()
    closing = asyncio.create_task(plane.close(grace=30))
    await asyncio.sleep(0)
    with pytest.raises(ServingError, match="Server is stopping"):
        await infer(plane, ask("last", 1.0))
    gate.open()
    assert await asyncio.gather(*pending) == [8, 12]
    await closing


async def test_what_takes_longer_than_the_grace_is_answered_with_an_error(repository, serve, gate):
    repository.add("m", execute=gate.code)
    plane = await serve()
    await plane.load("m", None, {})
    pending = asyncio.create_task(value(plane, "m"))
    await gate.reached()
    await plane.close(grace=0.05)
    with pytest.raises(ServingError):
        await pending
