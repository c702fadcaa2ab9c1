"""Builds as a person follows them, and their results."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column, Table
from rich.text import Text

from argosy.local.builds.build import LocalBuild
from argosy.local.builds.rows import engine_of, models_of
from argosy.local.views.rows import BuildRow
from argosy.planning.builds.failures import failure_message
from argosy_agent.contract.builds import AccuracyReport, BuildState


class ProgressBuilds:
    """A progress bar for each build, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[models]}", style="bold"),
            TextColumn("{task.fields[engine]}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.description}"),
            TextColumn("{task.fields[line]}", style="dim", table_column=Column(ratio=1, no_wrap=True)),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._progress.start()

    def update(self, rows: Sequence[BuildRow]) -> None:
        """Draw every build. Builds that are missing in `rows` are over."""
        for row in rows:
            if row.name not in self._tasks:
                self._tasks[row.name] = self._progress.add_task(
                    row.state, total=100, models=row.models, engine=row.engine, line=row.line
                )
            task = self._tasks[row.name]
            self._progress.update(task, completed=row.percent, description=row.phase or row.state, line=row.line)
        for name in self._tasks.keys() - {row.name for row in rows}:
            self._progress.update(self._tasks[name], completed=100, description="over", line="")

    def close(self) -> None:
        """Stop redrawing; the last bars stay on the screen."""
        self._progress.stop()


class LineBuilds:
    """A line for each change of a build's phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: dict[str, str] = {}

    def update(self, rows: Sequence[BuildRow]) -> None:
        """Print the builds whose phase changed since the last call."""
        for row in rows:
            if self._printed.get(row.name) != row.summary:
                self._printed[row.name] = row.summary
                self._console.print(row.summary, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Do nothing: lines need no closing."""


def build_table(builds: Iterable[LocalBuild]) -> Table:
    """Return a row for each build: its result, size and duration."""
    table = Table(box=None, pad_edge=False)
    for heading in ("MODEL", "ENGINE", "STATE", "KEY", "ACCURACY"):
        table.add_column(heading, overflow="fold")
    for heading in ("SIZE", "SECONDS"):
        table.add_column(heading, justify="right", no_wrap=True)
    for build in builds:
        table.add_row(*_cells(build))
    return table


def failures(builds: Iterable[LocalBuild]) -> Iterator[str]:
    """Yield the reason of each failed build, a line each."""
    for build in builds:
        if build.observed.state is BuildState.FAILED:
            engine = engine_of(build.planned.request)
            yield f"{models_of(build.planned.owners)} ({engine}): {failure_message(build.observed)}"


def _cells(build: LocalBuild) -> tuple[str | Text, ...]:
    report, observed = build.report, build.observed
    ready = observed.state is BuildState.READY
    cached = ready and report is not None and (report.cached or not build.was_started)
    state = "Cached" if cached else observed.state.value
    return (
        models_of(build.planned.owners),
        engine_of(build.planned.request),
        Text(state, "green" if ready else "red"),
        report.key if report else "",
        _accuracy(report.accuracy) if report and report.accuracy else build.planned.request.skip,
        decimal(report.size) if report and ready else "",
        f"{report.seconds:.1f}" if report and ready and build.was_started else "",
    )


def _accuracy(report: AccuracyReport) -> str:
    """Return a measured accuracy: `cosine_similarity 0.9987 (at least 0.99) of 200 samples`."""
    bounds = [f"at least {report.minimum:g}"] if report.minimum is not None else []
    bounds += [f"at most {report.maximum:g}"] if report.maximum is not None else []
    return f"{report.metric or 'script'} {report.value:.4g} ({', '.join(bounds)}) of {report.samples} samples"
