"""`python -m benchmarks.gpu`: BERT-base's shape in batches of 32 on one GPU; `--device cpu` tries it out, small.

In each round, one right after the other: a bare torch loop, Argosy's torch backend, and Triton's Python backend with
the same model where tritonserver can be had; the servers under perf_analyzer. Rates are rows a second; the ratios are
medians of the rounds.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from tests.peers.argosy import argosy
from tests.peers.cache import PeerUnavailableError
from tests.peers.perf_analyzer import perf_analyzer
from tests.peers.server import Server, ServerStartError
from tests.peers.triton import triton

from .bare import BareLoop
from .repository import BASE, NAME, SMALL, Setup, for_argosy, for_triton

Rates = dict[str, float]
"""Rows a second, by who answered them."""


@contextmanager
def contestants(setup: Setup, with_triton: bool) -> Iterator[dict[str, Server | BareLoop]]:
    """Yield all that are measured, by name; the bare loop has its model loaded, the servers run."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = Path(scratch)
        ours = for_argosy(folder / "argosy", setup)
        servers: dict[str, Server | BareLoop] = {"torch": BareLoop(ours / NAME / "1", setup.device)}
        servers["argosy"] = argosy(ours, log=folder / "argosy.log")
        stack.callback(servers["argosy"].stop)
        if with_triton:
            servers["triton"] = triton(for_triton(folder / "triton", setup), log=folder / "triton.log")
            stack.callback(servers["triton"].stop)
        yield servers


def round_of(servers: dict[str, Server | BareLoop], setup: Setup, concurrency: int, seconds: float) -> Rates:
    """Measure each of them once. Raises LoadError where a server fails."""
    ids = np.random.default_rng(0).integers(0, setup.shape.vocabulary, (setup.batch, setup.shape.sequence))
    arguments = ["-m", NAME, "-i", "http", "-b", str(setup.batch), "--concurrency-range", str(concurrency)]
    # Its random integers are larger than any vocabulary.
    arguments += ["--input-data", "zero", "-p", str(int(seconds * 1000)), "-r", "3", "-s", "1000"]
    return {
        name: one.rate(ids, seconds)
        if isinstance(one, BareLoop)
        else perf_analyzer([*arguments, "-u", one.http])[0].throughput
        for name, one in servers.items()
    }


def ratio(rounds: list[Rates], peer: str) -> float | None:
    """Return Argosy's rate ÷ its peer's: above 1, Argosy is faster. None where the peer did not run."""
    return statistics.median(rates["argosy"] / rates[peer] for rates in rounds) if peer in rounds[0] else None


def table(rounds: list[Rates], device: str) -> Table:
    """Return the medians as a table for people."""
    made = Table(title=f"{NAME} on {device}")
    for title in ("", "rows/s", "Argosy ÷ it"):
        made.add_column(title, justify="right")
    for name in rounds[0]:
        rate = statistics.median(rates[name] for rates in rounds)
        made.add_row(name, f"{rate:.0f}", f"{ratio(rounds, name):.2f}")
    return made


def measure(options: argparse.Namespace, note: Callable[[str], None]) -> list[Rates]:
    """Run the rounds. Without `--triton` a Triton that is unavailable, or does not load the model, is left out."""
    setup = _setup(options)
    try:
        with contestants(setup, with_triton=options.triton != "no") as servers:
            return _rounds(servers, setup, options, note)
    except (PeerUnavailableError, ServerStartError) as error:
        if options.triton != "try":
            raise
        note(f"without Triton: {error}")
    with contestants(setup, with_triton=False) as servers:
        return _rounds(servers, setup, options, note)


def _rounds(
    servers: dict[str, Server | BareLoop], setup: Setup, options: argparse.Namespace, note: Callable[[str], None]
) -> list[Rates]:
    rounds = []
    for number in range(options.rounds):
        rounds.append(round_of(servers, setup, options.concurrency, options.seconds))
        note(f"round {number + 1}: " + ", ".join(f"{name} {rate:.0f}" for name, rate in rounds[-1].items()))
    return rounds


def _setup(options: argparse.Namespace) -> Setup:
    shape = SMALL if options.device == "cpu" else BASE
    return Setup(shape, options.device, options.batch, options.instances, options.graphs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batch", type=int, default=32, help="rows of a request, and the most that run together")
    parser.add_argument("--concurrency", type=int, default=4, help="requests under way at once")
    parser.add_argument("--instances", type=int, default=2, help="so that one copies while another computes")
    parser.add_argument("--graphs", action="store_true", help="CUDA graphs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--triton", choices=("try", "yes", "no"), default="try")
    parser.add_argument("--json", type=Path, help="write the rounds there")
    return parser.parse_args()


def main() -> None:
    """Measure and tell."""
    options, console = _options(), Console(stderr=True)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            f"no GPU: torch {torch.__version__} cannot use CUDA here; --device cpu tries the benchmark out"
        )
    rounds = measure(options, console.print)
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    Console().print(table(rounds, device))
    if options.json:
        document = {"device": device, "setup": asdict(_setup(options)), "rounds": rounds}
        options.json.write_text(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
