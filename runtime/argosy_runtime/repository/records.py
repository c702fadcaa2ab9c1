"""The registry's records of models: versions and their states, as in the repository index."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from argosy_runtime.errors import ServingError, invalid, not_found, unavailable
from argosy_runtime.execution.shadow.comparing import ComparisonWork
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.versions import number_of
from argosy_runtime.scheduling.traffic.split import TrafficSplit

from .folders.layout import ModelFolder, identifier_of
from .preparing import LoadedRevision, PreparedModel
from .serving.adapter_table import AdapterTable
from .serving.version import Destination, ServedVersion
from .traffic.declared import NOTHING_DECLARED, DeclaredTraffic
from .traffic.shadowed import ShadowedVersion, follow_shadow

UNLOADED = "unloaded"
"""Why a version is unavailable that was taken out of service, or never got there though nothing is wrong with it."""


class State(StrEnum):
    """State of a version, with the values of the repository extension."""

    LOADING = "LOADING"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    UNLOADING = "UNLOADING"


@dataclass(slots=True)
class VersionRecord:
    """One version of a model. Its state is not set but follows from its fields, so no code path can forget it:

        served   loads   closings   state
        yes      any     any        READY while it can answer, else UNAVAILABLE
        no       > 0     any        LOADING
        no       0       > 0        UNLOADING
        no       0       0          UNAVAILABLE

    `loads` counts attempts to load it, `closings` versions that have left service and still answer or are being
    released. `why` is the reason while nothing serves, and `label` the kind of error, where a load failed. `revision`
    is what the serving instances were loaded from; an ensemble has none. `failed_tags` are the `metric_tags` of the
    last configuration that did not load, None where no configuration could be read. `without_effect` names settings
    without effect.
    """

    served: ServedVersion | None = None
    revision: LoadedRevision | None = None
    why: str = UNLOADED
    label: str = ""
    loads: int = 0
    closings: int = 0
    failed_loads: int = 0
    failed_tags: Mapping[str, str] | None = None
    without_effect: str = ""

    @property
    def state(self) -> State:
        """State by the table above."""
        if self.served is not None:
            return State.READY if self.served.ready else State.UNAVAILABLE
        if self.loads:
            return State.LOADING
        return State.UNLOADING if self.closings else State.UNAVAILABLE

    @property
    def reason(self) -> str:
        """Reason of the state."""
        if self.served is not None:
            return self.served.problem
        return "" if self.loads or self.closings else self.why

    @property
    def status(self) -> str:
        """Reason of the state as in the index: that of a failed load has its kind before it."""
        reason = self.reason
        return f"{self.label}{reason}" if reason and self.served is None else reason

    @property
    def caution(self) -> str:
        """Reason why it may not be READY for long, or the settings without effect."""
        return "" if self.served is None else self.served.caution or self.without_effect


@dataclass(slots=True)
class ModelRecord:
    """One model that was ever loaded; `requested`: by its own name, not as a step of an ensemble.

    `prepared`, `folder` and `override` are those of the serving versions, or of an ensemble that waits for its
    steps. A load or unload holds `lock`. `leaving` have left service, and still answer. `answering` has the serving
    versions by version as requests name it, "" the one with the highest weight, without weights the latest. `split`
    divides the requests that name no version; it is None where the latest answers all of them. It follows `declared`,
    the division of the newest load: at once, or with the take-over where that declares none. `shadowed` is the stable
    version while requests are copied to a candidate, and `comparisons` compares the answers. `adapters` are loaded into
    every version of it. Once its configuration could be read it is `registered`: until then requests for it are those
    for an unknown model. `source`: the folder of its newest load; `orphaned`: that folder's repository is no longer
    registered, so it leaves the index once it was unloaded.
    """

    name: str
    registered: bool = False
    versions: dict[int, VersionRecord] = field(default_factory=dict)
    answering: dict[str, ServedVersion] = field(default_factory=dict)
    leaving: list[ServedVersion] = field(default_factory=list)
    split: TrafficSplit | None = None
    declared: DeclaredTraffic = NOTHING_DECLARED
    shadowed: ShadowedVersion | None = None
    comparisons: ComparisonWork = field(default_factory=ComparisonWork)
    prepared: PreparedModel | None = None
    folder: ModelFolder | None = None
    override: str | None = None
    desired: bool = False
    requested: bool = False
    failure: str = ""
    adapters: AdapterTable = field(default_factory=AdapterTable)
    namespace: str = ""
    source: Path | None = None
    orphaned: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def identifier(self) -> str:
        """Identifier among the models of all namespaces."""
        return identifier_of(self.namespace, self.name)

    def serving(self) -> Iterator[tuple[int, ServedVersion]]:
        """Yield the versions that answer, ascending."""
        for version in sorted(self.versions):
            served = self.versions[version].served
            if served is not None and served.ready:
                yield version, served

    def in_service(self) -> Iterator[ServedVersion]:
        """Yield the versions in service, able to answer or not."""
        for version in self.versions.values():
            if version.served is not None:
                yield version.served

    @property
    def idle(self) -> bool:
        """True if no version is in service, or on its way there or out of it."""
        if self.serves or self.leaving or self.lock.locked():
            return False
        return all(version.state is State.UNAVAILABLE for version in self.versions.values())

    @property
    def has_left(self) -> bool:
        """True if it was unloaded and no version serves or is on its way."""
        return self.idle and not self.desired

    @property
    def may_leave(self) -> bool:
        """True if no client has loaded it by its name, and none of its versions has open requests."""
        return not self.requested and all(
            not (served.owes or served.running or served.statistics.pending) for served in self.in_service()
        )

    @property
    def serves(self) -> bool:
        """True if any version is in service, able to answer or not."""
        return bool(self.answering)

    @property
    def steps(self) -> frozenset[str]:
        """Models that it runs, where it is an ensemble."""
        return frozenset() if self.prepared is None else self.prepared.steps

    @property
    def settled(self) -> bool:
        """True if every version serves or was unloaded, as readiness of the server asks.

        As in Triton, an unknown model and an ensemble that waits for its steps do not count.
        """
        versions = self.versions.values()
        if any(version.state in (State.LOADING, State.UNLOADING) for version in versions):
            return False
        if not self.registered or self.steps:
            return True
        return bool(versions) and all(v.state is State.READY or v.reason == UNLOADED for v in versions)

    @contextmanager
    def loading(self, versions: Iterable[int]) -> Iterator[None]:
        """Count a load of these versions while the context lasts."""
        loading = [self.versions.setdefault(version, VersionRecord()) for version in versions]
        for record in loading:
            record.loads += 1
        try:
            yield
        finally:
            for record in loading:
                record.loads -= 1

    def put(self, version: int, served: ServedVersion, revision: LoadedRevision | None = None) -> ServedVersion | None:
        """Put a version into service. Return the one that it replaces."""
        self.registered = True
        record = self.versions.setdefault(version, VersionRecord())
        old, record.served, record.revision = record.served, served, revision
        self._note_answering()
        return old

    def take(self, version: int, why: str) -> ServedVersion | None:
        """Take a version out of service. Return what served it."""
        record = self.versions[version]
        old, record.served, record.revision = record.served, None, None
        record.why, record.label = why, ""
        self._note_answering()
        return old

    def fail(self, errors: Mapping[int, ServingError], versions: Collection[int], *, polled: bool = True) -> None:
        """Record a failed load of `versions`. Where nothing serves, the index has no other versions any more.

        `polled` is false where the configuration is at fault, for which the index has no kind.
        """
        self.failure = next((error.message for error in errors.values()), self.failure)
        for version, error in errors.items():
            record = self.versions.setdefault(version, VersionRecord())
            record.why, record.label = error.message, error.label if polled else ""
            record.failed_loads += 1
        if not self.serves:
            for version in [v for v, record in self.versions.items() if v not in versions and not record.closings]:
                del self.versions[version]

    def declare(self, declared: DeclaredTraffic) -> None:
        """Note the division that a load declares, unless a later one has come. `divide` applies it."""
        if declared.number >= self.declared.number:
            self.declared = declared

    def divide(self) -> None:
        """Divide the next requests that name no version as declared; undeclared, the latest version answers them."""
        traffic = self.declared.traffic
        if traffic is None:
            self.split = None
        elif self.split is None:
            self.split = TrafficSplit(self.name, traffic)
        elif self.split.traffic != traffic:
            self.split.follow(traffic)
        self._note_answering()

    def destination(self, request: InferRequest, among: Collection[int] | None = None) -> Destination | None:
        """Return what `split` sends a request without a version to, of all versions or `among` some.

        That is a version, or the stable one with its shadow; None where no listed version can answer. A step of a copy
        for a shadow takes no turn of another request, and is not copied again.
        """
        assert self.split is not None
        if request.is_shadow:
            versions = (v for v in self.split.order if (among is None or v in among) and self._is_ready(v))
            return self.answering.get(str(next(versions, "")))
        takes, answers = self._takes, self._is_ready
        if request.pinned and answers(request.pinned):
            version = request.pinned
        elif among is None:
            version = self.split.choose(request, takes, answers)
        else:
            version = self.split.choose(request, lambda v: v in among and takes(v), lambda v: v in among and answers(v))
        served = self.answering.get(str(version))
        return served if self.shadowed is None or served is not self.shadowed.stable else self.shadowed

    def begun(self, request: InferRequest) -> Destination | None:
        """Return the version at which a request's sequence has begun, in service or leaving it; None without one."""
        if not request.sequence_id or request.sequence_start:
            return None
        for served in (*self.answering.values(), *self.leaving):
            if request.model_version in ("", str(served.version)) and served.continues(request):
                return served if self.shadowed is None or served is not self.shadowed.stable else self.shadowed
        return None

    def _takes(self, version: int) -> bool:
        """Return whether a version takes a request now: it is ready, and not just being restarted."""
        served = self.answering.get(str(version))
        return served is not None and served.ready and (served.takes_batches or served.asleep)

    def _is_ready(self, version: int) -> bool:
        served = self.answering.get(str(version))
        return served is not None and served.ready

    def preferred(self, versions: Collection[int]) -> int:
        """Return the version among some, at least one, that stands for the model: of the highest weight, or latest."""
        if self.split is not None:
            weighted = [version for version in self.split.order if version in versions]
            if weighted:
                return weighted[0]
        return max(versions)

    def _note_answering(self) -> None:
        serving = {version: record.served for version, record in self.versions.items() if record.served is not None}
        self.answering = {str(version): served for version, served in serving.items()}
        if serving:
            self.answering[""] = serving[self.preferred(serving)]
        traffic = None if self.split is None else self.split.traffic
        self.shadowed = follow_shadow(self.shadowed, traffic, self.answering, self.comparisons)


