"""An unload frees a model's memory in the server, without the collector of circles."""

import gc
import os
from collections import Counter

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, settled, value
from tests.waiting import until

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
# Circles that asyncio makes of its own for each connection, and what this test itself has in hand.
FEW = 200
ROUNDS = 8


def descriptors() -> int:
    """Return how many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    """Return how many pieces of memory are shared with models' processes."""
    with open("/proc/self/maps") as maps:
        return sum("argosy-tensors" in line for line in maps)


def owned() -> Counter[str]:
    """Count our objects, by type."""
    types = [type(item) for item in gc.get_objects()]
    return Counter(item.__qualname__ for item in types if str(item.__module__).startswith("argosy_runtime."))


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_loads_and_unloads_leave_nothing(repository, serve, isolation):
    repository.add("m", execute="y = x * 2", config=CONFIG + isolation)
    plane = await serve()

    async def once() -> None:
        await plane.load("m", None, {})
        assert await value(plane, "m", 3) == 6
        await plane.unload("m", False)
        await settled(plane)

    await once()
    gc.collect()
    gc.disable()
    try:
        before, files, ours = len(gc.get_objects()), descriptors(), owned()
        for _ in range(ROUNDS):
            await once()
        await until(lambda: descriptors() <= files)
        assert mappings() == 0
        assert not {name: count for name, count in (owned() - ours).items() if count >= ROUNDS}
        # On a busy machine the event loop's own ends of a connection take a few more of its rounds.
        await until(lambda: len(gc.get_objects()) < before + FEW)
    finally:
        gc.enable()


async def test_memory_of_a_process_goes_with_the_last_tensor_that_lies_in_it(repository, serve):
    size = 1 << 15
    repository.add("m", execute="y = x + 1", config=CONFIG.replace("[ 1 ]", f"[ {size} ]"))
    plane = await serve()
    await plane.load("m", None, {})
    request = ask("m", *[1.0] * size)
    request.inputs["X"] = request.inputs["X"].reshaped((1, size))
    output = (await infer(plane, request)).outputs[0]
    assert mappings() == 1
    await plane.unload("m", False)
    await settled(plane)
    assert float(output.array[0, -1]) == 2, "it can still be read"
    del output
    await until(lambda: mappings() == 0)
