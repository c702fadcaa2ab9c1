"""The processes that a model has started end with its own, whose end is noticed whatever it has started."""

import asyncio
import os
import signal

import psutil
import pytest
from tests.runtime.service.conftest import ask, infer, value
from tests.waiting import until

from argosy_runtime.errors import ServingError

# A program, and a copy of the process that has the socket to the server open too.
START = """
import multiprocessing, subprocess
child = subprocess.Popen(["sleep", "10000"])
copy = multiprocessing.get_context("fork").Process(target=time.sleep, args=(10000,))
copy.start()
with open({pids!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}} {{copy.pid}}\\n")
"""


@pytest.fixture
def pids(tmp_path):
    """Return the file in which processes record their pids."""
    return tmp_path / "pids"


def started(pids) -> list[int]:
    """Return the model's process and the processes that it started."""
    return [int(pid) for pid in pids.read_text().split()]


def is_gone(pid: int) -> bool:
    """Return whether the process no longer does anything."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def all_gone(processes: list[int]) -> None:
    """Wait until none of them is there."""
    await until(lambda: all(map(is_gone, processes)))


async def test_an_unload_leaves_nothing_of_a_model(repository, serve, pids):
    repository.add("m", initialize=START.format(pids=str(pids)))
    plane = await serve()
    await plane.load("m", None, {})
    family = started(pids)
    await plane.unload("m", False)
    await all_gone(family)


async def test_a_death_is_noticed_while_a_copy_of_the_process_has_the_socket(repository, serve, pids, gate):
    code = f"if x[0, 0] < 0: {gate.code}"
    repository.add("m", initialize=START.format(pids=str(pids)), execute=code)
    plane = await serve()
    await plane.load("m", None, {})
    family = started(pids)
    pending = asyncio.create_task(infer(plane, ask("m", -1.0)))
    await gate.reached()
    os.kill(family[0], signal.SIGKILL)
    with pytest.raises(ServingError, match=r"was killed by signal 9 \(SIGKILL\); it is being restarted"):
        await pending
    await all_gone(family)
    assert await value(plane, "m", 3) == 3
    assert set(started(pids)).isdisjoint(family)


async def test_a_death_is_noticed_where_what_has_the_socket_has_left_the_group(repository, serve, pids):
    code = f"""
    if (stray := os.fork()) == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)
    with open({str(pids)!r}, "a") as file:
        file.write(f"{{stray}}\\n")
    """
    repository.add("m", initialize=code, execute="if x[0, 0] < 0: os._exit(3)")
    plane = await serve()
    await plane.load("m", None, {})
    try:
        with pytest.raises(ServingError, match="exited with code 3"):
            await infer(plane, ask("m", -1.0))
        assert await value(plane, "m", 3) == 3
        assert not is_gone(started(pids)[0])
    finally:
        for stray in started(pids):
            os.kill(stray, signal.SIGKILL)


async def test_a_load_that_is_abandoned_leaves_nothing_of_a_model(repository, serve, pids):
    repository.add("m", initialize=START.format(pids=str(pids)) + "time.sleep(10000)")
    plane = await serve()
    loading = asyncio.create_task(plane.load("m", None, {}))
    await until(lambda: pids.exists() and len(started(pids)) == 3)
    await plane.close(grace=0.1)
    await asyncio.gather(loading, return_exceptions=True)
    await all_gone(started(pids))
