"""`argosy up` where its output is no terminal: a line for each change."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from argosy.api.problems import Problem
from argosy.local.rates import Rate
from argosy.local.views.rows import NOT_TAKEN_OVER, BuildRow, Row, ServerRow


class LineView:
    """Plain lines, one for each change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: dict[str, str] = {}

    def problems(self, problems: Sequence[Problem]) -> None:
        """Print each problem on a line of its own, or that the manifests are valid again."""
        self._print(NOT_TAKEN_OVER if problems else "all manifests are valid again")
        for problem in problems:
            self._print(str(problem))

    def note(self, text: str) -> None:
        """Print the line."""
        self._print(text)

    def update(
        self,
        rows: Sequence[Row],
        servers: Sequence[ServerRow],
        rates: Mapping[str, Rate],
        builds: Sequence[BuildRow] = (),
    ) -> None:
        """Print a line for each resource, server and build whose state changed since it was last printed."""
        for server in servers:
            state = "ready" if server.live else "starting"
            addresses = f"http {server.url}, grpc {server.grpc}, metrics {server.metrics}"
            self._change(f"server {server.name}", server.error or f"server {server.name}: {state} ({addresses})")
        for build in builds:
            self._change(f"build {build.name}", build.summary)
        for row in rows:
            self._change(f"{row.kind} {row.name}", row.summary)
            if row.address:
                self._change(f"address {row.kind} {row.name}", f"{row.kind} {row.name}: {row.address}")
            if row.scaled:
                self._change(f"scaling {row.kind} {row.name}", f"{row.kind} {row.name}: {row.scaled}")

    def close(self) -> None:
        """Do nothing: lines need no closing."""

    def _change(self, key: str, line: str) -> None:
        if self._printed.get(key) != line:
            self._printed[key] = line
            self._print(line)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
