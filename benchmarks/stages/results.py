"""The stages as people read them: a column for each form, protocol and size of a batch."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.table import Table

Page = Mapping[str, Any]
"""`rows`: form, protocol, batch, and `stages`, microseconds a request by name; perhaps `whole`, rows of
`benchmarks.triton`."""

_UNKNOWN: Final = "—"


def columns(page: Page) -> list[str]:
    """Return the heads of the columns."""
    return ["stage", *(f"{row['protocol']}, {row['batch']} a batch, {row['form']}" for row in page["rows"])]


def lines(page: Page) -> list[list[str]]:
    """Return a line a stage, their sum, and what was measured from outside, where it was."""
    rows = page["rows"]
    result = [[name, *(f"{row['stages'][name]:.1f}" for row in rows)] for name in rows[0]["stages"]]
    result.append(["sum", *(f"{sum(row['stages'].values()):.1f}" for row in rows)])
    wholes = [_measured_outside(page.get("whole", ()), row) for row in rows]
    if set(wholes) != {_UNKNOWN}:
        result.append(["CPU time of the whole server, as many clients", *wholes])
    return result


def _measured_outside(measured: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """Return the CPU time of a request, the server's and the model's process', from as many clients."""
    load = {"model": "identity", "protocol": row["protocol"], "concurrency": row["batch"], "bytes": 64}
    values = [row["argosy_cpu_us"] for row in measured if load.items() <= row.items()]
    return f"{values[0]:.0f}" if any(values) and row["form"] == "compiled" else _UNKNOWN


def table(page: Page) -> Table:
    """Return the same for a terminal."""
    heads = columns(page)
    made = Table(title="CPU time of a request, µs")
    made.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        made.add_column(head.replace(", ", "\n"), justify="right")
    for line in lines(page):
        made.add_row(*line)
    return made
