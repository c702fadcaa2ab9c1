"""The command line: measure each server in alternating rounds, print, write."""

import argparse
import json
import statistics
import sys
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import benchmarks.peers
from benchmarks.comparison.measuring import cpu_time
from rich.console import Console
from rich.table import Table
from tests.peers.cache import PeerUnavailableError

from .http_load import run
from .servers import PEERS, Running, serving, serving_argosy

MODELS = ("echo", "classify")
FIGURES = ("rate", "p50_us", "p99_us", "cpu_us")
COLUMNS = ("peer", "model", "clients", "argosy /s", "peer /s", "ratio", "p99", "CPU µs argosy", "peer")


@dataclass(frozen=True)
class Measured:
    """`rate` in requests/s, the rest in µs."""

    rate: float
    p50_us: float
    p99_us: float
    cpu_us: float


Row = dict[str, str | int | float]
"""peer, model, concurrency; ratio and p99_ratio (Argosy ÷ peer), and each one's rate, p50_us, p99_us, cpu_us."""


def main(argv: list[str] | None = None) -> int:
    """Measure what can be had; 1 when no peer can."""
    options = _parser().parse_args(argv)
    console, progress = Console(width=max(110, Console().width)), Console(stderr=True)
    rows: list[Row] = []
    with serving_argosy() as argosy:
        for name in options.peers:
            progress.print(f"{name}: its environment and its start", markup=False)
            try:
                # One at a time: what a peer does at rest is not to fall on another.
                with serving(name) as peer:
                    for model, clients in product(options.models, options.concurrencies):
                        progress.print(f"{name}: {model}, {clients} at once", markup=False)
                        rounds = [_round(argosy, peer, model, clients, options.seconds) for _ in range(options.rounds)]
                        rows.append(_row(name, model, clients, rounds))
            except PeerUnavailableError as reason:
                console.print(f"{name} is left out: {reason}", markup=False)
    console.print(_table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if rows else 1


def _round(argosy: Running, peer: Running, model: str, clients: int, seconds: float) -> tuple[Measured, Measured]:
    return measure(argosy, model, clients, seconds), measure(peer, model, clients, seconds)


def measure(server: Running, model: str, clients: int, seconds: float) -> Measured:
    """Measure one load, sent by a process of its own. Raises RuntimeError where requests are refused."""
    path, body = server.requests[model]
    before = cpu_time(server.pid).total
    with get_context("spawn").Pool(1) as pool:
        answers = pool.apply(run, (server.port, path, body, clients, seconds))
    if answers.refused:
        raise RuntimeError(f"{answers.refused} requests to {path} were refused")
    took = sorted(answers.seconds)
    cpu = (cpu_time(server.pid).total - before) / len(took)
    return Measured(len(took) / seconds, took[len(took) // 2] * 1e6, took[len(took) * 99 // 100] * 1e6, cpu * 1e6)


def _row(peer: str, model: str, clients: int, rounds: list[tuple[Measured, Measured]]) -> Row:
    result: Row = {
        "peer": peer,
        "model": model,
        "concurrency": clients,
        "ratio": round(statistics.median(ours.rate / theirs.rate for ours, theirs in rounds), 2),
        "p99_ratio": round(statistics.median(ours.p99_us / theirs.p99_us for ours, theirs in rounds), 2),
    }
    for side, name in enumerate(("argosy", "peer")):
        for figure in FIGURES:
            result[f"{name}_{figure}"] = round(statistics.median(getattr(pair[side], figure) for pair in rounds), 1)
    return result


def cells(row: Row) -> list[str]:
    """Return a row's texts, in the order of COLUMNS."""
    figures = [f"{row[name]:.0f}" for name in ("argosy_rate", "peer_rate")]
    cpu = [f"{row[name]:.0f}" for name in ("argosy_cpu_us", "peer_cpu_us")]
    ratios = [f"{row[name]:.2f}" for name in ("ratio", "p99_ratio")]
    return [*(str(row[name]) for name in ("peer", "model", "concurrency")), *figures, *ratios, *cpu]


def _table(rows: list[Row]) -> Table:
    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*cells(row))
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=benchmarks.peers.__doc__)
    add = parser.add_argument
    add("--peers", nargs="*", choices=tuple(PEERS), default=tuple(PEERS))
    add("--models", nargs="+", choices=MODELS, default=MODELS)
    add("--concurrencies", nargs="+", type=int, default=(1, 8, 32))
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=2.0, help="length of one measurement")
    add("--json", type=Path, help="where the rows go as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
