"""`python -m benchmarks.scale`: what the server costs at rest, and what much of something costs its requests.

- How long `argosy serve` takes until it is ready on an empty repository, and how much memory it holds then.
- How the time and the CPU time of a request change where 1,000 models are loaded next to the one that gets them, and
  where 10,000 clients hold idle connections: a server with them and one without, in alternating rounds.
"""

import argparse
import json
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from benchmarks.comparison.comparing import Cell, compare
from benchmarks.comparison.load import MODELS, Load
from e2e.cluster.state import free_ports
from rich.console import Console
from rich.table import Table
from tests.peers.argosy import argosy
from tests.peers.server import Ports, Server, wait

PROTOCOLS = ("http", "grpc")
_START_SECONDS = 600.0


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write."""
    options = _parser().parse_args(argv)
    console = Console(width=max(110, Console().width))
    _allow_files(options.connections + 1000)
    note = lambda text: console.print(text, style="dim", markup=False, highlight=False)  # noqa: E731
    figures: dict[str, float] = at_rest(options.starts)
    loads = [Load("identity", protocol, options.concurrency, 64) for protocol in PROTOCOLS]
    with many_models(options.models) as (many, one):
        figures |= _changes("models", options.models, compare(many, one, loads, options.rounds, options.window, note))
    with two_servers() as (busy, free), idle_connections(busy, options.connections):
        cells = compare(busy, free, loads, options.rounds, options.window, note)
        figures |= _changes("idle_connections", options.connections, cells)
    console.print(_table(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def at_rest(starts: int) -> dict[str, float]:
    """Return the median seconds until `argosy serve` without models is ready, and its resident and own memory (MiB)."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        (Path(folder) / "models").mkdir()
        seconds, resident, own = zip(*[_started(Path(folder) / "models", log) for _ in range(starts)], strict=True)
    return {
        "ready_s": statistics.median(seconds),
        "resident_mib": statistics.median(resident),
        "unique_mib": statistics.median(own),
    }


def _started(repository: Path, log: Path) -> tuple[float, float, float]:
    ports = Ports(*free_ports(3))
    command = [str(Path(sys.executable).parent / "argosy"), "serve", f"--model-repository={repository}"]
    command += [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]
    command += [f"--http-port={ports.http}", f"--grpc-port={ports.grpc}", f"--metrics-port={ports.metrics}"]
    begun = time.perf_counter()
    with log.open("wb") as sink:
        server = Server("argosy", subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT), ports, log)
    try:
        wait(server, "/v2/health/ready", 60, pause_s=0.005)
        seconds = time.perf_counter() - begun
        memory = psutil.Process(server.process.pid).memory_full_info()
        return seconds, memory.rss / 2**20, memory.uss / 2**20
    finally:
        server.stop()


@contextmanager
def two_servers() -> Iterator[tuple[Server, Server]]:
    """Yield two equal servers with the one model that is requested."""
    with many_models(0) as pair:
        yield pair


@contextmanager
def many_models(count: int) -> Iterator[tuple[Server, Server]]:
    """Yield a server with `count` models in addition to the one that is requested, and a server without them.

    They run in the server's own process: as many processes need more memory than a machine for measurements has.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = []
        for name, more in (("many", count), ("one", 0)):
            repository = Path(folder) / name
            shutil.copytree(MODELS / "identity", repository / "identity")
            for index in range(more):
                _copy(repository / f"filler_{index}")
            servers.append(argosy(repository, log=Path(folder) / f"{name}.log", timeout_s=_START_SECONDS))
            stack.callback(servers[-1].stop)
        yield servers[0], servers[1]


def _copy(folder: Path) -> None:
    shutil.copytree(MODELS / "identity", folder)
    config = folder / "config.pbtxt"
    isolation = 'parameters { key: "ISOLATION" value { string_value: "thread" } }\n'
    config.write_text(config.read_text().replace('"identity"', f'"{folder.name}"') + isolation)


@contextmanager
def idle_connections(server: Server, count: int) -> Iterator[None]:
    """Open `count` connections over HTTP, each of which has sent one request and then stays idle."""
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.ports.http)))
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.recv(4096)
        yield


def _changes(of: str, count: int, cells: list[Cell]) -> dict[str, float]:
    figures: dict[str, float] = {of: count}
    for cell in cells:
        figures[f"{of}_{cell.load.protocol}_time"] = 1 / cell.ratio if cell.ratio else 0.0
        figures[f"{of}_{cell.load.protocol}_cpu"] = cell.cpu_ratio
    return figures


def _table(figures: dict[str, float]) -> Table:
    table = Table("what", "value")
    for name, value in figures.items():
        table.add_row(name, f"{value:.3g}" if value < 10 else f"{value:.0f}")
    return table


def _allow_files(count: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, most), most))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    add = parser.add_argument
    add("--models", type=int, default=1000, help="models next to the one that gets requests")
    add("--connections", type=int, default=10_000, help="idle connections")
    add("--starts", type=int, default=5, help="starts of an empty server")
    add("--concurrency", type=int, default=8, help="clients at once")
    add("--rounds", type=int, default=5)
    add("--window", type=int, default=500, help="ms; a measurement is three windows")
    add("--json", type=Path, help="where the figures go as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
