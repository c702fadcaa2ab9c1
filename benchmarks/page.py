"""`python -m benchmarks.page`: the tables of docs/explanation/performance*.md, from the JSON that the benchmarks wrote.

    make bench-triton BENCH='--json build/triton.json --plot build/performance.svg'
    make bench-triton BENCH='--isolation thread --models identity --sizes 64 --json build/thread.json'
    make bench-peers BENCH='--json build/peers.json'
    make bench-scale BENCH='--json build/scale.json'
    make bench-scrapes BENCH='--json build/scrapes.json'
    make bench-planning BENCH='--json build/planning.json'
    make bench-packing BENCH='--json build/packing.json'
    make bench-stages BENCH='--whole build/triton.json --json build/stages.json'
    python -m benchmarks.page build/{triton,thread,peers,scale,scrapes,planning,packing,stages}.json

Each table stands between two comments that name it; a table whose file is not given stays as it is.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.packing import results as packing
from benchmarks.peers import __main__ as peers
from benchmarks.stages import results as stages
from benchmarks.triton import results

_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "explanation"
PAGES = (_FOLDER / "performance.md", _FOLDER / "performance-at-scale.md")


def main(files: Sequence[str]) -> int:
    """Write every table whose file is given."""
    for file in map(Path, files):
        measured = json.loads(file.read_text())
        for name, table in TABLES[file.stem].items():
            page = page_of(name)
            page.write_text(replaced(page.read_text(), name, table(measured)))
    return 0


def page_of(name: str) -> Path:
    """Return the page that has this table. Raises ValueError where not exactly one page has it."""
    pages = [page for page in PAGES if f"<!-- {name} -->" in page.read_text()]
    if len(pages) != 1:
        raise ValueError(f"{len(pages)} pages have a table {name}")
    return pages[0]


def replaced(text: str, name: str, table: str) -> str:
    """Return a page's text with this table between the comments that name it."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table + end, text, flags=re.DOTALL)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _against_triton(figures: dict[str, Any]) -> str:
    rows = [results.cells(row) for row in figures["rows"]]
    return f"{figures['interpreter']}.\n\n{markdown(results.COLUMNS, rows)}"


def _where_it_goes(figures: dict[str, Any]) -> str:
    columns = ("model", "protocol", "clients", "bytes", "server µs", "models µs", "of both in the kernel")
    return markdown(columns, [_split(row) for row in figures["rows"]])


def _split(row: dict[str, Any]) -> list[str]:
    total, server, kernel = (row[f"argosy_{name}"] for name in ("cpu_us", "server_us", "kernel_us"))
    cell = [str(row[name]) for name in ("model", "protocol", "concurrency", "bytes")]
    return [*cell, f"{server:.0f}", f"{total - server:.0f}", f"{kernel:.0f}"]


def _against_peers(rows: list[dict[str, Any]]) -> str:
    return markdown(peers.COLUMNS, [peers.cells(row) for row in rows])


def _scale(figures: dict[str, float]) -> str:
    return markdown(("what", "measured"), [(name.replace("_", " "), f"{value:.4g}") for name, value in figures.items()])


def _packing(figures: dict[str, Any]) -> str:
    return markdown(packing.COLUMNS, list(packing.lines(figures)))


def _packing_costs(figures: dict[str, Any]) -> str:
    return markdown(("what", "measured"), packing.figure_lines(figures))


def _stages(figures: dict[str, Any]) -> str:
    return markdown(stages.columns(figures), stages.lines(figures))


TABLES: dict[str, dict[str, Callable[[Any], str]]] = {
    "triton": {"against Triton": _against_triton, "where it goes": _where_it_goes},
    "thread": {"against Triton, on threads": _against_triton},
    "thread_one_core": {"against Triton, on threads of one core": _against_triton},
    "peers": {"against others": _against_peers},
    "stages": {"stages": _stages},
    "scale": {"at rest and at scale": _scale},
    "scrapes": {"scrapes": _scale},
    "planning": {"planning": _scale},
    "packing": {"packing": _packing, "large and changing fleets": _packing_costs},
}
"""A file's name, and the tables that are made of it."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
