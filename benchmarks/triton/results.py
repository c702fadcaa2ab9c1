"""Cells as people and programs read them: a table, JSON rows, a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.comparison.comparing import Cell
from rich.table import Table

Row = Mapping[str, str | int | float]
"""model, protocol, concurrency, bytes; ratio, p99_ratio, cpu_ratio; and of each server the figures of `Measured`."""

_FIGURES = ("rate", "p50_us", "p99_us", "cpu_us", "server_us", "kernel_us", "client_us")
COLUMNS = (
    "model",
    "protocol",
    "clients",
    "bytes",
    "argosy /s",
    "triton /s",
    "ratio",
    "p99",
    "CPU µs argosy",
    "triton",
    "client",
)


def row(cell: Cell) -> Row:
    """Return a cell's medians; zeros where a server failed."""
    load = cell.load
    result: dict[str, str | int | float] = {
        "model": load.model,
        "protocol": f"{load.protocol} shm" if load.shared_memory else load.protocol,
        "concurrency": load.concurrency,
        "bytes": load.bytes,
        "ratio": round(cell.ratio, 3),
        "p99_ratio": round(cell.p99_ratio, 3),
        "cpu_ratio": round(cell.cpu_ratio, 3),
    }
    for figure in _FIGURES:
        result[f"argosy_{figure}"] = round(cell.subject(figure), 1)
        result[f"triton_{figure}"] = round(cell.peer(figure), 1)
    return result


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for a terminal."""
    made = Table(*COLUMNS)
    for row in rows:
        made.add_row(*cells(row))
    return made


def cells(row: Row) -> list[str]:
    """Return a row's texts, in the columns' order."""
    rates = [f"{row[name]:.0f}" for name in ("argosy_rate", "triton_rate")]
    ratios = [f"{row[name]:.2f}" for name in ("ratio", "p99_ratio")]
    cpu = [f"{row[name]:.0f}" for name in ("argosy_cpu_us", "triton_cpu_us", "argosy_client_us")]
    return [*(str(row[name]) for name in ("model", "protocol", "concurrency", "bytes")), *rates, *ratios, *cpu]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw a bar a row, its ratio of rates, into an SVG or PNG file. Needs matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1 + len(rows) / 4), layout="constrained")
    axes = figure.add_subplot()
    labels = [f"{row['model']} {row['protocol']} c={row['concurrency']} {row['bytes']} B" for row in rows]
    ratios = [float(row["ratio"]) for row in rows]
    axes.barh(labels, ratios, color=["tab:blue" if ratio >= 1 else "tab:orange" for ratio in ratios])
    axes.axvline(1, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("requests per second, Argosy ÷ Triton")
    figure.savefig(path)
