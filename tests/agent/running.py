"""The agent as it runs in a Pod: real processes and a real server, with files between them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
from tests.acceptance.running import PYTHON, environment, wait_for
from tests.peers.server import Server

from argosy_agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.documents import AgentState, fingerprint, parse_state, repository_text
from argosy_agent.jsonfiles import write_text

CONFIG = """name: "NAME"
backend: "python"
max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }
version_policy { specific { versions: [ VERSIONS ] } }
"""


def folder_of(root: Path, name: str, factor: float, body: str = "pass") -> VersionSource:
    """Write a Python model that multiplies by `factor`, in a folder of its own."""
    folder = root / "sources" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(PYTHON.replace("FACTOR", repr(factor)).replace("BODY", body))
    return VersionSource(folder.as_uri())


def model(name: str, versions: dict[int, VersionSource]) -> RenderedModel:
    """Return a Python model's folder."""
    listed = ", ".join(map(str, versions))
    return RenderedModel(name, CONFIG.replace("NAME", name).replace("VERSIONS", listed), versions)


@dataclass
class Pod:
    """A server and its agent, which goes by files unless `sources` has other flags."""

    root: Path
    server: Server | None = None
    flags: Sequence[str] = ()
    sources: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    agent: subprocess.Popen[bytes] = field(init=False)

    @property
    def folder(self) -> Path:
        """The folder that the containers share."""
        return self.root / "models"

    @property
    def url(self) -> str:
        """The server's HTTP endpoint."""
        return f"http://{self.server.http}" if self.server else "http://127.0.0.1:1"

    @property
    def log(self) -> str:
        """All that the agent has logged."""
        return (self.root / "agent.log").read_text()

    def start_agent(self, url: str = "") -> None:
        """Start the agent."""
        with (self.root / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                [
                    *(sys.executable, "-m", "argosy_agent"),
                    f"--server={url or self.url}",
                    f"--folder={self.folder}",
                    *(self.sources or self._files),
                    "--pod=a-uid",
                    "--allowed-folder=/",
                    *self.flags,
                ],
                env={**environment(), **self.variables},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def _files(self) -> tuple[str, ...]:
        return f"--desired={self.root / 'repository.json'}", f"--state-file={self.root / 'state.json'}"

    def end_agent(self) -> int:
        """Send SIGTERM and return the agent's exit code."""
        self.agent.send_signal(signal.SIGTERM)
        return self.agent.wait(60)

    def worker(self) -> psutil.Process:
        """Return the agent's child, which does the work."""
        children: list[psutil.Process] = wait_for(psutil.Process(self.agent.pid).children, lambda: self.log)
        return children[0]

    def kill_worker(self) -> None:
        """Kill the child and wait for the next one."""
        old = self.worker()
        old.kill()
        wait_for(lambda: self.worker().pid != old.pid, lambda: self.log)

    def want(self, *models: RenderedModel) -> str:
        """Ask for these models; the text's fingerprint."""
        text = repository_text(RenderedRepository("pool-0", models))
        write_text(self.root / "repository.json", text)
        return fingerprint(text)

    def state(self) -> AgentState | None:
        """Return the state that the agent last wrote."""
        try:
            return parse_state((self.root / "state.json").read_text())
        except FileNotFoundError:
            return None

    def until(self, what: Callable[[AgentState], object]) -> AgentState:
        """Wait for a state of which `what` holds."""

        def reached() -> AgentState | None:
            state = self.state()
            return state if state is not None and what(state) else None

        result: AgentState = wait_for(reached, lambda: f"{self.state()}\n{self.log}")
        return result

    def until_ready(self, name: str, version: int) -> AgentState:
        """Wait until a version is reported to be ready."""
        return self.until(lambda state: report_of(state, name, version).state is LoadState.READY)

    def infer(self, name: str, value: float, client: httpx.Client | None = None) -> float:
        """Return a model's answer to one number."""
        body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [value]}]}
        response = (client or httpx).post(f"{self.url}/v2/models/{name}/infer", json=body, timeout=20)
        assert response.status_code == 200, response.text
        return float(response.json()["outputs"][0]["data"][0])

    def loads(self, name: str) -> int:
        """Return how often the server has logged that it loaded a model."""
        assert self.server is not None
        return self.server.log.read_text(errors="replace").count(f"successfully loaded '{name}'")

    def end(self) -> None:
        """Leave nothing running."""
        if hasattr(self, "agent") and self.agent.poll() is None:
            children = psutil.Process(self.agent.pid).children(recursive=True)
            self.agent.kill()
            self.agent.wait()
            for child in children:
                if child.is_running():
                    child.kill()
        if self.server is not None:
            self.server.stop()


def report_of(state: AgentState, name: str, version: int) -> LoadedModel:
    """Return the report of a version in a state."""
    matches = [item for item in state.models if (item.model, item.version) == (name, version)]
    return matches[0] if matches else LoadedModel(name, version, LoadState.UNAVAILABLE)


def is_root() -> bool:
    """Return whether file systems can be mounted."""
    return os.geteuid() == 0
