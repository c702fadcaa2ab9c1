"""A fake server, for all tests of the agent."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from google.protobuf import text_format
from tests.peers.fixtures import argosy_server, triton_server
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_agent.contract import LoadedModel, LoadState
from argosy_agent.sync.control import RefusedError, Tally, UnreachableError

__all__ = ["argosy_server", "triton_server"]


@dataclass
class FakeControl:
    """A server's control protocol over its repository folder. A version with a file `broken` does not load.

    `queries` counts the calls that change nothing.
    """

    repository: Path
    loaded: dict[str, dict[int, str]] = field(default_factory=dict)
    traffic: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    queries: Counter[str] = field(default_factory=Counter)
    gone: bool = False
    draining: set[tuple[str, int]] = field(default_factory=set)
    tallies: list[Tally] = field(default_factory=list)
    troubles: list[Exception] = field(default_factory=list)

    async def index(self) -> tuple[LoadedModel, ...]:
        """Return every version that is loaded, and those that still answer."""
        self.queries["index"] += 1
        if self.gone:
            raise UnreachableError("the server did not answer")
        ready = [(name, version) for name, versions in self.loaded.items() for version in versions]
        return (
            *(LoadedModel(name, version, LoadState.READY) for name, version in ready),
            *(LoadedModel(name, version, LoadState.UNLOADING) for name, version in self.draining),
        )

    async def is_ready(self, name: str, version: int) -> bool:
        """Return whether it is loaded."""
        self.queries["is_ready"] += 1
        if self.gone:
            raise UnreachableError("the server did not answer")
        return version in self.loaded.get(name, {})

    async def load(self, name: str) -> None:
        """Read the folder as a server would; what was loaded stays where anything is wrong."""
        self.calls.append(f"load {name}")
        if self.gone:
            raise UnreachableError("the server did not answer")
        folder = self.repository / name
        config = text_format.Parse((folder / "config.pbtxt").read_text(), ModelConfig())
        result: dict[int, str] = {}
        for version in config.version_policy.specific.versions:
            if not (folder / str(version)).is_dir():
                continue  # as Triton and our server do
            if (folder / str(version) / "broken").exists():
                raise RefusedError(f"failed to load '{name}': version {version} is broken")
            result[version] = "".join(
                path.read_text() for path in sorted((folder / str(version)).iterdir()) if path.is_file()
            )
        if not result:
            raise RefusedError(f"at least one version must be available under the version policy of model '{name}'")
        self.loaded[name] = result

    async def divide(self, name: str) -> None:
        """Read how requests are divided, while other calls run."""
        self.calls.append(f"divide {name}")
        if self.gone:
            raise UnreachableError("the server did not answer")
        config = text_format.Parse((self.repository / name / "config.pbtxt").read_text(), ModelConfig())
        self.traffic[name] = config.parameters["version_traffic"].string_value

    async def unload(self, name: str) -> None:
        """Drop a model."""
        self.calls.append(f"unload {name}")
        if self.gone:
            raise UnreachableError("the server did not answer")
        if self.loaded.pop(name, None) is None:
            raise RefusedError(f"failed to unload '{name}': unknown")

    async def statistics(self, name: str = "") -> tuple[Tally, ...]:
        """Return the tallies of a model that the test set, or raise the error that it set."""
        self.calls.append(f"statistics {name}")
        if self.troubles:
            raise self.troubles.pop(0)
        return tuple(tally for tally in self.tallies if tally.model == name)


@pytest.fixture
def fake(tmp_path: Path) -> FakeControl:
    """Return a fake server over `server/repository`."""
    return FakeControl(tmp_path / "server" / "repository")
