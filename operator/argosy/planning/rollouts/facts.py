"""What the servers of a pool report of a candidate."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.planning.facts import ServerReport
from argosy.rollout.state import FailureFact
from argosy_agent.contract import WAY_OUT, FailureKind, LoadedModel, LoadState, RenderedModel, RenderedRepository
from argosy_runtime.modelconfig.parameters.traffic import version_traffic

_OWN = {
    FailureKind.DIGEST: "Digest",
    FailureKind.FILES: "NoFiles",
    FailureKind.LOAD: "LoadFailed",
    FailureKind.CRASH: "CrashLoop",
}
"""Failures that a revision causes, with their reasons: also that nothing is where it says that its files are, unless
another server has them. Another failure of a download, a device or a server that is killed meanwhile is not its doing,
and it is tried again."""
_NOT_ITS_OWN = "NotLoaded"
_NOT_READY = "ServersNotReady"
Files = tuple[str, str]
"""Where files are, and their digest, if it is declared."""
_THERE = (LoadState.READY, LoadState.LOADING, LoadState.UNLOADING)


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """`ready`: every server that answers for the member has the candidate ready, and there is one; `ready_on_some`: one
    at least has. `loaded`: some server still has it. `failure`: one that it caused itself; `unrelated`: what keeps it
    from loading and is not its own fault.
    """

    ready: bool = False
    ready_on_some: bool = False
    loaded: bool = False
    failure: FailureFact | None = None
    unrelated: FailureFact | None = None


@dataclass(frozen=True, slots=True)
class LoadedRevisions:
    """What a pool's servers have: their `reports`, and the repositories that they last loaded, by server. `divides`:
    whether they can divide requests among versions, which NVIDIA's server cannot.
    """

    reports: tuple[ServerReport, ...] = ()
    repositories: Mapping[str, RenderedRepository] = field(default_factory=dict)
    divides: bool = True

    @classmethod
    def of(cls, reports: Iterable[ServerReport], repositories: Iterable[RenderedRepository]) -> "LoadedRevisions":
        """Return what servers report and have loaded."""
        return cls(tuple(reports), {repository.server: repository for repository in repositories})

    def candidate(
        self, name: str, version: int, files: Files | None = None, former: Collection[str] = ()
    ) -> CandidateFacts:
        """Return the facts of a member's candidate. `files`: its own, if it has some; `former`: messages of failures
        that are no longer about it.
        """
        serving, entries = self._serving(name), self._entries(name, version)
        ready = {r.name for r, entry in entries if entry.lasts and self._is_from(r, name, version, files)}
        failures = [
            fact for fact in self._failures(name, version, on_other_nodes=bool(ready)) if fact.message not in former
        ]
        refused = next((_fact(*pair, _NOT_ITS_OWN) for pair in entries if _is_refused(pair[1], bool(ready))), None)
        answering = {report.name for report in serving if any(entry.answers for entry in _of(report, name))}
        return CandidateFacts(
            ready=bool(answering) and answering <= ready,
            ready_on_some=bool(ready),
            loaded=any(entry.state in _THERE for _, entry in entries),
            failure=next(iter(failures), None),
            unrelated=refused or self._silence(name),
        )

    def failure(self, name: str, version: int) -> FailureFact | None:
        """Return a failure that a version caused; None while a server is ready with it, or none reports one."""
        return None if self.is_ready(name, version) else next(iter(self._failures(name, version)), None)

    def failed(self, name: str, version: int) -> frozenset[str]:
        """Return the messages of the failures that a version caused."""
        return frozenset(fact.message for fact in self._failures(name, version))

    def _failures(self, name: str, version: int, on_other_nodes: bool = False) -> list[FailureFact]:
        """Return the failures that a version caused; `on_other_nodes`: another server has its files, and is ready."""
        return [
            _fact(report, entry, _OWN[entry.failure])
            for report, entry in self._entries(name, version)
            if entry.failure in _OWN and not _is_of_node(entry, on_other_nodes)
        ]

    def _silence(self, name: str) -> FailureFact | None:
        """Return why no server of a member is ready; None while one is, or where none says why it is not."""
        repositories = self.repositories
        own = [one for one in self.reports if one.name in repositories and _named(repositories[one.name], name)]
        reports = own or self.reports
        if any(report.ready for report in reports):
            return None
        return next((FailureFact(_NOT_READY, f"{one.name}: {one.error}") for one in reports if one.error), None)

    def _entries(self, name: str, version: int) -> list[tuple[ServerReport, LoadedModel]]:
        serving = self._serving(name)
        return [(report, entry) for report in serving for entry in _of(report, name) if entry.version == version]

    def steps(self, name: str) -> dict[int, dict[str, int]]:
        """Return the versions of an ensemble that servers have loaded, each with the versions of its steps."""
        pins_of: dict[int, dict[str, int]] = {}
        for repository in self.repositories.values():
            model = _named(repository, name)
            if model is not None:
                names = {one.name: one.declared_name for one in repository.models}
                for version in model.versions:
                    steps = model.steps_of(version).items()
                    pins_of[version] = {names.get(step, step): at for step, at in steps}
        return pins_of

    def is_ready(self, name: str, version: int) -> bool:
        """Return whether some server answers with this version. One that cannot fetch another version reports all of
        the model's as former ones, and answers all the same.
        """
        entries = [entry for report in self._serving(name) for entry in _of(report, name) if entry.version == version]
        return any(entry.lasts or entry.former for entry in entries)

    def undivided(self, name: str, weights: Mapping[int, int]) -> frozenset[str]:
        """Return the servers that answer and do not divide a member's requests by these weights, but could."""
        if not self.divides:
            return frozenset()
        servers = [self.repositories.get(report.name) for report in self._serving(name)]
        loaded = {repository.server: _named(repository, name) for repository in servers if repository is not None}
        return frozenset(
            server
            for server, model in loaded.items()
            if model is not None and dict(_weights(model.config_text)) != dict(weights)
        )

    def _serving(self, name: str) -> list[ServerReport]:
        return [report for report in self.reports if report.ready and _of(report, name)]

    def _is_from(self, report: ServerReport, name: str, version: int, files: Files | None) -> bool:
        """Return whether a server's version has these files, and not those of a former revision with its number."""
        repository = self.repositories.get(report.name)
        loaded = _named(repository, name) if files is not None and repository is not None else None
        source = loaded.versions.get(version) if loaded is not None else None
        return source is None or (source.uri, source.digest) == files


