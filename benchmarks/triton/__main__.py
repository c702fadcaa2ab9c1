"""The command line: choose the loads, measure, print, write."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import benchmarks.triton
from benchmarks.comparison.comparing import Note, compare
from benchmarks.comparison.load import CONCURRENCIES, PROTOCOLS, SIZES, loads, models
from rich.console import Console
from tests.peers.cache import PeerUnavailableError
from tests.peers.server import ServerStartError

from .results import plot, row, table
from .serving import served

QUICK = {"models": ["identity"], "concurrencies": [1, 8, 32], "sizes": [64], "window": 300}


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write; 1 when a load failed, 2 when the servers cannot be had."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args(argv)
    console = Console(width=max(130, Console().width))
    tensors = (options.sizes, options.shared_memory)
    cells = list(loads(options.models, options.protocols, options.concurrencies, *tensors))
    try:
        with served(options.models, options.python, options.isolation, options.cores) as (ours, theirs):
            results = compare(ours, theirs, cells, options.rounds, options.window, _noted(console))
    except (PeerUnavailableError, ServerStartError) as reason:
        console.print(f"cannot compare: {reason}", markup=False)
        return 2
    rows = [row(cell) for cell in results]
    console.print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"interpreter": interpreter(options.python), "rows": rows}, indent=1) + "\n")
    if options.plot:
        plot(rows, options.plot)
    return 0 if all(cell.rounds for cell in results) else 1


def interpreter(python: str) -> str:
    """Return the version and the path of a Python: its build decides how fast it is."""
    code = "import platform, sys; print('CPython', platform.python_version(), 'at', sys.executable)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _noted(console: Console) -> Note:
    return lambda text: console.print(text, style="dim", markup=False, highlight=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triton", description=benchmarks.triton.__doc__)
    add = parser.add_argument
    add("--models", nargs="+", choices=models(), default=models(), metavar="MODEL", help=", ".join(models()))
    add("--protocols", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    add("--concurrencies", nargs="+", type=int, default=CONCURRENCIES, help="clients at once")
    add("--sizes", nargs="+", type=int, default=SIZES, help="bytes of the input tensor")
    add("--shared-memory", action="store_true", help="the tensors are in the system's shared memory")
    add("--rounds", type=int, default=3, help="measurements of each load on each server")
    add("--window", type=int, default=500, help="ms; a measurement is three windows")
    add(
        "--quick", action="store_true", help="one model, 64 bytes, short windows, unless said otherwise: under a minute"
    )
    add("--python", default=sys.executable, help="the interpreter that runs Argosy")
    add(
        "--isolation", choices=("process", "thread"), help="where Argosy runs models; a process of their own by default"
    )
    add("--cores", default="", help="the cores that Argosy may use, such as 0; all by default")
    add("--json", type=Path, help="where the rows go as JSON")
    add("--plot", type=Path, help="where a picture goes, .svg or .png; needs matplotlib")
    return parser


if __name__ == "__main__":
    sys.exit(main())
