"""Builds as they are shown."""

from collections.abc import Iterable

from argosy.local.views.rows import BuildRow
from argosy_agent.contract.builds import BuildRequest

from .build import LocalBuild


def row_of(build: LocalBuild) -> BuildRow:
    """Return the row of a build. Its line is the reason why it does not run, if there is one, or the builder's last."""
    report, observed = build.report, build.observed
    return BuildRow(
        name=build.planned.name,
        models=models_of(build.planned.owners),
        engine=engine_of(build.planned.request),
        state=observed.state.value,
        phase=report.phase if report is not None and build.is_running else "",
        percent=report.percent if report is not None else 0,
        line=observed.error or (report.line if report is not None else ""),
    )


def engine_of(request: BuildRequest) -> str:
    """Return a name for people, such as `onnxruntime int8 amd64`."""
    return " ".join(filter(None, (request.builder, request.precision, request.architecture)))


def models_of(owners: Iterable[str]) -> str:
    """Return the names of the models with these identities."""
    return ", ".join(owner.rpartition("/")[2] for owner in owners)