def find_version(records: Mapping[str, ModelRecord], name: str, version: str) -> ServedVersion:
    """Return a version by its number as text; where that is "", the one that stands for the model and is ready.

    Raises ServingError in Triton's words.
    """
    record = records.get(name)
    if record is None or not record.registered:
        why = record.failure if record is not None and record.versions else ""
        raise not_found("; ".join(filter(None, [f"Request for unknown model: '{name}' is not found", why])))
    if not version:
        return _latest(record)
    version_record = record.versions.get(_number(version))
    if version_record is None:
        raise not_found(f"Request for unknown model: '{name}' version {version} is not found")
    if version_record.served is None or not version_record.served.ready:
        text = f"Request for unknown model: '{name}' version {version} is not at ready state"
        raise unavailable("; ".join(filter(None, [text, _why_not(version_record)])))
    return version_record.served


def _latest(record: ModelRecord) -> ServedVersion:
    serving = dict(record.serving())
    if not serving:
        reasons = [_why_not(version_record) for _, version_record in sorted(record.versions.items())]
        text = f"Request for unknown model: '{record.identifier}' has no available versions"
        # A version in service that cannot answer now is restarted by itself: a client may try again.
        kind = unavailable if record.serves else not_found
        raise kind("; ".join([text, *filter(None, reasons)]))
    return serving[record.preferred(serving)]


def _number(version: str) -> int:
    number = number_of(version)
    if number is None:
        raise invalid(
            f"failed to get model version from specified version string '{version}' "
            "(details: stol), version should be an integral value > 0"
        )
    return number


def _why_not(record: VersionRecord) -> str:
    """Return why a version does not answer; "" where it just is not loaded."""
    return "" if record.reason == UNLOADED else record.reason
