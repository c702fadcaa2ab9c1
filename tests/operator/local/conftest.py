"""What the local tests share: manifests, and `argosy up` as a process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from e2e.starting import give_up
from tests.acceptance.running import PIPE, REAL, Starter, Workspace, free_ports, model, servers_of
from tests.peers.cache import PeerUnavailableError
from tests.peers.triton import install

from argosy.render.workloads.pods.control import restricted


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return an empty workspace."""
    result = Workspace(tmp_path)
    result.manifests.mkdir()
    return result


@pytest.fixture
def ports() -> tuple[int, int, int]:
    """Return three free ports."""
    return free_ports()


FAKE = """
import functools, sys, typer
import argosy.cli.local.up as cli
cli.LocalFleet = functools.partial(cli.LocalFleet, program=(sys.executable, SCRIPT))
typer.run(cli.up)
""".replace("SCRIPT", repr(str(Path(__file__).parent / "fake_server.py")))


@pytest.fixture
def up(request: pytest.FixtureRequest) -> Iterator[Starter]:
    """Yield a function that starts `argosy up` on the workspace, with the fake server under it."""
    yield from _starter(request, FAKE)


START = f"""
for given in "$@"; do
  shift
  case $given in --control-token-file=*) file=${{given#*=}} ;; *) set -- "$@" "$given" ;; esac
done
{restricted('"$0"', '"$file"')}
"""
TRITON = """
import functools, typer
import argosy.cli.local.up as cli
from tests.peers.triton import environment, install
import os
folder = install()
home = folder / "pytriton" / "tritonserver"
os.environ.update(environment(folder))
program = ("bash", "-c", START, str(home / "bin" / "tritonserver"), f"--backend-directory={home / 'backends'}")
cli.LocalFleet = functools.partial(cli.LocalFleet, program=program)
typer.run(cli.up)
""".replace("START", repr(START))


@pytest.fixture
def triton_up(request: pytest.FixtureRequest) -> Iterator[Starter]:
    """Yield the same with NVIDIA's own server, of which the agent knows only the public protocol."""
    try:
        install()
    except PeerUnavailableError as reason:
        give_up(reason)
    yield from _starter(request, TRITON)


@pytest.fixture(params=[FAKE, REAL], ids=["fake", "runtime"])
def any_up(request: pytest.FixtureRequest) -> Iterator[Starter]:
    """Yield the same twice: with the fake server, and with the bundled runtime."""
    yield from _starter(request, request.param)


@pytest.fixture
def servers(workspace: Workspace) -> Callable[[], list[psutil.Process]]:
    """Return a function that returns the processes which serve from the workspace's state folder."""
    return lambda: servers_of(workspace)


@pytest.fixture
def documents() -> Callable[[str, int, str], str]:
    """Return a function that makes a model's manifest from its name, version and source."""
    return model


@pytest.fixture
def pipe() -> str:
    """Return an ensemble of the models `one` and `two`."""
    return PIPE


def _starter(request: pytest.FixtureRequest, code: str) -> Iterator[Starter]:
    starter = Starter(request.getfixturevalue("workspace"), request.getfixturevalue("ports"), code)
    yield starter
    starter.end()
