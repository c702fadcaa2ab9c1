"""What `argosy up` shows: a live table on a terminal, a line for each change anywhere else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from argosy.api.problems import Problem

from .rates import Rate


@dataclass(frozen=True, slots=True)
class Row:
    """One model, ensemble or pool.

    `ready` and `message` are its Ready condition's, `doing` what is under way; traffic is told of its `served_name`.
    `instances` there are on each device, empty for one; `scaling` says why, `scaled` what changed last.
    """

    kind: str
    name: str
    version: str
    ready: str
    reason: str
    where: str
    message: str
    doing: str = ""
    namespace: str = "default"
    served_name: str = ""
    instances: str = ""
    scaling: str = ""
    scaled: str = ""

    @property
    def identity(self) -> str:
        """As problems name a resource."""
        return f"{self.kind} {self.namespace}/{self.name}"

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


@dataclass(frozen=True, slots=True)
class BuildRow:
    """One build of an engine: for whom, of what, and how far it is. `line` is the tool's last."""

    name: str
    models: str
    engine: str
    state: str
    phase: str
    percent: int
    line: str

    @property
    def doing(self) -> str:
        """For the model's own line."""
        return f"{self.phase} {self.percent} %" if self.phase else self.state

    @property
    def told(self) -> str:
        """The line that a change of phase prints."""
        return f"build of {self.models} ({self.engine}): {self.phase or self.state}"


NOT_TAKEN_OVER = (
    "some manifests have problems; the others are served, and what these said before is still served where their "
    "status says so"
)


class View(Protocol):
    """Somewhere to show things."""

    def problems(self, problems: Sequence[Problem]) -> None:
        """What is wrong with the manifests since the last edit; an empty list says that it is mended."""

    def note(self, text: str) -> None:
        """One line about something that happened."""

    def update(
        self,
        rows: Sequence[Row],
        servers: Sequence[ServerRow],
        rates: Mapping[str, Rate],
        builds: Sequence[BuildRow] = (),
    ) -> None:
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
        self._print(NOT_TAKEN_OVER if problems else "the manifests are right again")
        for problem in problems:
            self._print(str(problem))

    def note(self, text: str) -> None:
        """The line itself."""
        self._print(text)

    def update(
        self,
        rows: Sequence[Row],
        servers: Sequence[ServerRow],
        rates: Mapping[str, Rate],
        builds: Sequence[BuildRow] = (),
    ) -> None:
        """A line for each resource, server and build whose state differs from the one told last."""
        for server in servers:
            state = "ready" if server.live else "starting"
            addresses = f"http {server.url}, grpc {server.grpc}, metrics {server.metrics}"
            self._change(f"server {server.name}", server.trouble or f"server {server.name}: {state} ({addresses})")
        for build in builds:
            self._change(f"build {build.name}", build.told)
        for row in rows:
            self._change(f"{row.kind} {row.name}", row.told)
            if row.scaled:
                self._change(f"scaling {row.kind} {row.name}", f"{row.kind} {row.name}: {row.scaled}")

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

    def problems(self, problems: Sequence[Problem]) -> None:
        """They stay below the table until they are mended."""
        self._problems = tuple(problems)

    def note(self, text: str) -> None:
        """A line above the table."""
        self._live.console.print(text, markup=False, highlight=False)

    def update(
        self,
        rows: Sequence[Row],
        servers: Sequence[ServerRow],
        rates: Mapping[str, Rate],
        builds: Sequence[BuildRow] = (),
    ) -> None:
        """Draw everything. The terminal is not touched before the first time."""
        wrong = {problem.resource for problem in self._problems}
        why = messages([row for row in rows if row.identity not in wrong], rates)
        tables = (builds_table(builds), servers_table(servers))
        parts = [models_table(rows, rates), *_told(self._problems), why, *tables, _summary(rows)]
        self._live.update(Group(*parts))
        if self._live.is_started:
            self._live.refresh()
        else:
            self._live.start(refresh=True)

    def close(self) -> None:
        """Leave the last table on the screen."""
        self._live.stop()


def view_for(console: Console) -> View:
    """Return the view that suits where the output goes."""
    return TableView(console) if console.is_terminal else LineView(console)


def models_table(rows: Iterable[Row], rates: Mapping[str, Rate]) -> Table:
    """Return a line per model and ensemble, with its traffic. Narrow terminals wrap names and places, nothing else."""
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
"""Room for `Progressing`; longer states wrap."""
_KINDS = {"InferenceModel": "model", "Ensemble": "ensemble"}
"""What has traffic; of pools the servers are shown."""


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
    """Return why what is not Ready is not, and what fails, as wide as the terminal; what is under way says so in its
    state.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold", max_width=24)
    table.add_column(overflow="fold", ratio=1)
    for row in rows:
        if row.ready != "True" and row.message and not row.doing:
            table.add_row(Text(row.name, "bold"), Text(row.message))
        if row.scaling:
            table.add_row(Text(row.name, "bold"), Text(row.scaling, "dim"))
        if row.kind in _KINDS and (rate := rates.get(row.served_name or row.name)) and rate.failures:
            failing = f"{rate.failures:.1f} requests a second fail; their answers and the server's log say why"
            table.add_row(Text(row.name, "bold"), Text(failing, "red"))
    return table


def _told(problems: Sequence[Problem]) -> list[RenderableType]:
    if not problems:
        return []
    return [Text(NOT_TAKEN_OVER, "red bold"), *(Text(str(problem), "red") for problem in problems)]


def _summary(rows: Sequence[Row]) -> Text:
    ready = sum(row.ready == "True" for row in rows)
    return Text(f"{ready} of {len(rows)} are Ready. Ctrl-C drains and stops.", "dim")


def builds_table(builds: Iterable[BuildRow]) -> Table:
    """Return a line per build that is not over, with a bar and the tool's last words; nothing where there is none."""
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
    """Return a line per server, with its three addresses; nothing where there is none."""
    servers = list(servers)
    if not servers:
        return Table.grid()
    table = Table("SERVER", "STATE", "HTTP", "GRPC", "METRICS", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for server in servers:
        state = Text("ready", "green") if server.live else Text(server.trouble or "starting", "yellow")
        table.add_row(
            server.name, state, *(each.removeprefix("http://") for each in (server.url, server.grpc, server.metrics))
        )
    return table
