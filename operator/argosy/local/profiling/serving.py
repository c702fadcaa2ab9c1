"""One server of this machine with one model, until it has been measured."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from argosy.api.problems import Problem
from argosy.bench.load.inference import ModelClient
from argosy.local.process import LocalProcess
from argosy.local.profiling.manifest import Profiled
from argosy.local.profiling.memory import MemoryMeter
from argosy.local.rates import Rate
from argosy.local.resources import any_stalled, restored
from argosy.local.servers.fleet import Listening, LocalFleet
from argosy.local.servers.ports import Ports, next_free
from argosy.local.state import StateFolder
from argosy.local.supervisor import STALLED_ROUNDS, Goal, Supervisor
from argosy.local.views.rows import BuildRow, Row, ServerRow
from argosy.planning.facts import Node

HOST = "127.0.0.1"
_PORT, _PORTS = 18000, 6000
"""Where the server's ports are searched: away from those of `argosy up`, and below those of outgoing connections."""
_REQUEST_S = 300.0


class ProfileError(Exception):
    """The model cannot be served; the message says why."""


class StoppedError(Exception):
    """A signal has stopped the server."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model that serves, and its memory."""

    client: ModelClient
    memory: MemoryMeter


class _Watch:
    """The view of `argosy up` as the profile needs it: the newest rows, and a signal for each round."""

    def __init__(self) -> None:
        self.rows: Sequence[Row] = ()
        self.servers: Sequence[ServerRow] = ()
        self.faults: Sequence[Problem] = ()
        self.changed = asyncio.Event()

    def problems(self, problems: Sequence[Problem]) -> None:
        self.faults = problems

    def note(self, text: str) -> None:
        """Ignore the notes: they are about what `argosy up` is left to do."""

    def update(
        self,
        rows: Sequence[Row],
        servers: Sequence[ServerRow],
        rates: Mapping[str, Rate],
        builds: Sequence[BuildRow] = (),
    ) -> None:
        self.rows, self.servers = rows, servers
        self.changed.set()

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    async def round(self) -> None:
        """Wait for the end of the next round."""
        self.changed.clear()
        await self.changed.wait()


def first_ports(process: int) -> Ports:
    """Return the ports above which those of a process are searched. Others that begin at the same time, and would take
    the same free ones, have others.
    """
    http = _PORT + 3 * process % _PORTS
    return Ports(http, http + 1, http + 2)


@asynccontextmanager
async def serving(
    profiled: Profiled, instances: int, max_batch: int, node: Node, state: StateFolder
) -> AsyncIterator[Served]:
    """Serve the model, and stop the server at the end, whatever happens. Raises ProfileError and StoppedError."""
    manifest, watch = state.root / "manifests" / "model.yaml", _Watch()
    manifest.parent.mkdir(parents=True, exist_ok=True)
    _write(manifest, profiled.pool_body())
    fleet = LocalFleet(state, node, Listening(HOST, next_free(HOST, first_ports(os.getpid()), ())))
    supervisor = asyncio.create_task(Supervisor(manifest, state, node, fleet, watch).run(Goal()))
    try:
        server = await _alive(supervisor, _server(watch))
        _end_on_signals()
        process = LocalProcess.left(state.server(server.name))
        gpus = [gpu.uuid for gpu in node.gpus if not gpu.is_cpu]
        meter = MemoryMeter(process.pid if process is not None else None, gpus)
        _write(manifest, profiled.pool_body(), profiled.body(instances, max_batch))
        await _alive(supervisor, _ready(watch, state, profiled.model.identity))
        timeout = aiohttp.ClientTimeout(total=_REQUEST_S)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
            client = ModelClient(server.url, profiled.model.served_name, session)
            yield Served(client, meter)
    finally:
        supervisor.cancel()
        await asyncio.gather(supervisor, return_exceptions=True)


async def _alive(supervisor: "asyncio.Task[int]", waiting: Any) -> Any:
    """Return what is waited for. Raises StoppedError or ProfileError if the supervisor ends before."""
    task = asyncio.ensure_future(waiting)
    await asyncio.wait({task, supervisor}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    if error := supervisor.exception():
        raise ProfileError(str(error)) from error
    raise StoppedError


async def _server(watch: _Watch) -> ServerRow:
    while not any(server.live for server in watch.servers):
        await watch.round()
    return watch.servers[0]


async def _ready(watch: _Watch, state: StateFolder, identity: str) -> None:
    """Wait until the model is Ready. Raises ProfileError once it cannot become so."""
    stalled = 0
    while True:
        await watch.round()
        if watch.faults:
            raise ProfileError("; ".join(map(str, watch.faults)))
        status = next((one.status for one in restored(state.read_status()) if one.identity == identity), None)
        if status is not None and status.ready:
            return
        stalled = stalled + 1 if status is not None and any_stalled([status]) else 0
        if stalled >= STALLED_ROUNDS:
            raise ProfileError(next(row.message for row in watch.rows if row.identity == identity))


def _write(path: Path, *bodies: Mapping[str, Any]) -> None:
    text = "\n---\n".join(json.dumps(body) for body in bodies)
    replacement = path.with_suffix(".part")
    replacement.write_text(text)
    replacement.replace(path)


def _end_on_signals() -> None:
    """Let a signal cancel this task, which then stops its server. Until now they were the supervisor's."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    ended = False

    def end() -> None:
        nonlocal ended
        if not ended and task is not None:
            ended = task.cancel()  # a second signal would interrupt the end

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
