"""What `argosy up` shows: a live table on a terminal, a line for each change anywhere else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from argosy.api.problems import Problem

from .rates import Rate


@dataclass(frozen=True, slots=True)
class Row:
    """One model, ensemble or pool.

    `ready` and `message` are its Ready condition's, `doing` what is under way.
    """

    kind: str
    name: str
    version: str
    ready: str
    reason: str
    where: str
    message: str
    doing: str = ""

    @property
    def told(self) -> str:
        """The line that a change of state prints."""
        version = f" v{self.version}" if self.version else ""
        said = f": {self.message}" if self.message else ""
        return f"{self.kind} {self.name}{version}: Ready={self.ready} ({self.reason}){said}"


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server: where it answers, and what is wrong with it."""

    name: str
    url: str
    grpc: str
    metrics: str
    live: bool
    trouble: str = ""


class View(Protocol):
    """Somewhere to show things."""

    def problems(self, problems: Sequence[Problem]) -> None:
        """What is wrong with the manifests; nothing is when the list is empty."""

    def note(self, text: str) -> None:
        """One line about something that happened."""

    def update(self, rows: Sequence[Row], servers: Sequence[ServerRow], rates: Mapping[str, Rate]) -> None:
        """How everything is now."""

    def close(self) -> None:
        """Nothing more will come."""


class LineView:
    """Plain lines, only where something changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: dict[str, str] = {}

    def problems(self, problems: Sequence[Problem]) -> None:
        """Every problem on a line of its own."""
        for problem in problems:
            self._print(str(problem))

    def note(self, text: str) -> None:
        """The line itself."""
        self._print(text)

    def update(self, rows: Sequence[Row], servers: Sequence[ServerRow], rates: Mapping[str, Rate]) -> None:
        """A line for each resource and server whose state differs from the one told last."""
        for server in servers:
            state = "ready" if server.live else "starting"
            addresses = f"http {server.url}, grpc {server.grpc}, metrics {server.metrics}"
            self._change(f"server {server.name}", server.trouble or f"server {server.name}: {state} ({addresses})")
        for row in rows:
            self._change(f"{row.kind} {row.name}", row.told)

    def close(self) -> None:
        """Lines need no closing."""

    def _change(self, key: str, line: str) -> None:
        if self._told.get(key) != line:
            self._told[key] = line
            self._print(line)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class TableView:
    """A table that is drawn again and again in its place; notes scroll by above it."""

    def __init__(self, console: Console) -> None:
        self._problems: tuple[Problem, ...] = ()
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()

    def problems(self, problems: Sequence[Problem]) -> None:
        """They stay below the table until they are mended."""
        self._problems = tuple(problems)

    def note(self, text: str) -> None:
        """A line above the table."""
        self._live.console.print(text, markup=False, highlight=False)

    def update(self, rows: Sequence[Row], servers: Sequence[ServerRow], rates: Mapping[str, Rate]) -> None:
        """Draw everything."""
        parts: list[RenderableType] = [models_table(rows, rates), servers_table(servers)]
        parts += [Text(str(problem), style="red") for problem in self._problems]
        self._live.update(Group(*parts), refresh=True)

    def close(self) -> None:
        """Leave the last table on the screen."""
        self._live.stop()


def view_for(console: Console) -> View:
    """The view that suits where the output goes."""
    return TableView(console) if console.is_terminal else LineView(console)


STYLES = {"True": "green", "False": "yellow", "Unknown": "yellow"}


def models_table(rows: Iterable[Row], rates: Mapping[str, Rate]) -> Table:
    """A line per model and ensemble, with its traffic."""
    table = Table(box=None, pad_edge=False)
    for heading in ("KIND", "NAME", "VERSION", "READY", "WHERE"):
        table.add_column(heading, no_wrap=True)
    for heading in ("REQ/S", "QUEUE MS", "COMPUTE MS"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("MESSAGE", overflow="fold")
    for row in rows:
        table.add_row(
            row.kind,
            row.name,
            row.version,
            Text(row.ready, STYLES.get(row.ready, "")),
            row.where,
            *_traffic(rates.get(row.name)),
            Text(row.doing or ("" if row.ready == "True" else f"{row.reason}: {row.message}")),
        )
    return table


def _traffic(rate: Rate | None) -> tuple[str, str, str]:
    if rate is None:
        return "", "", ""
    return f"{rate.requests:.1f}", f"{rate.queue_ms:.2f}", f"{rate.compute_ms:.2f}"


def servers_table(servers: Iterable[ServerRow]) -> Table:
    """A line per server, with its three addresses."""
    table = Table("SERVER", "HTTP", "GRPC", "METRICS", "", box=None, pad_edge=False)
    for server in servers:
        state = Text("ready", "green") if server.live else Text(server.trouble or "starting", "yellow")
        table.add_row(server.name, server.url, server.grpc, server.metrics, state)
    return table
