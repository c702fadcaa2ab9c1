"""`python -m benchmarks.page`: the tables of docs/performance.md, from the JSON that the benchmarks wrote.

    make bench-triton BENCH='--json build/triton.json --plot docs/performance.svg'
    make bench-triton BENCH='--isolation thread --models identity --sizes 64 --json build/thread.json'
    make bench-peers BENCH='--json build/peers.json'
    make bench-scale BENCH='--json build/scale.json'
    make bench-scrapes BENCH='--json build/scrapes.json'
    make bench-planning BENCH='--json build/planning.json'
    make bench-stages BENCH='--whole build/triton.json --json build/stages.json'
    python -m benchmarks.page build/{triton,thread,peers,scale,scrapes,planning,stages}.json

Each table stands between two comments that name it; a table whose file is not given stays as it is.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import __main__ as peers
from benchmarks.stages import results as stages
from benchmarks.triton import results

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"


def main(files: Sequence[str]) -> int:
    """Write every table that there is a file for."""
    text = PAGE.read_text()
    for file in map(Path, files):
        found = json.loads(file.read_text())
        for name, table in TABLES[file.stem].items():
            text = replaced(text, name, table(found))
    PAGE.write_text(text)
    return 0


def replaced(text: str, name: str, table: str) -> str:
    """Return the page with this table in its place; ValueError where it has none."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    changed, count = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table + end, text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"docs/performance.md has {count} places for {name}")
    return changed


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _beside_triton(found: dict[str, Any]) -> str:
    rows = [results.cells(row) for row in found["rows"]]
    return f"{found['interpreter']}.\n\n{markdown(results.COLUMNS, rows)}"


def _where_it_goes(found: dict[str, Any]) -> str:
    columns = ("model", "protocol", "clients", "bytes", "server µs", "models µs", "of both in the kernel")
    return markdown(columns, [_split(row) for row in found["rows"]])


def _split(row: dict[str, Any]) -> list[str]:
    total, server, kernel = (row[f"argosy_{name}"] for name in ("cpu_us", "server_us", "kernel_us"))
    asked = [str(row[name]) for name in ("model", "protocol", "concurrency", "bytes")]
    return [*asked, f"{server:.0f}", f"{total - server:.0f}", f"{kernel:.0f}"]


def _beside_peers(found: list[dict[str, Any]]) -> str:
    return markdown(peers.COLUMNS, [peers.cells(row) for row in found])


def _scale(found: dict[str, float]) -> str:
    return markdown(("what", "measured"), [(name.replace("_", " "), f"{value:.4g}") for name, value in found.items()])


def _stages(found: dict[str, Any]) -> str:
    return markdown(stages.columns(found), stages.lines(found))


TABLES: dict[str, dict[str, Callable[[Any], str]]] = {
    "triton": {"beside Triton": _beside_triton, "where it goes": _where_it_goes},
    "thread": {"beside Triton, on threads": _beside_triton},
    "thread_one_core": {"beside Triton, on threads of one core": _beside_triton},
    "peers": {"beside others": _beside_peers},
    "stages": {"stages": _stages},
    "scale": {"at rest and at scale": _scale},
    "scrapes": {"scrapes": _scale},
    "planning": {"planning": _scale},
}
"""A file's name, and the tables that are made of it."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
