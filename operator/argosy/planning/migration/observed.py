"""The observation of one pool: what its servers report and have loaded, by server and by model."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.planning.facts import ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.revisions import ModelRevision
from argosy_agent.contract import FailureKind, LoadedModel, VersionSource

RevisionsByServer = Mapping[str, Mapping[str, ModelRevision]]
"""Forms by server and name."""
_NONE: Mapping[str, Sequence[LoadedModel]] = {}


@dataclass(frozen=True, slots=True)
class Observed:
    """The observed state of one pool. `reported`: versions by model and answering server.

    `loaded`: each server's last loaded repository; `served`: the part that was ready at its last report. `sources`: by
    model, every version that a server of the pool has or had, with its source. `outdated`: bindings whose loaded
    revision differs from the declared one, even with the same version. `drain_since`: when each draining binding was
    removed from the routes.
    """

    reports: Mapping[str, ServerReport] = field(default_factory=dict)
    reported: Mapping[str, Mapping[str, Sequence[LoadedModel]]] = field(default_factory=dict)
    loaded: RevisionsByServer = field(default_factory=dict)
    served: RevisionsByServer = field(default_factory=dict)
    sources: Mapping[str, Mapping[int, VersionSource]] = field(default_factory=dict)
    outdated: frozenset[Binding] = frozenset()
    drain_since: Mapping[Binding, datetime] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        reports: Iterable[ServerReport],
        loaded: RevisionsByServer | None = None,
        served: RevisionsByServer | None = None,
        drain_since: Mapping[Binding, datetime] | None = None,
    ) -> "Observed":
        """Return the observation of one pool. Reports of servers that are not ready say nothing of models."""
        by_server = {report.name: report for report in reports}
        reported: dict[str, dict[str, list[LoadedModel]]] = {}
        for report in by_server.values():
            for model in report.models if report.ready else ():
                reported.setdefault(model.model, {}).setdefault(report.name, []).append(model)
        has, had = loaded or {}, served or {}
        return cls(by_server, reported, has, had, _sources(had, has), drain_since=drain_since or {})

    def without_former(self, names: Collection[str]) -> "Observed":
        """Return the same, as if no version of these models had ever been anywhere, nor an ensemble that runs them."""

        def gone(revision: ModelRevision) -> bool:
            return revision.name in names or not revision.step_names.isdisjoint(names)

        loaded, served = (
            {
                server: {name: revision for name, revision in revisions.items() if not gone(revision)}
                for server, revisions in by_server.items()
            }
            for by_server in (self.loaded, self.served)
        )
        return replace(
            self, loaded=loaded, served=served, sources={n: v for n, v in self.sources.items() if n not in names}
        )

    def on(self, name: str) -> Mapping[str, Sequence[LoadedModel]]:
        """Return what each server that answers reports of a model or ensemble."""
        return self.reported.get(name, _NONE)

    def has_ready(self, server: str, name: str, version: int) -> bool:
        """Return whether the server reports this version ready, in any revision, and not in a crash loop."""
        reported = self.on(name).get(server, ())
        return any(model.version == version and model.lasts for model in reported)

    def crashes(self, name: str, versions: Collection[int]) -> bool:
        """Return whether one of these versions is in a crash loop, or meets device errors, on any server."""
        reported = (model for on_server in self.on(name).values() for model in on_server)
        return any(model.version in versions and model.failure in _CRASHES for model in reported)

    def is_ready(self, server: str, name: str, version: int) -> bool:
        """Return whether this version is ready on the server, in the revision that it should have."""
        return (server, name) not in self.outdated and self.has_ready(server, name, version)

    def serves(self, server: str, name: str) -> bool:
        """Return whether requests that name no version are answered by the server."""
        return any(model.answers for model in self.on(name).get(server, ()))

    def reachable(self, server: str, name: str) -> bool:
        """Return whether requests come there and are answered."""
        report = self.reports.get(server)
        return report is not None and report.takes_requests and name in report.routes and self.serves(server, name)

    def routed(self, server: str, name: str) -> bool:
        """Return whether requests may still come there, even if the Pod is not Ready now."""
        report = self.reports.get(server)
        return report is not None and name in report.routes

    def loaded_on(self, server: str) -> Mapping[str, ModelRevision]:
        """Return what the server last loaded, by name."""
        return self.loaded.get(server, {})

    def with_users(self, name: str, server: str) -> set[str]:
        """Return a model, and the ensembles loaded on the server that run it, be it through others."""
        users, loaded = {name}, self.loaded_on(server)
        while more := {revision.name for revision in loaded.values() if users & revision.step_names} - users:
            users |= more
        return users

    def bindings_with_users(self, binding: Binding) -> set[Binding]:
        """Return a binding of a model, and those of the ensembles that run it there."""
        server, name = binding
        return {(server, user) for user in self.with_users(name, server)}

    def unserved(self, name: str) -> bool:
        """Return whether no server answers for it."""
        return not any(model.answers for reported in self.on(name).values() for model in reported)


_CRASHES = (FailureKind.CRASH, FailureKind.DEVICE)


def _sources(*pools: RevisionsByServer) -> dict[str, dict[int, VersionSource]]:
    """Return each model's versions; of several sources the last counts."""
    sources: dict[str, dict[int, VersionSource]] = {}
    for by_server in pools:
        for revisions in by_server.values():
            for revision in revisions.values():
                sources.setdefault(revision.name, {}).update(revision.versions)
    return sources
