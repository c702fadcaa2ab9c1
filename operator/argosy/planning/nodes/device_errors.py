"""Device errors that servers report, by GPU: the recent ones, with their models."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from argosy.planning.facts import CurrentServer, Device, ServerReport
from argosy_agent.contract import FailureKind, LoadedModel

WINDOW = timedelta(minutes=10)
"""For how long an error counts. An agent tries a load again after a minute at most."""


@dataclass(frozen=True, slots=True)
class DeviceError:
    """A load, or an execution, of a model on a server that met a device error; `words` are the server's."""

    at: datetime
    server: str
    model: str
    words: str


@dataclass(frozen=True, slots=True)
class DeviceErrors:
    """What rounds of one pool saw of them.

    `recent`: the errors of the last ten minutes, the oldest first. `seen`: by server and model the attempt that was
    last reported, so that each counts once. `serving`: the GPUs on which a model is ready.
    """

    recent: Mapping[Device, tuple[DeviceError, ...]] = field(default_factory=dict)
    seen: Mapping[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    serving: frozenset[Device] = frozenset()

    def after(self, servers: Iterable[CurrentServer], reports: Iterable[ServerReport], now: datetime) -> "DeviceErrors":
        """Return the errors after a round at `now`. Expired reports add nothing."""
        by_name = {server.name: server for server in servers}
        heard = [(by_name[report.name], report) for report in reports if report.name in by_name]
        names = {server.name for server, _ in heard}
        seen = {key: attempt for key, attempt in self.seen.items() if key[0] in names}
        recent = {device: [e for e in errors if now - e.at < WINDOW] for device, errors in self.recent.items()}
        for server, report in heard:
            for model in _failing(report) if not report.expired else ():
                attempt = model.attempts, model.reason
                if seen.get((server.name, model.model)) != attempt:
                    seen[server.name, model.model] = attempt
                    for device in _devices(server, model.model):
                        recent.setdefault(device, []).append(DeviceError(now, server.name, model.model, model.reason))
        return DeviceErrors(
            {device: tuple(errors) for device, errors in recent.items() if errors}, seen, frozenset(_serving(heard))
        )

    def without(self, devices: Iterable[Device]) -> "DeviceErrors":
        """Return the same without what was counted on these GPUs."""
        gone = set(devices)
        return DeviceErrors({d: e for d, e in self.recent.items() if d not in gone}, self.seen, self.serving)


def failing(servers: Iterable[CurrentServer], reports: Iterable[ServerReport]) -> set[Device]:
    """Return the GPUs of one pool's servers on which a model reports a device error."""
    failing = {report.name: _failing(report) for report in reports}
    return {
        device
        for server in servers
        for model in failing.get(server.name, ())
        for device in _devices(server, model.model)
    }


def _failing(report: ServerReport) -> tuple[LoadedModel, ...]:
    """Return each model that reports a device error, with the version that was tried most."""
    failures: dict[str, LoadedModel] = {}
    for model in report.models:
        if model.failure is FailureKind.DEVICE:
            before = failures.get(model.model)
            if before is None or (before.attempts, before.version) < (model.attempts, model.version):
                failures[model.model] = model
    return tuple(failures.values())


def _serving(heard: Iterable[tuple[CurrentServer, ServerReport]]) -> Iterator[Device]:
    for server, report in heard:
        for model in report.models if report.ready and not report.expired else ():
            if model.lasts:
                yield from _devices(server, model.model)


def _devices(server: CurrentServer, model: str) -> list[Device]:
    """Return the GPUs of a model on a server; none of one that is not placed there any more."""
    return [(server.node, gpu) for gpu in server.placed.get(model, ())]