def _of(report: ServerReport, name: str) -> list[LoadedModel]:
    return [entry for entry in report.models if entry.model == name]


def _named(repository: RenderedRepository, name: str) -> RenderedModel | None:
    return next((model for model in repository.models if model.declared_name == name), None)


def _is_of_node(entry: LoadedModel, on_other_nodes: bool) -> bool:
    """Return whether a server's node lacks files that another server has: a mount, for instance."""
    return on_other_nodes and entry.failure is FailureKind.FILES


def _is_refused(entry: LoadedModel, on_other_nodes: bool) -> bool:
    unavailable = entry.state is LoadState.UNAVAILABLE and bool(entry.reason)
    return unavailable and (entry.failure not in _OWN or _is_of_node(entry, on_other_nodes))


def _fact(report: ServerReport, entry: LoadedModel, reason: str) -> FailureFact:
    """Return a failure in its words, without the promise to load it again, which does not hold for a held revision."""
    return FailureFact(reason, f"{report.name}: {entry.reason.replace(f'; {WAY_OUT}', '')}")


@lru_cache(maxsize=4096)
def _weights(config_text: str) -> tuple[tuple[int, int], ...]:
    """Return the weights in the text of a configuration, which was read by a server; none without the parameter."""
    traffic = version_traffic(text_format.Parse(config_text, ModelConfig()))
    return tuple(sorted(traffic.weights.items())) if traffic is not None else ()
