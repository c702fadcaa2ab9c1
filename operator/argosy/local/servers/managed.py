"""One server of `argosy up`: its process and its agent."""

import asyncio
import time
from pathlib import Path

from argosy.local.process import LocalProcess, last_line, stop
from argosy.planning.facts import ServerReport
from argosy_agent.cache.storage import Storage
from argosy_agent.contract import RenderedRepository
from argosy_agent.controltoken import OWNER, write_token
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.sync.agent import Agent
from argosy_agent.sync.control import Control, ControlError, Tally
from argosy_common.backoff import backoff_s

from .ports import ListenError, check_free
from .server import EXIT_TIMEOUT_S, Command

BACKOFF_FIRST_S, BACKOFF_MOST_S = 1.0, 30.0
OBSERVE_TIMEOUT_S = 1.0
"""Seconds that a round waits for a server's answer, so that one that hangs does not delay the others."""
EXPIRY_S = 5.0
"""Seconds after which a server that was asked and does not answer is no longer live."""
HANG_S = 120.0
"""Seconds without an answer after which users are advised to end a server. On a busy machine a healthy one is slow."""
BACKOFF_RESET_S = 60.0
"""A server that has run for this many seconds starts with the first backoff again."""


class ManagedServer:
    """Starts, adopts, observes and restarts one server. Times are seconds of a monotonic clock."""

    def __init__(self, name: str, command: Command, folder: Path, storage: Storage) -> None:
        self.name, self.command = name, command
        self.url = f"http://{command.host}:{command.ports.http}"
        self.live = False
        self.crashes = 0
        self._error = self._silence = ""
        self._folder = folder
        self._control = Control(self.url, command.control_token)
        repository = RepositoryFolder(folder, str(folder / "server.log"))
        self.agent = Agent(repository, storage, self._control, time.monotonic)
        self._process: LocalProcess | None = None
        self._started = 0.0
        self._start_at = 0.0
        self._look: asyncio.Task[bool] | None = None
        self._heard_at = self._requested_at = 0.0

    @property
    def error(self) -> str:
        """Why it does not run or answer; empty if there is no error."""
        return self._error or self._silence

    @property
    def pid(self) -> int | None:
        """Its process id, while it has one."""
        return self._process.pid if self._process else None

    @property
    def adopted(self) -> bool:
        """Whether an earlier `argosy up` started the process."""
        return self._process is not None and self._process.adopted

    async def keep(self, now: float) -> None:
        """Adopt or start its process, or restart it after its backoff.

        Raises ListenError or OSError where it has never run and cannot be started.
        """
        if self._process is not None and not self._process.alive:
            await self._crashed(self._process, now)
        if self._process is not None or now < self._start_at:
            return
        try:
            await self._begin(now)
        except (ListenError, OSError) as error:
            if not self.crashes:
                raise
            self._error, self._start_at = str(error), now + BACKOFF_MOST_S

    async def observe(self, now: float) -> ServerReport:
        """Return the report of the server and its models; the former one while a slow answer has not expired."""
        if self._look is None:
            self._look, self._requested_at = asyncio.create_task(self._answers()), now
        await asyncio.wait({self._look}, timeout=OBSERVE_TIMEOUT_S)
        if self._look.done():
            self.live, self._look = self._look.result(), None
            if self.live:
                self._heard_at, self._silence = now, ""
        elif now - self._requested_at >= EXPIRY_S:  # a round that took long itself is no silence of the server
            self.live = False
            self._silence = self._silent(now - self._heard_at)
        if not self.live:
            self.agent.forget()
        loaded = self.agent.ledger.loaded()
        address = f"{self.command.host}:{self.command.ports.grpc}"
        return ServerReport(self.name, self.live, loaded, self.url, self.error, grpc_address=address)

    def _silent(self, seconds: float) -> str:
        """Return the error of a server that has not answered for this long."""
        if seconds < HANG_S:
            return (
                f"server {self.name} has not answered for {EXPIRY_S:g} s and is not ready; it is asked again and "
                "again: on a busy machine it may only be slow"
            )
        return (
            f"server {self.name} has not answered for {HANG_S:g} s. If it hangs, end its process "
            f"(kill -9 {self.pid}): it is started again"
        )

    async def _answers(self) -> bool:
        return self._process is not None and await self._control.live() and await self.agent.observe()

    async def aim(self, desired: RenderedRepository) -> None:
        """Set the repository that it should serve."""
        await self.agent.aim(desired)

    def converge(self) -> None:
        """Load and unload models towards that repository, if it is live."""
        if self.live:
            self.agent.converge()

    async def tallies(self) -> tuple[Tally, ...]:
        """Return the tallies of its models; none while it does not answer."""
        if not self.live or self._look is not None:
            return ()
        try:
            return await asyncio.wait_for(self._control.statistics(), OBSERVE_TIMEOUT_S)
        except (ControlError, TimeoutError):
            return ()

    async def stop(self) -> None:
        """Cancel what its agent does, drain the server and stop it."""
        await self._cancel_look()
        await self.agent.stop()
        await self._control.close()
        if self._process is not None:
            await asyncio.to_thread(stop, self._process, EXIT_TIMEOUT_S)
            self._process = None

    def kill(self) -> None:
        """Kill it, so that `stop` has nothing left to wait for."""
        if self._process is not None:
            self._process.kill()

    async def _begin(self, now: float) -> None:
        left = await asyncio.to_thread(LocalProcess.left, self._folder)
        if left is not None and left.matches(self.command):
            self._process, self._started, self._heard_at = left, now, now
            return
        if left is not None:
            await asyncio.to_thread(stop, left, EXIT_TIMEOUT_S)
        check_free(self.command.host, self.command.ports)
        write_token(self.command.control_token, OWNER)
        self._process = await asyncio.to_thread(LocalProcess.start, self.command, self._folder, "server.log")
        self._started, self._heard_at = now, now
        self._error = self._silence = ""

    async def _cancel_look(self) -> None:
        """Cancel the pending observation."""
        look, self._look = self._look, None
        if look is not None:
            look.cancel()
            await asyncio.gather(look, return_exceptions=True)

    async def _crashed(self, process: LocalProcess, now: float) -> None:
        await self._cancel_look()
        await asyncio.to_thread(process.end)
        self._process, self.live = None, False
        self.crashes = 1 if now - self._started > BACKOFF_RESET_S else self.crashes + 1
        log = self._folder / "server.log"
        wait = backoff_s(self.crashes, BACKOFF_FIRST_S, BACKOFF_MOST_S)
        self._start_at = now + wait
        self._error = (
            f"server {self.name} {process.how_it_ended()} ({self.crashes} in a row) and starts again in {wait:.0f} s; "
            f"its last words, in {log}: {last_line(log)}"
        )
