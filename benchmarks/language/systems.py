"""What is compared: the engine called in its own process, and servers of OpenAI's API with the same engine."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import psutil
from benchmarks.language import environment
from e2e.cluster.state import free_ports

from argosy.bench.answers import Answer
from argosy.bench.load.client import Client, EndpointError, Target, connected
from argosy.bench.load.driver import drive
from argosy.bench.plan import Level
from argosy.bench.work import Work, load_body

_START_S = 300.0
_END_S = 30.0
_LIMIT_S = 120.0
_ENGINE_PROCESSES = "VLLM::"
"""The beginning of the names that vLLM gives to the processes of its engine."""


@dataclass(frozen=True)
class Load:
    """A trial's requests."""

    prompts: Sequence[str]
    output_tokens: int
    level: Level
    seed: str


class System(Protocol):
    """Something that answers a load."""

    name: str

    async def answers(self, load: Load) -> list[Answer]:
        """Return the answers in the order of sending."""

    def front_end_cpu(self) -> float:
        """Return the CPU seconds so far of all processes but the engine's."""


class InProcess:
    """The engine, called in the process that sends the load."""

    name = "engine"

    def __init__(self, process: asyncio.subprocess.Process, results: asyncio.StreamReader) -> None:
        self._process = process
        self._results = results

    async def answers(self, load: Load) -> list[Answer]:
        document = {
            "prompts": list(load.prompts), "output_tokens": load.output_tokens, "seed": load.seed,
            "concurrency": load.level.concurrency, "rate": load.level.rate,
        }  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document).encode() + b"\n")
        reply = await self._results.readline()
        if not reply:
            raise RuntimeError("the engine's process has ended")
        return [Answer(**answer) for answer in json.loads(reply)["answers"]]

    def front_end_cpu(self) -> float:
        return front_end_cpu(self._process.pid)


class OverHttp:
    """A server of OpenAI's API."""

    def __init__(self, name: str, pid: int, client: Client) -> None:
        self.name = name
        self._pid = pid
        self._client = client

    def of(self, client: Client) -> "OverHttp":
        """Return another model of the same server, by a client of its own."""
        return OverHttp(client.target.name, self._pid, client)

    async def answers(self, load: Load) -> list[Answer]:
        work = Work(0, load.output_tokens)
        bodies = [load_body(work, self._client.target.model, prompt) for prompt in load.prompts]
        return await drive(partial(self._client.send, work.api), bodies, load.level, load.seed, perf_counter)

    def front_end_cpu(self) -> float:
        return front_end_cpu(self._pid)


def front_end_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants, without those of the engine itself."""
    root = psutil.Process(pid)
    seconds = 0.0
    for process in [root, *root.children(recursive=True)]:
        if not any(part.startswith(_ENGINE_PROCESSES) for part in process.cmdline()[:1]):
            times = process.cpu_times()
            seconds += times.user + times.system
    return seconds


@asynccontextmanager
async def engine_alone(arguments: dict[str, Any], folder: Path) -> AsyncIterator[System]:
    """Yield the engine, called in its own process."""
    readable, writable = os.pipe()
    with environment.variables() as variables, (folder / "engine.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            environment.python(), "-m", "benchmarks.language.engine", json.dumps(arguments), str(writable),
            stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, pass_fds=(writable,), env=variables, cwd=folder,
        )  # fmt: skip
        os.close(writable)
        results = asyncio.StreamReader(limit=1 << 30)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(results), os.fdopen(readable, "rb")
        )
        try:
            async with asyncio.timeout(_START_S):
                if not await results.readline():
                    raise RuntimeError(f"the engine did not start:\n{_tail(folder / 'engine.log')}")
            yield InProcess(process, results)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await _end(process, ask=False)
            transport.close()


@asynccontextmanager
async def server(
    name: str, models: Sequence[str], command: Sequence[str | Path], folder: Path, variables: dict[str, str], port: int
) -> AsyncIterator[OverHttp]:
    """Yield the first model of a server, once it has all of them on `port`."""
    with (folder / f"{name}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, env=variables, cwd=folder)
        try:
            target = Target(name, f"http://127.0.0.1:{port}", models[0])
            async with connected(target, _LIMIT_S) as client:
                await _ready(client, models, process, folder / f"{name}.log")
                yield OverHttp(name, process.pid, client)
        finally:
            await _end(process)


@asynccontextmanager
async def vllm_serve(arguments: dict[str, Any], folder: Path) -> AsyncIterator[System]:
    """Yield vLLM's own server with an engine of these arguments."""
    (port,) = free_ports(1)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items() if value is not True]
    flags += [f"--{name.replace('_', '-')}" for name, value in arguments.items() if value is True]
    own = ["--host=127.0.0.1", f"--port={port}", "--served-model-name=tiny", "--disable-uvicorn-access-log"]
    with environment.variables() as variables:
        command = [environment.python().with_name("vllm"), "serve", *flags, *own]
        async with server("vllm serve", ["tiny"], command, folder, variables, port) as system:
            yield system


async def _ready(client: Client, models: Sequence[str], process: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(_START_S):
        while True:
            if process.returncode is not None:
                raise RuntimeError(f"{client.target.name} ended with {process.returncode}:\n{_tail(log)}")
            try:
                if set(models) <= set(await client.models()):
                    return
            except EndpointError:
                pass
            await asyncio.sleep(0.25)


async def _end(process: asyncio.subprocess.Process, ask: bool = True) -> None:
    """End the process that was started here, by its own id, and its engine's, if they are still there."""
    if process.returncode is not None:
        return
    engine = psutil.Process(process.pid).children(recursive=True)
    if ask:
        process.terminate()
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
    for child in engine:
        if child.is_running():
            child.kill()


def _tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
