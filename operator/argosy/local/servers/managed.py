"""One server under `argosy up`: its process and its agent, kept running."""

import asyncio
import time
from pathlib import Path

from argosy.fleet.facts import ServerReport
from argosy.local.process import LocalProcess, stop
from argosy_agent.cache.storage import Storage
from argosy_agent.contract import RenderedRepository
from argosy_agent.controltoken import OWNER, write_token
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.sync.agent import Agent
from argosy_agent.sync.control import Control, ControlError, Tally

from .ports import PortInUseError, check_free
from .server import EXIT_TIMEOUT_S, Command

BACKOFF_FIRST_S, BACKOFF_MOST_S = 1.0, 30.0
SETTLED_S = 60.0
"""A server that has run this long starts afresh with its backoff when it ends."""


class ManagedServer:
    """Starts, takes over, watches and restarts one server. Times are seconds of one steady clock."""

    def __init__(self, name: str, command: Command, folder: Path, storage: Storage) -> None:
        self.name, self.command = name, command
        self.url = f"http://{command.host}:{command.ports.http}"
        self.live = False
        self.crashes = 0
        self.trouble = ""
        self._folder = folder
        self._control = Control(self.url, command.control_token)
        repository = RepositoryFolder(folder, str(folder / "server.log"))
        self.agent = Agent(repository, storage, self._control, time.monotonic)
        self._process: LocalProcess | None = None
        self._started = 0.0
        self._start_at = 0.0

    @property
    def pid(self) -> int | None:
        """Its process id, while it has one."""
        return self._process.pid if self._process else None

    @property
    def adopted(self) -> bool:
        """Whether an earlier `argosy up` started the process."""
        return self._process is not None and self._process.adopted

    async def keep(self, now: float) -> None:
        """Have it run: take over what was left here, start it, or start it again when its time has come.

        Raises PortInUseError or OSError where it has never run and cannot be started.
        """
        if self._process is not None and not self._process.alive:
            await self._crashed(self._process, now)
        if self._process is not None or now < self._start_at:
            return
        try:
            await self._begin(now)
        except (PortInUseError, OSError) as error:
            if not self.crashes:
                raise
            self.trouble, self._start_at = str(error), now + BACKOFF_MOST_S

    async def observe(self) -> ServerReport:
        """What the server says of itself and its models."""
        self.live = self._process is not None and await self._control.live() and await self.agent.observe()
        if not self.live:
            self.agent.forget()
        loaded = self.agent.ledger.loaded()
        address = f"{self.command.host}:{self.command.ports.grpc}"
        return ServerReport(self.name, self.live, loaded, self.url, self.trouble, grpc_address=address)

    async def aim(self, desired: RenderedRepository) -> None:
        """Take note of what it should have."""
        await self.agent.aim(desired)

    def converge(self) -> None:
        """Bring its models nearer to that, if it answers."""
        if self.live:
            self.agent.converge()

    async def tallies(self) -> tuple[Tally, ...]:
        """What its models have done; nothing while it does not answer."""
        try:
            return await self._control.statistics() if self.live else ()
        except ControlError:
            return ()

    async def stop(self) -> None:
        """Take back what is under way, drain the server and end it."""
        await self.agent.stop()
        await self._control.close()
        if self._process is not None:
            await asyncio.to_thread(stop, self._process, EXIT_TIMEOUT_S)
            self._process = None

    def kill(self) -> None:
        """End it at once; `stop` has nothing left to wait for then."""
        if self._process is not None:
            self._process.kill()

    async def _begin(self, now: float) -> None:
        left = await asyncio.to_thread(LocalProcess.left, self._folder)
        if left is not None and left.matches(self.command):
            self._process, self._started = left, now
            return
        if left is not None:
            await asyncio.to_thread(stop, left, EXIT_TIMEOUT_S)
        check_free(self.command.host, self.command.ports)
        write_token(self.command.control_token, OWNER)
        self._process = await asyncio.to_thread(LocalProcess.start, self.command, self._folder, "server.log")
        self._started, self.trouble = now, ""

    async def _crashed(self, process: LocalProcess, now: float) -> None:
        await asyncio.to_thread(process.end)
        self._process = None
        self.crashes = 1 if now - self._started > SETTLED_S else self.crashes + 1
        wait = min(BACKOFF_FIRST_S * 2 ** (self.crashes - 1), BACKOFF_MOST_S)
        self._start_at = now + wait
        self.trouble = (
            f"server {self.name} {process.how_it_ended()} ({self.crashes} in a row) and starts again in {wait:.0f} s; "
            f"its last words, in {self._folder / 'server.log'}: {_last_words(self._folder)}"
        )


def _last_words(folder: Path) -> str:
    """The last line of a server's log."""
    lines = (folder / "server.log").read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
