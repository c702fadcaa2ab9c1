"""How benchmarks whose result is numbers by name report them: one place, so that `benchmarks.page` reads them alike."""

import json
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table


def report(figures: Mapping[str, float], file: Path | None) -> None:
    """Print the numbers as a table, and write them to `file` as JSON where one is given."""
    table = Table("what", "measured")
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), f"{value:.3g}")
    Console().print(table)
    if file is not None:
        file.write_text(json.dumps(figures, indent=1) + "\n")
