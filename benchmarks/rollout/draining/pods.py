"""A server's Pod as two processes: the commands and the arguments that the operator renders, and a Pod's end."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from argosy.api import ServingPool, parse_body
from argosy.planning.plan import ServerPlan
from argosy.render.workloads import Images, pod_template
from argosy_agent.contract import RenderedRepository
from argosy_agent.contract.documents import repository_text
from argosy_agent.controltoken import OWNER, authorization, write_token
from argosy_agent.jsonfiles import write_text

from .models import ECHO, TOKENS, repository

PATIENCE_S = 180.0
_STARTED = re.compile(r"Started (HTTPService|GRPCInferenceService|Metrics Service) at 127\.0\.0\.1:(\d+)")
_LOOPBACK = [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]


def rendered_pod() -> dict[str, Any]:
    """Return the spec of a server's Pod, in a pool whose settings are the defaults."""
    metadata = {"name": "drained", "uid": "1", "generation": 1}
    body = {"apiVersion": "argosy.dev/v1alpha1", "kind": "ServingPool", "metadata": metadata, "spec": {}}
    pool, problems = parse_body(body)
    assert isinstance(pool, ServingPool), problems
    plan, images = ServerPlan("drained-0", "node", (), ()), Images("runtime", "triton", "agent")
    template = pod_template(pool, plan, RenderedRepository(plan.name), images)
    spec: dict[str, Any] = template["spec"]
    return spec


def command(container: Mapping[str, Any], values: Mapping[str, str | None]) -> list[str]:
    """Return a container's command with other values for some of its flags; None leaves a flag out.

    Raises KeyError where the container has no such flag.
    """
    arguments = {text.partition("=")[0]: text for text in container["args"]}
    for flag, value in values.items():
        del arguments[flag]
        if value is not None:
            arguments[flag] = f"{flag}={value}"
    return [sys.executable, *container["command"][1:], *arguments.values()]


class Pod:
    """The processes of one server and its agent, with files in place of ConfigMaps."""

    def __init__(self, folder: Path) -> None:
        self.ports: dict[str, int] = {}
        self._folder = folder
        self._spec = rendered_pod()
        self._processes: list[asyncio.subprocess.Process] = []

    @property
    def grace_s(self) -> float:
        """The seconds after which what still runs of it is killed."""
        return float(self._spec["terminationGracePeriodSeconds"])

    async def start(self) -> None:
        """Start both, and wait until the models are ready."""
        (self._folder / "models" / "repository").mkdir(parents=True)
        write_token(self._folder / "token", OWNER)
        self.want(repository(self._folder / "sources", "drained-0"))
        server, agent = self._spec["containers"]
        await self._start("server", [*command(server, self._server_flags), *_LOOPBACK])
        await self._until("it listens", self._listens)
        await self._start("agent", [*command(agent, self._agent_flags), *self._files])
        await self._until("its models are ready", self._serves)

    @property
    def _server_flags(self) -> dict[str, str | None]:
        ports = {f"--{name}-port": "0" for name in ("http", "grpc", "metrics")}
        repository_folder = str(self._folder / "models" / "repository")
        return {"--model-repository": repository_folder, "--control-token-file": str(self._folder / "token"), **ports}

    @property
    def _agent_flags(self) -> dict[str, str | None]:
        return {
            "--server": f"http://127.0.0.1:{self.ports['http']}",
            "--folder": str(self._folder / "models"),
            "--cache": str(self._folder / "models" / "cache"),
            "--control-token-file": str(self._folder / "token"),
            "--pod": "a-uid",
            "--configmap": None,
            "--state": None,
        }

    @property
    def _files(self) -> list[str]:
        desired, state = self._folder / "desired.json", self._folder / "state.json"
        return [f"--desired={desired}", f"--state-file={state}", f"--allowed-folder={self._folder}"]

    async def _start(self, name: str, line: list[str]) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(*line, stdout=log, stderr=log, env=dict(os.environ))
        self._processes.append(process)

    def want(self, desired: RenderedRepository) -> None:
        """Write which models the server is to have."""
        write_text(self._folder / "desired.json", repository_text(desired))

    async def drop_models(self) -> None:
        """Take all models from the server, as a scale-down does before its Pod goes. Return once they are unloaded."""
        self.want(RenderedRepository("drained-0"))
        await self._until("its models are unloaded", self._is_empty)

    async def terminate(self) -> list[str]:
        """Send SIGTERM to all containers at once, as a kubelet does, and wait. Return those that did not end well: with
        their exit codes, which are negative for what is killed after the grace period.
        """
        assert "lifecycle" not in self._spec["containers"][0], "a preStop hook runs before the signal"
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        ending = [asyncio.ensure_future(process.wait()) for process in self._processes]
        await asyncio.wait(ending, timeout=self.grace_s)
        self.kill()
        codes = zip(("server", "agent"), await asyncio.gather(*ending), strict=True)
        return [f"{name} ended with {code}" for name, code in codes if code]

    def kill(self) -> None:
        """Kill what still runs."""
        for process in self._processes:
            if process.returncode is None:
                process.kill()

    async def killed(self) -> None:
        """Kill what still runs, and wait for its end."""
        self.kill()
        await asyncio.gather(*(process.wait() for process in self._processes))

    async def _until(self, what: str, holds: Any) -> None:
        end = time.monotonic() + PATIENCE_S
        while not await holds():
            if time.monotonic() > end or any(process.returncode is not None for process in self._processes):
                logs = "\n".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("*.log")))
                raise TimeoutError(f"a server was waited for until {what}\n{logs}")
            await asyncio.sleep(0.1)

    async def _listens(self) -> bool:
        matches = _STARTED.findall((self._folder / "server.log").read_text(errors="replace"))
        names = {"HTTPService": "http", "GRPCInferenceService": "grpc", "Metrics Service": "metrics"}
        self.ports = {names[name]: int(port) for name, port in matches}
        return len(self.ports) == len(names)

    async def _serves(self) -> bool:
        return await self._ready() == {ECHO, TOKENS}

    async def _is_empty(self) -> bool:
        return not await self._ready(unloading=True)

    async def _ready(self, unloading: bool = False) -> set[str]:
        """Return the models that are ready, or `unloading`: not yet unloaded."""
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            url = f"http://127.0.0.1:{self.ports['http']}/v2/repository/index"
            answer = await client.post(url, json={}, headers=authorization(self._folder / "token"))
        states = {"READY", "UNLOADING"} if unloading else {"READY"}
        return {one["name"] for one in answer.json() if one.get("state") in states}
