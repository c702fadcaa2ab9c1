"""What one pool's servers say and hold, by server and by model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from argosy.fleet.facts import ServerReport
from argosy_runtime.agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource

Seat = tuple[str, str]
"""A server, and a model or ensemble there."""
_NONE: Mapping[str, Sequence[LoadedModel]] = {}


@dataclass(frozen=True, slots=True)
class Observed:
    """One pool. `said`: each model's versions, by model and server that answers.

    By server and name: `loaded`, what each server last loaded, and `served`, what it had ready when it was last heard
    of. `known`: by model, every version that a server of the pool has or had, and where it comes from. `behind`: where
    what is loaded is not what is declared by now, be it of the same version.
    """

    reports: Mapping[str, ServerReport] = field(default_factory=dict)
    said: Mapping[str, Mapping[str, Sequence[LoadedModel]]] = field(default_factory=dict)
    loaded: Mapping[str, Mapping[str, RenderedModel]] = field(default_factory=dict)
    served: Mapping[str, Mapping[str, RenderedModel]] = field(default_factory=dict)
    known: Mapping[str, Mapping[int, VersionSource]] = field(default_factory=dict)
    behind: frozenset[Seat] = frozenset()

    @classmethod
    def of(
        cls,
        reports: Iterable[ServerReport],
        loaded: Iterable[RenderedRepository] = (),
        served: Iterable[RenderedRepository] = (),
    ) -> "Observed":
        """Reports and repositories in order of what is asked of them. A server that is not ready says nothing."""
        by_server = {report.name: report for report in reports}
        said: dict[str, dict[str, list[LoadedModel]]] = {}
        for report in by_server.values():
            for each in report.models if report.ready else ():
                said.setdefault(each.model, {}).setdefault(report.name, []).append(each)
        had, has = tuple(served), tuple(loaded)
        return cls(by_server, said, _by_server(has), _by_server(had), _sources((*had, *has)))

    def on(self, name: str) -> Mapping[str, Sequence[LoadedModel]]:
        """What each server that answers says of a model or ensemble."""
        return self.said.get(name, _NONE)

    def is_ready(self, server: str, name: str, version: int) -> bool:
        """Whether this version is ready on the server, in the form that it should have."""
        if (server, name) in self.behind:
            return False
        said = self.on(name).get(server, ())
        return any(each.version == version and each.state is LoadState.READY for each in said)

    def serves(self, server: str, name: str) -> bool:
        """Whether requests that name no version are answered by the server."""
        return any(each.answers for each in self.on(name).get(server, ()))

    def reachable(self, server: str, name: str) -> bool:
        """Whether requests come there, and are answered."""
        report = self.reports.get(server)
        return report is not None and report.takes_requests and name in report.routes and self.serves(server, name)

    def routed(self, server: str, name: str) -> bool:
        """Whether requests may still come there, be it that the Pod is not Ready now."""
        report = self.reports.get(server)
        return report is not None and name in report.routes

    def answers(self, server: str) -> bool:
        """Whether the server itself is ready."""
        report = self.reports.get(server)
        return report is not None and report.ready

    def held(self, server: str) -> Mapping[str, RenderedModel]:
        """What the server last loaded, by name."""
        return self.loaded.get(server, {})

    def unserved(self, name: str) -> bool:
        """Whether no server answers for it."""
        return not any(each.answers for said in self.on(name).values() for each in said)


def _by_server(repositories: Iterable[RenderedRepository]) -> dict[str, dict[str, RenderedModel]]:
    return {each.server: {model.name: model for model in each.models} for each in repositories}


def _sources(repositories: Iterable[RenderedRepository]) -> dict[str, dict[int, VersionSource]]:
    """Each model's versions; of what several say the last counts."""
    found: dict[str, dict[int, VersionSource]] = {}
    for repository in repositories:
        for model in repository.models:
            found.setdefault(model.name, {}).update(model.versions)
    return found
