"""What servers report about one model or ensemble, held against what was planned."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from argosy.api import ConditionType, Reason
from argosy.api.status import VersionState, VersionStatus
from argosy.planning.amounts import counted, listed
from argosy.planning.facts import ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.state import Note
from argosy.status.conditions import Finding, bounded
from argosy_agent.contract import FailureKind, LoadedModel, LoadState

MOST_DIGESTS = 10
"""How many digests of a version are told."""


@dataclass(frozen=True, slots=True)
class Loading:
    """One model's states. `servers` are to hold the `declared` versions; `reported` has what each server, also one
    that the model leaves, says of it. `outdated` are those that have it in another form than the declared one. `notes`
    say what a server waits for. Clients know it by its `served_name`.
    """

    model: str
    declared: frozenset[int]
    servers: tuple[str, ...]
    reported: Mapping[str, Sequence[LoadedModel]]
    reports: Mapping[str, ServerReport]
    notes: Mapping[str, Note] = field(default_factory=dict)
    outdated: frozenset[str] = frozenset()
    served_name: str = ""

    @classmethod
    def of(
        cls,
        model: str,
        declared: Iterable[int],
        servers: Sequence[str],
        observed: Observed,
        notes: Mapping[Binding, Note] | None = None,
        served_name: str = "",
    ) -> "Loading":
        """Return what servers report; one that is not ready reports nothing. `notes` are by server and model."""
        said = observed.on(model)
        mine = {name: notes[name, model] for name in servers if (name, model) in notes} if notes else {}
        outdated = frozenset(name for name in servers if (name, model) in observed.outdated)
        return cls(
            model,
            frozenset(declared),
            tuple(servers),
            said,
            {name: observed.reports[name] for name in said},
            mine,
            outdated,
            served_name or model,
        )

    @property
    def loaded(self) -> tuple[str, ...]:
        """The planned servers on which every declared version is ready, in its declared form."""
        return tuple(name for name in self.servers if all(self._has(name, version) for version in self.declared))

    @property
    def available(self) -> tuple[str, ...]:
        """Those of them that requests for the model reach."""
        return tuple(name for name in self.loaded if self._is_reached(name))

    @property
    def former(self) -> tuple[str, ...]:
        """Servers that are not planned any more, and still answer."""
        planned = set(self.servers)
        answering = (
            name for name, said in self.reported.items() if name not in planned and any(each.answers for each in said)
        )
        return tuple(sorted(answering))

    @property
    def failures(self) -> dict[str, str]:
        """Each planned server that could not load a declared version, and why."""
        return self._failures(self.declared)

    @property
    def url(self) -> str:
        """Where the model answers: on the first server that has it, be it one that it leaves."""
        urls = (report.url for report in self._answering())
        return next((f"{url}/v2/models/{self.served_name}" for url in urls if url), "")

    @property
    def grpc_address(self) -> str:
        """Where it answers over gRPC, `host:port`."""
        return next((report.grpc_address for report in self._answering() if report.grpc_address), "")

    def _answering(self) -> Iterator[ServerReport]:
        """The servers that have it, those that it leaves last."""
        return (self.reports[name] for name in (*self.available, *self.former) if name in self.reports)

    def rolling(self, kept: Collection[int] = (), retains: bool = False) -> str:
        """In words, the other versions that a server has not unloaded yet; empty if none.

        Those in `kept` may stay, and all where the model `retains` versions, unless they are above the declared ones:
        such a version would answer the requests that name none.
        """
        most = max(self.declared, default=0)
        stay = {each for each in self._present() if each < most and (retains or each in kept)}
        leftovers = sorted(self._present() - self.declared - stay)
        return f"version {', '.join(map(str, leftovers))} is still being unloaded" if leftovers else ""

    def serving(self) -> str:
        """Return the message of Ready where everything is."""
        verb = "serve" if len(self.declared) > 1 else "serves"
        return f"{self._named} {verb} on {counted(len(self.servers), 'server')}"

    def finding(self) -> Finding:
        """Return the condition Loaded."""
        kind, done, wanted = ConditionType.LOADED, len(self.loaded), len(self.servers)
        if not wanted:
            still = f"; it is still served by {listed(self.former, separator=', ')}" if self.former else ""
            return Finding(kind, False, Reason.PENDING, f"it has no place yet{still}")
        verb = "are" if len(self.declared) > 1 else "is"
        so_far = f"{self._named} {verb} loaded on {done} of {counted(wanted, 'server')}"
        if done == wanted:
            return Finding(kind, True, Reason.LOADED, so_far)
        if self.failures:
            why = listed(f"{server}: {reason}" for server, reason in self.failures.items())
            return Finding(kind, False, self._failure(), f"{so_far}; {why}{self._meanwhile()}")
        stuck = next((note.message for note in self.notes.values() if note.stuck), "")
        if stuck:
            return Finding(kind, False, Reason.NO_FREE_MEMORY, f"{so_far}; {stuck}{self._meanwhile()}")
        loaded = set(self.loaded)
        waiting = listed(self._awaited(name) for name in self.servers if name not in loaded)
        reason = Reason.PARTIALLY_LOADED if done else Reason.LOADING
        return Finding(kind, False, reason, f"{so_far}; {waiting}{self._meanwhile()}")

    def versions(self) -> tuple[VersionStatus, ...]:
        """Return every version that is wanted or still there, with its share of the servers that it answers on."""
        shares = self._traffic()
        return tuple(self._version(number, shares) for number in sorted(self._present() | self.declared, reverse=True))

    @property
    def active_version(self) -> int | None:
        """The version that answers requests which name none on most servers; of two alike the newer."""
        shares = self._traffic()
        return max(shares, key=lambda version: (shares[version], version), default=None)

    @property
    def _named(self) -> str:
        many = "versions" if len(self.declared) > 1 else "version"
        return f"{many} {', '.join(map(str, sorted(self.declared)))}"

    def _has(self, server: str, version: int) -> bool:
        """Whether a planned server has the version ready, in its declared form."""
        return server not in self.outdated and self._says(server, version)

    def _says(self, server: str, version: int) -> bool:
        return _is_ready(self.reported.get(server, ()), version)

    def _traffic(self) -> dict[int, int]:
        """Percent per version of the servers that requests reach: one that names no version is answered by the highest
        that is ready.
        """
        serving = [
            [each.version for each in entries if each.state is LoadState.READY]
            for server, entries in self.reported.items()
            if self._is_reached(server)
        ]
        highest = sorted(max(versions) for versions in serving if versions)
        if not highest:
            return {}
        shares = {version: 100 * highest.count(version) // len(highest) for version in highest}
        shares[highest[-1]] += 100 - sum(shares.values())
        return shares

    def _is_reached(self, server: str) -> bool:
        report = self.reports.get(server)
        return report is not None and report.takes_requests and self.model in report.routes

    def _failures(self, versions: Collection[int]) -> dict[str, str]:
        return {
            name: _told(entry)
            for name in self.servers
            for entry in self.reported.get(name, ())
            if entry.version in versions and _has_failed(entry)
        }

    def _present(self) -> set[int]:
        return {m.version for entries in self.reported.values() for m in entries if m.state in _PRESENT}

    def _failure(self) -> Reason:
        """At which step the first of the failures happened."""
        first = next(iter(self.failures))
        kind = next(
            (e.failure for e in self.reported[first] if e.version in self.declared and e.failure), FailureKind.LOAD
        )
        return _FAILURES[kind]

    def _meanwhile(self) -> str:
        """Who serves until the planned servers do."""
        return f"; until then it is served by {listed(self.former, separator=', ')}" if self.former else ""

    def _awaited(self, server: str) -> str:
        """What a server that does not have the version yet is doing about it."""
        if server in self.notes:
            return f"{server}: {self.notes[server].message}"
        found = (_told(m) for m in self.reported.get(server, ()) if m.version in self.declared)
        said = next((words for words in found if words), "")
        if not said and server in self.outdated:
            said = "the declared form is being loaded; the former one goes on serving"
        return f"{server}: {said}" if said else f"waiting for {server}"

    def _version(self, number: int, shares: Mapping[int, int]) -> VersionStatus:
        wanted = number in self.declared
        old = sum(_is_ready(entries, number) for entries in self.reported.values())
        # a server that lacks another declared version is outdated as a whole, and has this one all the same
        have = self._has if len(self.declared) == 1 else self._says
        ready = sum(have(name, number) and self._is_reached(name) for name in self.servers) if wanted else old
        failures = self._failures({number}) if wanted else {}
        return VersionStatus(
            version=number,
            state=self._state(ready, bool(failures)) if wanted else _old_state(ready),
            traffic_percent=shares.get(number, 0),
            replicas=len(self.servers) if wanted else 0,
            available_replicas=ready,
            reason=bounded(listed(f"{server}: {why}" for server, why in failures.items())),
            digests=self._digests(number),
        )

    def _digests(self, number: int) -> tuple[str, ...]:
        said = (each for entries in self.reported.values() for each in entries if each.version == number)
        return tuple(sorted({each.digest for each in said if each.digest}))[:MOST_DIGESTS]

    def _state(self, ready: int, failed: bool) -> VersionState:
        if ready and ready == len(self.servers):
            return VersionState.SERVING
        if failed:
            return VersionState.FAILED
        return VersionState.LOADING if self.servers else VersionState.PENDING


def _told(entry: LoadedModel) -> str:
    """Why a version is not as it should be."""
    still = " (its former files and config go on serving)" if entry.former else ""
    return f"{entry.reason}{still}"


_FAILURES = {
    FailureKind.DOWNLOAD: Reason.DOWNLOAD_FAILED,
    FailureKind.DIGEST: Reason.DIGEST_MISMATCH,
    FailureKind.LOAD: Reason.LOAD_FAILED,
    FailureKind.CRASH: Reason.CRASH_LOOP,
    FailureKind.DEVICE: Reason.DEVICE_ERROR,
}
_PRESENT = (LoadState.READY, LoadState.LOADING, LoadState.UNLOADING)


def _old_state(ready: int) -> VersionState:
    return VersionState.SERVING if ready else VersionState.DRAINING


def _is_ready(entries: Sequence[LoadedModel], version: int) -> bool:
    return any(entry.version == version and entry.lasts for entry in entries)


def _has_failed(entry: LoadedModel) -> bool:
    crashes = entry.failure is FailureKind.CRASH
    return bool(entry.reason) and (crashes or entry.state is LoadState.UNAVAILABLE)
