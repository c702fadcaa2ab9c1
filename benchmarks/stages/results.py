"""The stages as people read them: a column for each form, protocol and size of a batch."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.table import Table

Found = Mapping[str, Any]
"""`rows`: form, protocol, batch, and `stages`, microseconds a request by name; perhaps `whole`, rows of
`benchmarks.triton`."""

_UNKNOWN: Final = "—"


def columns(found: Found) -> list[str]:
    """Return the heads of the columns."""
    return ["stage", *(f"{row['protocol']}, {row['batch']} a batch, {row['form']}" for row in found["rows"])]


def lines(found: Found) -> list[list[str]]:
    """Return a line a stage, their sum, and what was measured from outside, where it was."""
    rows = found["rows"]
    told = [[name, *(f"{row['stages'][name]:.1f}" for row in rows)] for name in rows[0]["stages"]]
    told.append(["sum", *(f"{sum(row['stages'].values()):.1f}" for row in rows)])
    wholes = [_whole(found.get("whole", ()), row) for row in rows]
    if set(wholes) != {_UNKNOWN}:
        told.append(["CPU time of the whole server, as many clients", *wholes])
    return told


def _whole(measured: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """Return the CPU time of a request, the server's and the model's process', from as many clients."""
    asked = {"model": "identity", "protocol": row["protocol"], "concurrency": row["batch"], "bytes": 64}
    found = [each["argosy_cpu_us"] for each in measured if asked.items() <= each.items()]
    return f"{found[0]:.0f}" if any(found) and row["form"] == "compiled" else _UNKNOWN


def table(found: Found) -> Table:
    """Return the same for a terminal."""
    heads = columns(found)
    made = Table(title="CPU time of a request, µs")
    made.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        made.add_column(head.replace(", ", "\n"), justify="right")
    for line in lines(found):
        made.add_row(*line)
    return made
