"""What servers report about one model or ensemble, held against what was planned."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from argosy.api import ConditionType, Reason
from argosy.api.status import VersionState, VersionStatus
from argosy.fleet.amounts import counted
from argosy.fleet.facts import LoadedModel, LoadState, ServerReport
from argosy.fleet.transitions import Finding


@dataclass(frozen=True, slots=True)
class Loading:
    """One model's states. `servers` are those that are to hold `version`; `reported` has what each says of
    the model.
    """

    model: str
    version: int
    servers: tuple[str, ...]
    reported: Mapping[str, Sequence[LoadedModel]]
    urls: Mapping[str, str]

    @classmethod
    def of(cls, model: str, version: int, servers: Sequence[str], reports: Mapping[str, ServerReport]) -> "Loading":
        """What the planned servers report; one that is not ready reports nothing."""
        answering = [reports[name] for name in servers if name in reports and reports[name].ready]
        reported = {report.name: [m for m in report.models if m.model == model] for report in answering}
        return cls(model, version, tuple(servers), reported, {r.name: r.url for r in answering if r.url})

    @property
    def available(self) -> tuple[str, ...]:
        """The planned servers on which the version is ready."""
        return tuple(name for name in self.servers if self.state_on(name) is LoadState.READY)

    @property
    def failures(self) -> dict[str, str]:
        """Each planned server that could not load the version, and why."""
        return {
            name: entry.reason
            for name in self.servers
            for entry in self.reported.get(name, ())
            if entry.version == self.version and entry.state is LoadState.UNAVAILABLE and entry.reason
        }

    @property
    def url(self) -> str:
        """Where the model answers: on the first server that has it."""
        return next((f"{self.urls[n]}/v2/models/{self.model}" for n in self.available if n in self.urls), "")

    def state_on(self, server: str) -> LoadState | None:
        """The version's state on a server, or None if it says nothing of it."""
        return next((m.state for m in self.reported.get(server, ()) if m.version == self.version), None)

    def rolling(self, kept: Collection[int] = ()) -> str:
        """In words, the other versions, not in `kept`, that a planned server has not unloaded yet; empty if none."""
        leftovers = sorted(self._present() - {self.version} - set(kept))
        return f"version {', '.join(map(str, leftovers))} is still being unloaded" if leftovers else ""

    def serving(self) -> str:
        """The message of Ready where everything is."""
        return f"version {self.version} serves on {counted(len(self.servers), 'server')}"

    def finding(self) -> Finding:
        """The condition Loaded."""
        kind, done, wanted = ConditionType.LOADED, len(self.available), len(self.servers)
        if not wanted:
            return Finding(kind, False, Reason.PENDING, "it has no place yet")
        so_far = f"version {self.version} is loaded on {done} of {counted(wanted, 'server')}"
        if done == wanted:
            return Finding(kind, True, Reason.LOADED, so_far)
        if self.failures:
            why = "; ".join(f"{server}: {reason}" for server, reason in self.failures.items())
            return Finding(kind, False, Reason.LOAD_FAILED, f"{so_far}; {why}")
        waiting = "; ".join(self._awaited(name) for name in self.servers if name not in self.available)
        reason = Reason.PARTIALLY_LOADED if done else Reason.LOADING
        return Finding(kind, False, reason, f"{so_far}; {waiting}")

    def versions(self) -> tuple[VersionStatus, ...]:
        """Every version that is wanted or still there, with its share of the servers' traffic."""
        shares = _traffic(self.reported)
        return tuple(self._version(number, shares) for number in sorted(self._present() | {self.version}, reverse=True))

    @property
    def active_version(self) -> int | None:
        """The version that most requests reach; of two alike the newer."""
        shares = _traffic(self.reported)
        return max(shares, key=lambda version: (shares[version], version), default=None)

    def _present(self) -> set[int]:
        return {m.version for entries in self.reported.values() for m in entries if m.state in _PRESENT}

    def _awaited(self, server: str) -> str:
        """What a server that does not have the version yet is doing about it."""
        said = next((m.reason for m in self.reported.get(server, ()) if m.version == self.version), "")
        return f"{server}: {said}" if said else f"waiting for {server}"

    def _version(self, number: int, shares: Mapping[int, int]) -> VersionStatus:
        ready = sum(1 for entries in self.reported.values() if _is_ready(entries, number))
        wanted = number == self.version
        return VersionStatus(
            version=number,
            state=self._state(ready) if wanted else _old_state(ready),
            traffic_percent=shares.get(number, 0),
            replicas=len(self.servers) if wanted else 0,
            available_replicas=ready,
            reason="; ".join(f"{server}: {why}" for server, why in self.failures.items()) if wanted else "",
        )

    def _state(self, ready: int) -> VersionState:
        if ready and ready == len(self.servers):
            return VersionState.SERVING
        if self.failures:
            return VersionState.FAILED
        return VersionState.LOADING if self.servers else VersionState.PENDING


_PRESENT = (LoadState.READY, LoadState.LOADING, LoadState.UNLOADING)


def _old_state(ready: int) -> VersionState:
    return VersionState.SERVING if ready else VersionState.DRAINING


def _is_ready(entries: Sequence[LoadedModel], version: int) -> bool:
    return any(entry.version == version and entry.state is LoadState.READY for entry in entries)


def _traffic(reported: Mapping[str, Sequence[LoadedModel]]) -> dict[int, int]:
    """Percent per version: a server answers a request that names no version with the highest one that is
    ready.
    """
    serving = [[m.version for m in entries if m.state is LoadState.READY] for entries in reported.values()]
    highest = sorted(max(versions) for versions in serving if versions)
    if not highest:
        return {}
    shares = {version: 100 * highest.count(version) // len(highest) for version in highest}
    shares[highest[-1]] += 100 - sum(shares.values())
    return shares
