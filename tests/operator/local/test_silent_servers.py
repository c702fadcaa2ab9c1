"""A server of `argosy up` that hangs: it holds up no other, and its last word stands for a while only."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from argosy.local.servers import managed
from argosy.local.servers.managed import EXPIRY_S, HANG_S, ManagedServer
from argosy.local.servers.ports import Ports
from argosy.local.servers.server import Command
from argosy_agent.cache.storage import Storage


class Process:
    """The process of a server."""

    pid = 4711
    alive = True

    def end(self) -> None:
        """Do nothing: the process has ended."""

    def how_it_ended(self) -> str:
        return "ended with 1"


class Answers:
    """A server's control protocol that answers while it `goes` on."""

    def __init__(self) -> None:
        self.goes = asyncio.Event()
        self.goes.set()
        self.is_live = True

    async def live(self) -> bool:
        await self.goes.wait()
        return self.is_live

    async def observe(self) -> bool:
        await self.goes.wait()
        return True

    async def statistics(self, model: str = "") -> tuple[Any, ...]:
        await self.goes.wait()
        return ("tally",)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def server(tmp_path: Path, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> ManagedServer:
    """Return a running server whose control the test plays."""
    monkeypatch.setattr(managed, "OBSERVE_TIMEOUT_S", 0.01)
    command = Command(tmp_path / "repository", "127.0.0.1", Ports(1, 2, 3))
    managed_server: Any = ManagedServer("laptop-0", command, tmp_path, Storage(tmp_path / "cache"))
    managed_server._control = answers
    managed_server._process = Process()
    monkeypatch.setattr(managed_server.agent, "observe", answers.observe)
    return managed_server  # type: ignore[no-any-return]


async def test_the_last_word_of_a_server_that_hangs_stands_for_a_while(server: ManagedServer, answers: Answers) -> None:
    assert (await server.observe(100.0)).ready
    answers.goes.clear()
    await server.observe(100.0)
    report = await server.observe(100.0 + EXPIRY_S - 0.1)
    assert (report.ready, report.error) == (True, "")
    assert await server.tallies() == (), "what it has done is not asked of one that does not answer"
    report = await server.observe(100.0 + EXPIRY_S)
    assert not report.ready
    assert report.error == (
        "server laptop-0 has not answered for 5 s and is not ready; it is asked again and again: on a busy machine it "
        "may only be slow"
    )
    assert report.models == ()
    assert (await server.observe(100.0 + HANG_S - 0.1)).error == report.error
    report = await server.observe(100.0 + HANG_S)
    assert not report.ready
    assert report.error == (
        "server laptop-0 has not answered for 120 s. If it hangs, end its process (kill -9 4711): it is started again"
    )
    answers.goes.set()
    report = await server.observe(100.0 + HANG_S + 2)
    assert (report.ready, report.error) == (True, "")
    assert await server.tallies() == ("tally",)


async def test_a_server_is_not_silent_while_the_round_before_takes_long(
    server: ManagedServer, answers: Answers
) -> None:
    assert (await server.observe(100.0)).ready
    answers.goes.clear()
    report = await server.observe(100.0 + 2 * EXPIRY_S)
    assert (report.ready, report.error) == (True, ""), "it was asked a moment ago"
    assert not (await server.observe(100.0 + 3 * EXPIRY_S)).ready


async def test_that_it_hangs_is_reported_until_it_answers(server: ManagedServer, answers: Answers) -> None:
    await server.observe(100.0)
    answers.goes.clear()
    await server.observe(100.0)
    silent = await server.observe(100.0 + EXPIRY_S)
    answers.is_live = False  # as where the client has waited long enough
    answers.goes.set()
    assert await server.observe(110.0) == silent
    answers.goes.clear()
    assert await server.observe(112.0) == silent
    server._process = None
    await server.stop()


async def test_one_that_hangs_can_be_stopped(server: ManagedServer, answers: Answers) -> None:
    answers.goes.clear()
    await server.observe(0.0)
    server._process = None
    await server.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_process_s_report_does_not_count_for_the_next(
    server: ManagedServer, answers: Answers, tmp_path: Path
) -> None:
    (tmp_path / "server.log").write_text("Bus error\n")
    answers.goes.clear()
    await server.observe(100.0)
    answers.goes.set()
    assert server._look is not None
    assert await asyncio.shield(server._look)
    server._process.alive = False  # type: ignore[union-attr,misc]
    await server.keep(101.0)
    report = await server.observe(101.0)
    assert not report.ready
    assert "ended with 1" in report.error
    await server.stop()
