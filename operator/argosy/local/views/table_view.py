"""`argosy up` on a terminal: a table that is redrawn in place."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from argosy.api.problems import Problem
from argosy.local.rates import Rate
from argosy.local.views.rows import NOT_TAKEN_OVER, BuildRow, Row, ServerRow


class TableView:
    """A table that is redrawn in place, with notes above it."""

    def __init__(self, console: Console) -> None:
        self._problems: tuple[Problem, ...] = ()
        self._live = Live(console=console, auto_refresh=False)

    def problems(self, problems: Sequence[Problem]) -> None:
        """Show the problems below the table until they are fixed."""
        self._problems = tuple(problems)

    def note(self, text: str) -> None:
        """Print a line above the table."""
        self._live.console.print(text, markup=False, highlight=False)

    def update(
        self,
        rows: Sequence[Row],
        servers: Sequence[ServerRow],
        rates: Mapping[str, Rate],
        builds: Sequence[BuildRow] = (),
    ) -> None:
        """Draw everything. The first call starts the live display."""
        wrong = {problem.resource for problem in self._problems}
        why = messages([row for row in rows if row.identity not in wrong], rates)
        tables = (builds_table(builds), servers_table(servers))
        parts = [models_table(rows, rates), *_problem_lines(self._problems), why, *tables, _summary(rows)]
        self._live.update(Group(*parts))
        if self._live.is_started:
            self._live.refresh()
        else:
            self._live.start(refresh=True)

    def close(self) -> None:
        """Stop redrawing; the last table stays on the screen."""
        self._live.stop()


def models_table(rows: Iterable[Row], rates: Mapping[str, Rate]) -> Table:
    """Return a row for each model and ensemble, with its traffic. Narrow terminals wrap names and placements only."""
    table = Table(box=None, pad_edge=False)
    table.add_column("KIND", no_wrap=True)
    table.add_column("NAME", overflow="fold")
    table.add_column("VER.", no_wrap=True)
    table.add_column("STATE", overflow="fold", min_width=STATE_WIDTH)
    table.add_column("WHERE", overflow="fold")
    for heading in ("REQ/S", "QUEUE MS", "COMP. MS"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if row.kind in _KINDS:
            where, version = f"{row.where} x{row.instances}" if row.instances else row.where, row.version
            table.add_row(
                _KINDS[row.kind],
                row.name,
                version,
                _state(row),
                where,
                *_traffic(rates.get(row.served_name or row.name)),
            )
    return table


STATE_WIDTH = 11
"""The width of `Progressing`; longer states wrap."""
_KINDS = {"InferenceModel": "model", "Ensemble": "ensemble"}
"""Kinds with traffic. Of pools the servers are shown."""


def _state(row: Row) -> Text:
    if row.doing:
        return Text(row.doing, "yellow")
    return Text("Ready", "green") if row.ready == "True" else Text(row.reason, "yellow")


def _traffic(rate: Rate | None) -> tuple[str, str, str]:
    if rate is None:
        return "", "", ""
    times = (f"{rate.queue_ms:.2f}", f"{rate.compute_ms:.2f}") if rate.requests else ("-", "-")
    return f"{rate.requests:.1f}", *times


def messages(rows: Iterable[Row], rates: Mapping[str, Rate]) -> Table:
    """Return where OpenAI's API has resources, why they are not Ready and were scaled, and how many requests fail.

    A resource with an operation in progress shows that as its state instead.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold", max_width=24)
    table.add_column(overflow="fold", ratio=1)
    for row in rows:
        if row.ready != "True" and row.message and not row.doing:
            table.add_row(Text(row.name, "bold"), Text(row.message))
        if row.address:
            table.add_row(Text(row.name, "bold"), Text(row.address))
        if row.scaling:
            table.add_row(Text(row.name, "bold"), Text(row.scaling, "dim"))
        if row.kind in _KINDS and (rate := rates.get(row.served_name or row.name)) and rate.failures:
            failing = f"{rate.failures:.1f} requests a second fail; their answers and the server's log say why"
            table.add_row(Text(row.name, "bold"), Text(failing, "red"))
    return table


def _problem_lines(problems: Sequence[Problem]) -> list[RenderableType]:
    if not problems:
        return []
    return [Text(NOT_TAKEN_OVER, "red bold"), *(Text(str(problem), "red") for problem in problems)]


def _summary(rows: Sequence[Row]) -> Text:
    ready = sum(row.ready == "True" for row in rows)
    return Text(f"{ready} of {len(rows)} are Ready. Ctrl-C drains and stops.", "dim")


def builds_table(builds: Iterable[BuildRow]) -> Table:
    """Return a row for each unfinished build, with a progress bar and the builder's last line."""
    builds = list(builds)
    if not builds:
        return Table.grid()
    table = Table(box=None, pad_edge=False)
    table.add_column("ENGINE", overflow="fold")
    table.add_column("FOR", overflow="fold")
    table.add_column("PHASE", no_wrap=True)
    table.add_column("", no_wrap=True, width=_BAR_WIDTH)
    table.add_column("%", justify="right", no_wrap=True)
    table.add_column("", overflow="ellipsis", no_wrap=True, ratio=1)
    for row in builds:
        bar = ProgressBar(total=100, completed=row.percent, width=_BAR_WIDTH)
        table.add_row(row.engine, row.models, row.phase or row.state, bar, str(row.percent), Text(row.line, "dim"))
    return table


_BAR_WIDTH = 20


def servers_table(servers: Iterable[ServerRow]) -> Table:
    """Return a row for each server, with its three addresses."""
    servers = list(servers)
    if not servers:
        return Table.grid()
    table = Table("SERVER", "STATE", "HTTP", "GRPC", "METRICS", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for server in servers:
        state = Text("ready", "green") if server.live else Text(server.error or "starting", "yellow")
        table.add_row(
            server.name,
            state,
            *(address.removeprefix("http://") for address in (server.url, server.grpc, server.metrics)),
        )
    return table
