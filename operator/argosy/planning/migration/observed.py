"""What one pool's servers say and hold, by server and by model."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.planning.facts import ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.revisions import Form
from argosy_agent.contract import FailureKind, LoadedModel, VersionSource

Held = Mapping[str, Mapping[str, Form]]
"""Forms by server and name."""
_NONE: Mapping[str, Sequence[LoadedModel]] = {}


@dataclass(frozen=True, slots=True)
class Observed:
    """One pool. `said`: each model's versions, by model and server that answers.

    `loaded` is what each server last loaded, and `served` what it had ready when it was last heard of. `known`: by
    model, every version that a server of the pool has or had, and where it comes from. `outdated`: where what is loaded
    is not what is declared by now, be it of the same version. `drain_since`: when each binding that drains was taken
    from the routes.
    """

    reports: Mapping[str, ServerReport] = field(default_factory=dict)
    said: Mapping[str, Mapping[str, Sequence[LoadedModel]]] = field(default_factory=dict)
    loaded: Held = field(default_factory=dict)
    served: Held = field(default_factory=dict)
    known: Mapping[str, Mapping[int, VersionSource]] = field(default_factory=dict)
    outdated: frozenset[Binding] = frozenset()
    drain_since: Mapping[Binding, datetime] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        reports: Iterable[ServerReport],
        loaded: Held | None = None,
        served: Held | None = None,
        drain_since: Mapping[Binding, datetime] | None = None,
    ) -> "Observed":
        """Return the observation of one pool. Reports of servers that are not ready say nothing of models."""
        by_server = {report.name: report for report in reports}
        said: dict[str, dict[str, list[LoadedModel]]] = {}
        for report in by_server.values():
            for each in report.models if report.ready else ():
                said.setdefault(each.model, {}).setdefault(report.name, []).append(each)
        has, had = loaded or {}, served or {}
        return cls(by_server, said, has, had, _sources(had, has), drain_since=drain_since or {})

    def without_former(self, names: Collection[str]) -> "Observed":
        """Return the same, as if no version of these models had ever been anywhere, nor an ensemble that runs them."""

        def gone(form: Form) -> bool:
            return form.name in names or not form.steps.keys().isdisjoint(names)

        loaded, served = (
            {server: {name: form for name, form in forms.items() if not gone(form)} for server, forms in held.items()}
            for held in (self.loaded, self.served)
        )
        return replace(
            self, loaded=loaded, served=served, known={n: v for n, v in self.known.items() if n not in names}
        )

    def on(self, name: str) -> Mapping[str, Sequence[LoadedModel]]:
        """Return what each server that answers says of a model or ensemble."""
        return self.said.get(name, _NONE)

    def has_ready(self, server: str, name: str, version: int) -> bool:
        """Return whether the server says that this version is ready, in whatever form, and not in a crash loop."""
        said = self.on(name).get(server, ())
        return any(each.version == version and each.lasts for each in said)

    def crashes(self, name: str, versions: Collection[int]) -> bool:
        """Return whether one of these versions is in a crash loop, or meets device errors, on any server."""
        said = (each for on_server in self.on(name).values() for each in on_server)
        return any(each.version in versions and each.failure in _CRASHES for each in said)

    def is_ready(self, server: str, name: str, version: int) -> bool:
        """Return whether this version is ready on the server, in the form that it should have."""
        return (server, name) not in self.outdated and self.has_ready(server, name, version)

    def serves(self, server: str, name: str) -> bool:
        """Return whether requests that name no version are answered by the server."""
        return any(each.answers for each in self.on(name).get(server, ()))

    def reachable(self, server: str, name: str) -> bool:
        """Return whether requests come there, and are answered."""
        report = self.reports.get(server)
        return report is not None and report.takes_requests and name in report.routes and self.serves(server, name)

    def routed(self, server: str, name: str) -> bool:
        """Return whether requests may still come there, be it that the Pod is not Ready now."""
        report = self.reports.get(server)
        return report is not None and name in report.routes

    def held(self, server: str) -> Mapping[str, Form]:
        """Return what the server last loaded, by name."""
        return self.loaded.get(server, {})

    def unserved(self, name: str) -> bool:
        """Return whether no server answers for it."""
        return not any(each.answers for said in self.on(name).values() for each in said)


_CRASHES = (FailureKind.CRASH, FailureKind.DEVICE)


def _sources(*held: Held) -> dict[str, dict[int, VersionSource]]:
    """Each model's versions; of what several say the last counts."""
    found: dict[str, dict[int, VersionSource]] = {}
    for by_server in held:
        for forms in by_server.values():
            for form in forms.values():
                found.setdefault(form.name, {}).update(form.versions)
    return found
