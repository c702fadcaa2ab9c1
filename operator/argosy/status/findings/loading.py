"""Findings of loading: what servers report about a model or ensemble, compared with the plan."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from argosy.api import ConditionType, Reason
from argosy.api.status import VersionState, VersionStatus
from argosy.planning.amounts import listed, quantity
from argosy.planning.facts import ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.state import Note
from argosy.status.conditions import Finding, bounded
from argosy_agent.contract import FailureKind, LoadedModel, LoadState

MOST_DIGESTS = 10
"""The most digests of a version that a status lists."""


@dataclass(frozen=True)
class Loading:
    """The states of one model. `servers`: those that should have the `declared` versions. `reported`: the states by
    server, including servers that the model leaves. `outdated`: servers with another revision than the declared one.
    `notes`: what each server waits for. `served_name`: the model's name for clients. In a rollout: `tried` are versions
    that servers should have in addition, `stable` is the one that was promoted, and `traffic` the percentage of
    requests that each version was sent, empty where none was measured.
    """

    model: str
    declared: frozenset[int]
    servers: tuple[str, ...]
    reported: Mapping[str, Sequence[LoadedModel]]
    reports: Mapping[str, ServerReport]
    notes: Mapping[str, Note] = field(default_factory=dict)
    outdated: frozenset[str] = frozenset()
    served_name: str = ""
    tried: frozenset[int] = frozenset()
    stable: int | None = None
    traffic: Mapping[int, int] = field(default_factory=dict)

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
        reported = observed.on(model)
        mine = {name: notes[name, model] for name in servers if (name, model) in notes} if notes else {}
        outdated = frozenset(name for name in servers if (name, model) in observed.outdated)
        return cls(
            model,
            frozenset(declared),
            tuple(servers),
            reported,
            {name: observed.reports[name] for name in reported},
            mine,
            outdated,
            served_name or model,
        )

    def proving(self, stable: int | None, tried: frozenset[int], traffic: Mapping[int, int]) -> "Loading":
        """Return the same in a rollout. What keeps a tried version from loading is no failure of a declared one that
        goes on answering, though its server, which does not have all of it, reports it as a former one.
        """
        reported = {server: _apart(entries, tried) for server, entries in self.reported.items()}
        return replace(self, stable=stable, tried=tried, traffic=traffic, reported=reported)

    @cached_property
    def loaded(self) -> tuple[str, ...]:
        """The planned servers on which every declared version is ready, in its declared revision."""
        return tuple(name for name in self.servers if all(self._has(name, version) for version in self.declared))

    @cached_property
    def available(self) -> tuple[str, ...]:
        """Those of them that requests for the model reach."""
        return tuple(name for name in self.loaded if self._is_reached(name))

    @cached_property
    def former(self) -> tuple[str, ...]:
        """Servers that are not planned any more, and still answer."""
        planned = set(self.servers)
        answering = (
            name
            for name, entries in self.reported.items()
            if name not in planned and any(entry.answers for entry in entries)
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
        """Return the servers that have the model; those that it leaves are last."""
        return (self.reports[name] for name in (*self.available, *self.former) if name in self.reports)

    def rolling(self, pinned: Collection[int] = (), retains: bool = False) -> str:
        """Return the other versions that a server has not unloaded yet, in words; empty if there are none.

        Those in `pinned` may stay, and all where the model `retains` versions, unless they are above the declared ones:
        such a version would answer the requests that name none.
        """
        if self.stable is not None:
            return ""  # the rollout has its own finding
        most = max(self.declared, default=0)
        stay = {version for version in self._present() if version < most and (retains or version in pinned)}
        leftovers = sorted(self._present() - self.declared - stay)
        return f"version {', '.join(map(str, leftovers))} is still being unloaded" if leftovers else ""

    def serving(self) -> str:
        """Return the message of Ready where everything is."""
        verb = "serve" if len(self.declared) > 1 else "serves"
        return f"{self._named} {verb} on {quantity(len(self.servers), 'server')}"

    def finding(self) -> Finding:
        """Return the condition Loaded."""
        kind, done, desired = ConditionType.LOADED, len(self.loaded), len(self.servers)
        if not desired:
            still = f"; it is still served by {listed(self.former, separator=', ')}" if self.former else ""
            return Finding(kind, False, Reason.PENDING, f"it has no place yet{still}")
        verb = "are" if len(self.declared) > 1 else "is"
        so_far = f"{self._named} {verb} loaded on {done} of {quantity(desired, 'server')}"
        if done == desired:
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
        shares = self._traffic() or self._unmeasured()
        return max(shares, key=lambda version: (shares[version], version), default=None)

    @property
    def _named(self) -> str:
        many = "versions" if len(self.declared) > 1 else "version"
        return f"{many} {', '.join(map(str, sorted(self.declared)))}"

    def _has(self, server: str, version: int) -> bool:
        """Return whether a planned server has the version ready, in its declared revision."""
        return server not in self.outdated and self._says(server, version)

    def _says(self, server: str, version: int) -> bool:
        return _is_ready(self.reported.get(server, ()), version)

    def _traffic(self) -> dict[int, int]:
        """Return the percentage of requests per version in a rollout, as measured, and otherwise of reached servers: a
        request that names no version is answered by the highest ready one.
        """
        if self.stable is not None:
            return dict(self.traffic) if any(map(self._is_reached, self.reported)) else {}
        serving = [
            [entry.version for entry in entries if entry.state is LoadState.READY]
            for server, entries in self.reported.items()
            if self._is_reached(server)
        ]
        highest = sorted(max(versions) for versions in serving if versions)
        if not highest:
            return {}
        shares = {version: 100 * highest.count(version) // len(highest) for version in highest}
        shares[highest[-1]] += 100 - sum(shares.values())
        return shares

    def _unmeasured(self) -> dict[int, int]:
        """Return the stable version, which answers while nothing was measured."""
        return {self.stable: 100} if self.stable is not None and any(map(self._is_reached, self.reported)) else {}

    def _is_reached(self, server: str) -> bool:
        report = self.reports.get(server)
        return report is not None and report.takes_requests and self.model in report.routes

    def _failures(self, versions: Collection[int]) -> dict[str, str]:
        return {
            name: _message_of(entry)
            for name in self.servers
            for entry in self.reported.get(name, ())
            if entry.version in versions and _has_failed(entry)
        }

    def _present(self) -> set[int]:
        return {m.version for entries in self.reported.values() for m in entries if m.state in _PRESENT}

    def _failure(self) -> Reason:
        """Return the reason of the first failure by the step at which it happened."""
        first = next(iter(self.failures))
        kind = next(
            (e.failure for e in self.reported[first] if e.version in self.declared and e.failure), FailureKind.LOAD
        )
        return _FAILURES[kind]

    def _meanwhile(self) -> str:
        """Return what serves until the planned servers do, as a clause."""
        return f"; until then it is served by {listed(self.former, separator=', ')}" if self.former else ""

    def _awaited(self, server: str) -> str:
        """Return the progress of a server that does not have the version yet."""
        if server in self.notes:
            return f"{server}: {self.notes[server].message}"
        messages = (_message_of(m) for m in self.reported.get(server, ()) if m.version in self.declared)
        message = next((words for words in messages if words), "")
        if not message and server in self.outdated:
            message = "the declared revision is being loaded; the former one goes on serving"
        return f"{server}: {message}" if message else f"waiting for {server}"

    def _version(self, number: int, shares: Mapping[int, int]) -> VersionStatus:
        is_declared = number in self.declared | self.tried
        old = sum(_is_ready(entries, number) for entries in self.reported.values())
        # a server that lacks another declared version is outdated as a whole, and has this one all the same
        have = self._has if self.declared == {number} else self._says
        ready = sum(have(name, number) and self._is_reached(name) for name in self.servers) if is_declared else old
        failures = self._failures({number}) if is_declared else {}
        return VersionStatus(
            version=number,
            state=self._state(ready, bool(failures)) if is_declared else _old_state(ready),
            traffic_percent=shares.get(number, 0) if shares or self.stable is None else None,
            replicas=len(self.servers) if is_declared else 0,
            available_replicas=ready,
            reason=bounded(listed(f"{server}: {why}" for server, why in failures.items())),
            digests=self._digests(number),
        )

    def _digests(self, number: int) -> tuple[str, ...]:
        matching = (entry for entries in self.reported.values() for entry in entries if entry.version == number)
        return tuple(sorted({entry.digest for entry in matching if entry.digest}))[:MOST_DIGESTS]

    def _state(self, ready: int, failed: bool) -> VersionState:
        if ready and ready == len(self.servers):
            return VersionState.SERVING
        if failed:
            return VersionState.FAILED
        return VersionState.LOADING if self.servers else VersionState.PENDING


def _message_of(entry: LoadedModel) -> str:
    """Return why a version is not as it should be."""
    still = " (its former files and config go on serving)" if entry.former else ""
    return f"{entry.reason}{still}"


_FAILURES = {
    FailureKind.DOWNLOAD: Reason.DOWNLOAD_FAILED,
    FailureKind.DIGEST: Reason.DIGEST_MISMATCH,
    FailureKind.FILES: Reason.DOWNLOAD_FAILED,
    FailureKind.LOAD: Reason.LOAD_FAILED,
    FailureKind.SERVER: Reason.LOAD_FAILED,
    FailureKind.CRASH: Reason.CRASH_LOOP,
    FailureKind.DEVICE: Reason.DEVICE_ERROR,
}
_PRESENT = (LoadState.READY, LoadState.LOADING, LoadState.UNLOADING)


def _old_state(ready: int) -> VersionState:
    return VersionState.SERVING if ready else VersionState.DRAINING


def _is_ready(entries: Sequence[LoadedModel], version: int) -> bool:
    return any(entry.version == version and entry.lasts for entry in entries)


def _apart(entries: Sequence[LoadedModel], tried: Collection[int]) -> tuple[LoadedModel, ...]:
    """Return the entries of a model on one server, with the failures of tried versions at these alone."""
    reasons = {entry.reason for entry in entries if entry.version in tried and _has_failed(entry)}
    return tuple(
        replace(entry, state=LoadState.READY, reason="", failure=None, former=False)
        if entry.former and entry.version not in tried and entry.reason in reasons
        else entry
        for entry in entries
    )


def _has_failed(entry: LoadedModel) -> bool:
    crashes = entry.failure is FailureKind.CRASH
    return bool(entry.reason) and (crashes or entry.state is LoadState.UNAVAILABLE)
