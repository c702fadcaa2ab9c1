"""The command line: measure in both forms, print, write."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import benchmarks.stages
from benchmarks.comparison.load import PROTOCOLS
from rich.console import Console

from argosy_runtime.execution.dispatching import dispatcher

from .passing import measure
from .results import table
from .trace import FRONT_IN, STAGES

ROOT = Path(__file__).resolve().parents[2]
PURE = ROOT / "build" / "pure"
BATCHES = (1, 8)


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write."""
    options = _parser().parse_args(argv)
    rows = here(options) if options.here else both(options)
    page: dict[str, Any] = {"rows": rows}
    if options.whole and options.whole.is_file():
        page["whole"] = json.loads(options.whole.read_text())["rows"]
    console = Console(width=max(130, Console().width))
    console.print(table(page))
    if options.json:
        options.json.write_text(json.dumps(page, indent=1) + "\n")
    return 0


def here(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure in this process, in the one form that its modules have."""
    build = "pure" if str(dispatcher.__file__).endswith(".py") else "compiled"
    rows: list[dict[str, Any]] = []
    for protocol in PROTOCOLS:
        for batch in BATCHES:
            turns = max(1, options.requests // batch)
            stages = asyncio.run(measure(protocol, batch, turns, options.repeats))
            spent = {name: round(us, 2) for name, us in zip(STAGES[FRONT_IN:], stages, strict=True)}
            rows.append({"form": build, "protocol": protocol, "batch": batch, "stages": spent})
    return rows


def both(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure in a process for each form that exists."""
    rows = _subprocess_rows(options, dict(os.environ))
    if rows[0]["form"] == "compiled" and PURE.is_dir():
        rows += _subprocess_rows(options, {**os.environ, "PYTHONPATH": str(PURE)})
    return rows


def _subprocess_rows(options: argparse.Namespace, environment: dict[str, str]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        counts = ["--requests", str(options.requests), "--repeats", str(options.repeats)]
        command = [sys.executable, "-m", "benchmarks.stages", "--here", *counts, "--json", str(file)]
        subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"]
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages", description=benchmarks.stages.__doc__)
    add = parser.add_argument
    add("--requests", type=int, default=200, help="requests a repeat")
    add("--repeats", type=int, default=100, help="of each stage the least of so many repeats is reported")
    add("--here", action="store_true", help="only the form that this process has: compiled modules or their sources")
    add(
        "--whole", type=Path, help="what benchmarks.triton wrote: its CPU time of a request is reported next to the sum"
    )
    add("--json", type=Path, help="where the figures go as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
