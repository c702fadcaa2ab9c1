"""`python -m benchmarks.serving`: NVIDIA's load generator against Argosy and the real Triton, in one run.

Both servers serve the same model repository; each is measured alone, one after the other, and every
measurement alternates between them so that a slow minute of the machine falls on both. It prints a table and
writes JSON: throughput and latency of each, and Argosy's throughput as a share of Triton's.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.peers.argosy import argosy
from tests.peers.cache import PeerUnavailableError
from tests.peers.perf_analyzer import LoadError, Row, perf_analyzer
from tests.peers.server import Server, ServerStartError
from tests.peers.triton import triton

MODELS = Path(__file__).resolve().parents[1] / "tests" / "models"
SERVED = ("identity", "chain")
PROTOCOLS = ("http", "grpc")
CONCURRENCIES = (1, 8, 32)
WINDOWS = ("-r", "3", "-s", "1000")
"""Three windows, averaged however much they differ: a shared machine rarely gives three alike."""


@dataclass(frozen=True)
class Load:
    """What is asked: `elements` FP32 numbers of one model, over one protocol, by so many clients at once."""

    model: str
    protocol: str
    concurrency: int
    elements: int


@dataclass(frozen=True)
class Result:
    """One load on both servers: throughput in inferences/s, latency in microseconds; 0 where it failed."""

    load: Load
    argosy: Row | None
    triton: Row | None

    @property
    def ratio(self) -> float:
        """Argosy's throughput ÷ Triton's; 0 where either failed."""
        if self.argosy is None or self.triton is None:
            return 0.0
        return self.argosy.throughput / self.triton.throughput


def measure(server: Server, load: Load, window_ms: int) -> Row:
    """The load's throughput and latency on one server; LoadError when it fails."""
    address = server.http if load.protocol == "http" else server.grpc
    arguments = ["-m", load.model, "-u", address, "-i", load.protocol, "-p", str(window_ms), *WINDOWS]
    shape = f"INPUT0:{load.elements}"
    return perf_analyzer([*arguments, "--concurrency-range", str(load.concurrency), "--shape", shape])[0]


def compare(sides: dict[str, Server], loads: list[Load], window_ms: int, note: Callable[[str], None]) -> list[Result]:
    """Every load on both sides, one side after the other within a load."""
    results = []
    for load in loads:
        rows = {side: _attempt(server, load, window_ms, note) for side, server in sides.items()}
        results.append(Result(load, rows["argosy"], rows["triton"]))
        note(f"{load.model} {load.protocol} c={load.concurrency}: {results[-1].ratio:.2f}")
    return results


def _attempt(server: Server, load: Load, window_ms: int, note: Callable[[str], None]) -> Row | None:
    try:
        return measure(server, load, window_ms)
    except LoadError as failure:
        note(f"{server.name} failed: {failure}")
        return None


@contextmanager
def served(models: tuple[str, ...]) -> Iterator[dict[str, Server]]:
    """Both servers on a repository of just these models."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        repository = Path(folder) / "models"
        for model in models:
            shutil.copytree(MODELS / model, repository / model)
        sides = {}
        for name, start in (("argosy", argosy), ("triton", triton)):
            sides[name] = start(repository, log=Path(folder) / f"{name}.log")
            stack.callback(sides[name].stop)
        yield sides


def table(results: list[Result]) -> Table:
    """The results as people read them."""
    found = Table("model", "protocol", "clients", "argosy /s", "triton /s", "argosy p50 µs", "triton p50 µs", "ratio")
    for result in results:
        load = result.load
        cells = [load.model, load.protocol, str(load.concurrency)]
        cells += [f"{row.throughput:.0f}" if row else "failed" for row in (result.argosy, result.triton)]
        cells += [f"{row.p50_us:.0f}" if row else "" for row in (result.argosy, result.triton)]
        found.add_row(*cells, f"{result.ratio:.2f}")
    return found


def document(results: list[Result]) -> dict[str, object]:
    """The results as JSON values, with the median ratio over all loads."""
    return {
        "median_ratio": statistics.median(result.ratio for result in results),
        "results": [{**asdict(result), "ratio": result.ratio} for result in results],
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write; 1 when a load failed on Argosy, 2 when the peers cannot be had."""
    options = _parser().parse_args(argv)
    console = Console(width=max(100, Console().width))
    clients, names, protocols = options.concurrency, options.models, options.protocols
    loads = [
        Load(model, protocol, concurrency, options.elements)
        for model in names
        for protocol in protocols
        for concurrency in clients
    ]
    try:
        with served(SERVED) as sides:
            results = compare(sides, loads, options.window_ms, lambda text: console.print(text, style="dim"))
    except (PeerUnavailableError, ServerStartError) as reason:
        console.print(f"cannot compare: {reason}", markup=False)
        return 2
    console.print(table(results))
    options.output.write_text(json.dumps(document(results), indent=1) + "\n")
    console.print(f"written to {options.output}")
    return 1 if any(result.argosy is None for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=SERVED, default=SERVED, help="models to load")
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--concurrency", nargs="+", type=int, default=CONCURRENCIES, help="clients at once")
    parser.add_argument("--elements", type=int, default=16, help="FP32 numbers per request")
    parser.add_argument("--window-ms", type=int, default=2000, help="length of one measurement; three are taken")
    parser.add_argument("--output", type=Path, default=Path("serving.json"), help="where the JSON goes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
