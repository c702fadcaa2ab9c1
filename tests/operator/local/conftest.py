"""What the local tests share: a server that is not one, manifests, and `argosy up` as a process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from google.protobuf import text_format
from tests.acceptance.running import PIPE, REAL, Starter, Workspace, free_ports, model, servers_of
from tests.peers.cache import PeerUnavailableError
from tests.peers.fixtures import give_up
from tests.peers.triton import install
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.fleet.facts import LoadedModel, LoadState
from argosy.local.control import RefusedError, UnreachableError


@dataclass
class FakeControl:
    """A server's control protocol over its repository folder. A version with a file `broken` does not load."""

    repository: Path
    loaded: dict[str, dict[int, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    gone: bool = False

    async def index(self) -> tuple[LoadedModel, ...]:
        """Every version that is loaded."""
        if self.gone:
            raise UnreachableError("the server did not answer")
        return tuple(
            LoadedModel(name, version, LoadState.READY)
            for name, versions in self.loaded.items()
            for version in versions
        )

    async def load(self, name: str) -> None:
        """Read the folder as a server would; what was loaded stays where anything is wrong."""
        self.calls.append(f"load {name}")
        if self.gone:
            raise UnreachableError("the server did not answer")
        folder = self.repository / name
        config = text_format.Parse((folder / "config.pbtxt").read_text(), ModelConfig())
        found: dict[int, str] = {}
        for version in config.version_policy.specific.versions:
            if not (folder / str(version)).is_dir():
                raise RefusedError(f"version {version} has no folder")
            if (folder / str(version) / "broken").exists():
                raise RefusedError(f"failed to load '{name}': version {version} is broken")
            found[version] = "".join(
                path.read_text() for path in sorted((folder / str(version)).iterdir()) if path.is_file()
            )
        self.loaded[name] = found

    async def unload(self, name: str) -> None:
        """Drop a model."""
        self.calls.append(f"unload {name}")
        if self.gone:
            raise UnreachableError("the server did not answer")
        if self.loaded.pop(name, None) is None:
            raise RefusedError(f"failed to unload '{name}': unknown")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with nothing in it."""
    found = Workspace(tmp_path)
    found.manifests.mkdir()
    return found


@pytest.fixture
def ports() -> tuple[int, int, int]:
    """Three ports that are free."""
    return free_ports()


FAKE = """
import functools, sys, typer
import argosy.cli.up as cli
cli.LocalFleet = functools.partial(cli.LocalFleet, program=(sys.executable, SCRIPT))
typer.run(cli.up)
""".replace("SCRIPT", repr(str(Path(__file__).parent / "fake_server.py")))


@pytest.fixture
def up(request: pytest.FixtureRequest) -> Iterator[Starter]:
    """Starts `argosy up` on the workspace, with the fake server under it."""
    yield from _starter(request, FAKE)


TRITON = """
import functools, typer
import argosy.cli.up as cli
from tests.peers.triton import environment, install
import os
folder = install()
home = folder / "pytriton" / "tritonserver"
os.environ.update(environment(folder))
program = (str(home / "bin" / "tritonserver"), f"--backend-directory={home / 'backends'}")
cli.LocalFleet = functools.partial(cli.LocalFleet, program=program)
typer.run(cli.up)
"""


@pytest.fixture
def triton_up(request: pytest.FixtureRequest) -> Iterator[Starter]:
    """The same with NVIDIA's own server, of which the agent knows nothing but the public protocol."""
    try:
        install()
    except PeerUnavailableError as reason:
        give_up(reason)
    yield from _starter(request, TRITON)


@pytest.fixture(params=[FAKE, REAL], ids=["fake", "runtime"])
def any_up(request: pytest.FixtureRequest) -> Iterator[Starter]:
    """The same twice: with the fake server, and with the bundled runtime."""
    yield from _starter(request, request.param)


@pytest.fixture
def servers(workspace: Workspace) -> Callable[[], list[psutil.Process]]:
    """The processes that serve from the workspace's state folder."""
    return lambda: servers_of(workspace)


@pytest.fixture
def documents() -> Callable[[str, int, str], str]:
    """A model's manifest from its name, version and source."""
    return model


@pytest.fixture
def pipe() -> str:
    """An ensemble of the models `one` and `two`."""
    return PIPE


@pytest.fixture
def fake(tmp_path: Path) -> FakeControl:
    """A server that is not one, over `server/repository`."""
    return FakeControl(tmp_path / "server" / "repository")


def _starter(request: pytest.FixtureRequest, code: str) -> Iterator[Starter]:
    starter = Starter(request.getfixturevalue("workspace"), request.getfixturevalue("ports"), code)
    yield starter
    starter.end()
