"""The result as tables and as a picture."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.packing.baselines import RULES
from rich.console import Console
from rich.table import Table

COLUMNS = ("family", "fleets", "proven", "mean", "worst", "at the optimum", "left out", *RULES)
"""Of each family: ours over the proven optimum, and the plain rules' means."""
_ALL, _NONE = "all", "-"


def lines(result: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield a row for each family, and one for all, in the columns' order."""
    for family, figures in result["families"].items():
        yield _line(family, figures)
    yield _line(_ALL, result)


def _line(family: str, figures: Mapping[str, Any]) -> list[str]:
    share = figures["at_optimum_share"]
    rules = figures.get("rules_over_optimum", {})
    return [
        family,
        str(figures["fleets"]),
        str(figures["proven"]),
        _number(figures["mean_over_optimum"]),
        _number(figures["worst_over_optimum"]),
        _NONE if share is None else f"{share:.0%}",
        str(figures["unplaced_with_a_place"]),
        *(_number(rules.get(name)) for name in RULES),
    ]


def figure_lines(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the numbers that are not of a family or a fleet, each with its name in words."""
    return [
        (name.replace("_", " "), _number(value)) for name, value in result.items() if not isinstance(value, dict | list)
    ]


def show(result: Mapping[str, Any]) -> None:
    """Print the tables."""
    table = Table(*COLUMNS, title="GPUs over the proven optimum")
    for line in lines(result):
        table.add_row(*line)
    figures = Table("what", "measured")
    for name, value in figure_lines(result):
        figures.add_row(name, value)
    console = Console(width=140)
    console.print(table)
    console.print(figures)


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Draw each fleet's GPUs over the proven optimum, ours and first-fit's, as SVG or PNG. Needs matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "argosy"  # equal pictures are equal files
    families = list(result["families"])
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    for offset, name, colour in ((-0.15, "first-fit", "tab:grey"), (0.15, "argosy", "tab:blue")):
        points = [
            (families.index(row["fleet"].rpartition("-")[0]) + offset, ratio)
            for row in result["rows"]
            if (ratio := _ratio(row, name)) is not None
        ]
        axes.plot([at for at, _ in points], [ratio for _, ratio in points], "o", color=colour, alpha=0.4, label=name)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks(range(len(families)), families)
    axes.set_ylabel("GPUs ÷ proven optimum")
    axes.legend()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _ratio(row: Mapping[str, Any], name: str) -> float | None:
    plan = row if name == "argosy" else row[name]
    return plan["gpus"] / row["optimum"] if row["proven"] and row["optimum"] and not plan["unplaced"] else None


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.4g}"
