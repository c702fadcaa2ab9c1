"""Builds as people see them."""

from collections.abc import Iterable

from argosy.local.view import BuildRow
from argosy_agent.contract.builds import BuildRequest

from .build import LocalBuild


def row_of(build: LocalBuild) -> BuildRow:
    """Return one build. A line of the tool's gives way to what keeps it from running."""
    report, observed = build.report, build.observed
    return BuildRow(
        name=build.planned.name,
        models=models_of(build.planned.owners),
        engine=engine_of(build.planned.request),
        state=observed.state.value,
        phase=report.phase if report is not None and build.is_running else "",
        percent=report.percent if report is not None else 0,
        line=observed.trouble or (report.line if report is not None else ""),
    )


def engine_of(request: BuildRequest) -> str:
    """`onnxruntime int8 amd64`."""
    return " ".join(each for each in (request.builder, request.precision, request.architecture) if each)


def models_of(owners: Iterable[str]) -> str:
    """Return the bare names of models, given by their identities."""
    return ", ".join(owner.rpartition("/")[2] for owner in owners)
