"""One server under `argosy up`: its process and its agent, kept running."""

import asyncio
import time
from pathlib import Path

from argosy.local.process import LocalProcess, stop
from argosy.planning.facts import ServerReport
from argosy_agent.cache.storage import Storage
from argosy_agent.contract import RenderedRepository
from argosy_agent.controltoken import OWNER, write_token
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.sync.agent import Agent
from argosy_agent.sync.control import Control, ControlError, Tally
from argosy_common.backoff import backoff_s

from .ports import PortInUseError, check_free
from .server import EXIT_TIMEOUT_S, Command

BACKOFF_FIRST_S, BACKOFF_MOST_S = 1.0, 30.0
PATIENCE_S = 1.0
"""How long a round waits for what a server says of itself: one that hangs holds up no other."""
EXPIRY_S = 5.0
"""For how long its last word stands when it does not answer."""
SETTLED_S = 60.0
"""A server that has run this long starts afresh with its backoff when it ends."""


class ManagedServer:
    """Starts, takes over, watches and restarts one server. Times are seconds of one steady clock."""

    def __init__(self, name: str, command: Command, folder: Path, storage: Storage) -> None:
        self.name, self.command = name, command
        self.url = f"http://{command.host}:{command.ports.http}"
        self.live = False
        self.crashes = 0
        self._trouble = self._silence = ""
        self._folder = folder
        self._control = Control(self.url, command.control_token)
        repository = RepositoryFolder(folder, str(folder / "server.log"))
        self.agent = Agent(repository, storage, self._control, time.monotonic)
        self._process: LocalProcess | None = None
        self._started = 0.0
        self._start_at = 0.0
        self._look: asyncio.Task[bool] | None = None
        self._heard_at = 0.0

    @property
    def trouble(self) -> str:
        """What is wrong with it; empty where nothing is known to be."""
        return self._trouble or self._silence

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
            self._trouble, self._start_at = str(error), now + BACKOFF_MOST_S

    async def observe(self, now: float) -> ServerReport:
        """Return what the server says of itself and its models. One that is slow to answer is as it was, for
        a while.
        """
        if self._look is None:
            self._look = asyncio.create_task(self._answers())
        await asyncio.wait({self._look}, timeout=PATIENCE_S)
        if self._look.done():
            self.live, self._look = self._look.result(), None
            if self.live:
                self._heard_at, self._silence = now, ""
        elif now - self._heard_at >= EXPIRY_S:
            self.live = False
            self._silence = (
                f"server {self.name} has not answered for {EXPIRY_S:g} s; it is asked again and again. If it goes on "
                f"like that, end its process (kill -9 {self.pid}): it is started again"
            )
        if not self.live:
            self.agent.forget()
        loaded = self.agent.ledger.loaded()
        address = f"{self.command.host}:{self.command.ports.grpc}"
        return ServerReport(self.name, self.live, loaded, self.url, self.trouble, grpc_address=address)

    async def _answers(self) -> bool:
        return self._process is not None and await self._control.live() and await self.agent.observe()

    async def aim(self, desired: RenderedRepository) -> None:
        """Take note of what it should have."""
        await self.agent.aim(desired)

    def converge(self) -> None:
        """Bring its models nearer to that, if it answers."""
        if self.live:
            self.agent.converge()

    async def tallies(self) -> tuple[Tally, ...]:
        """Return what its models have done; nothing while it does not answer."""
        if not self.live or self._look is not None:
            return ()
        try:
            return await asyncio.wait_for(self._control.statistics(), PATIENCE_S)
        except (ControlError, TimeoutError):
            return ()

    async def stop(self) -> None:
        """Take back what is under way, drain the server and end it."""
        await self._look_away()
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
            self._process, self._started, self._heard_at = left, now, now
            return
        if left is not None:
            await asyncio.to_thread(stop, left, EXIT_TIMEOUT_S)
        check_free(self.command.host, self.command.ports)
        write_token(self.command.control_token, OWNER)
        self._process = await asyncio.to_thread(LocalProcess.start, self.command, self._folder, "server.log")
        self._started, self._heard_at = now, now
        self._trouble = self._silence = ""

    async def _look_away(self) -> None:
        """Wait no more for what the process says of itself."""
        look, self._look = self._look, None
        if look is not None:
            look.cancel()
            await asyncio.gather(look, return_exceptions=True)

    async def _crashed(self, process: LocalProcess, now: float) -> None:
        await self._look_away()
        await asyncio.to_thread(process.end)
        self._process, self.live = None, False
        self.crashes = 1 if now - self._started > SETTLED_S else self.crashes + 1
        wait = backoff_s(self.crashes, BACKOFF_FIRST_S, BACKOFF_MOST_S)
        self._start_at = now + wait
        self._trouble = (
            f"server {self.name} {process.how_it_ended()} ({self.crashes} in a row) and starts again in {wait:.0f} s; "
            f"its last words, in {self._folder / 'server.log'}: {_last_words(self._folder)}"
        )


def _last_words(folder: Path) -> str:
    """The last line of a server's log."""
    lines = (folder / "server.log").read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
