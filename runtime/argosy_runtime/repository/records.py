"""What the registry knows of each model: its versions and their states, as the repository index tells them."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from argosy_runtime.errors import ServingError

from .folders.layout import ModelFolder
from .preparing import LoadedForm, Prepared
from .serving.served import ServedVersion

UNLOADED = "unloaded"
"""Why a version is unavailable that was taken out of service, or never got there though nothing is wrong with it."""


class State(StrEnum):
    """A version's state, in the words of the repository extension."""

    LOADING = "LOADING"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    UNLOADING = "UNLOADING"


@dataclass(slots=True)
class VersionRecord:
    """One version of a model. Its state is not set but follows from what is there, so no way out can forget it:

        served   loads   closings   state
        yes      any     any        READY while it can answer, else UNAVAILABLE
        no       > 0     any        LOADING
        no       0       > 0        UNLOADING
        no       0       0          UNAVAILABLE

    `loads` counts attempts to load it, `closings` what has left service and still answers or still holds something.
    `why` is the reason while nothing serves. `form` is what the instances of what serves were loaded from; an ensemble
    has none.
    """

    served: ServedVersion | None = None
    form: LoadedForm | None = None
    why: str = UNLOADED
    loads: int = 0
    closings: int = 0
    failed_loads: int = 0

    @property
    def state(self) -> State:
        """See above."""
        if self.served is not None:
            return State.READY if self.served.ready else State.UNAVAILABLE
        if self.loads:
            return State.LOADING
        return State.UNLOADING if self.closings else State.UNAVAILABLE

    @property
    def reason(self) -> str:
        """Why it is in this state, as the index tells it."""
        if self.served is not None:
            return self.served.problem
        return "" if self.loads or self.closings else self.why

    @property
    def caution(self) -> str:
        """Why it may not be READY for long."""
        return "" if self.served is None else self.served.caution


@dataclass(slots=True)
class ModelRecord:
    """One model the server has been asked for; `asked_for` by its own name, not as a step of an ensemble.

    `prepared`, `folder` and `override` are those of what serves; of an ensemble that waits for its steps, of that.
    Whoever loads or unloads it holds `lock`. `answering` has what serves by version as requests name it, "" the
    latest. `without_effect` says which settings of what serves have none.
    """

    name: str
    versions: dict[int, VersionRecord] = field(default_factory=dict)
    answering: dict[str, ServedVersion] = field(default_factory=dict)
    prepared: Prepared | None = None
    folder: ModelFolder | None = None
    override: str | None = None
    wanted: bool = False
    asked_for: bool = False
    failure: str = ""
    without_effect: str = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def serving(self) -> Iterator[tuple[int, ServedVersion]]:
        """Versions that answer, ascending."""
        for version in sorted(self.versions):
            served = self.versions[version].served
            if served is not None and served.ready:
                yield version, served

    @property
    def serves(self) -> bool:
        """Whether any version is in service, able to answer or not."""
        return bool(self.answering)

    @property
    def steps(self) -> frozenset[str]:
        """The models that it runs, where it is an ensemble."""
        return frozenset() if self.prepared is None else self.prepared.steps

    @property
    def busy(self) -> bool:
        """Whether a version is coming or going."""
        return any(held.state in (State.LOADING, State.UNLOADING) for held in self.versions.values())

    @contextmanager
    def loading(self, versions: Iterable[int]) -> Iterator[None]:
        """While these are being loaded."""
        held = [self.versions.setdefault(version, VersionRecord()) for version in versions]
        for each in held:
            each.loads += 1
        try:
            yield
        finally:
            for each in held:
                each.loads -= 1

    def put(self, version: int, served: ServedVersion, form: LoadedForm | None = None) -> ServedVersion | None:
        """A version enters service; what it takes the place of."""
        held = self.versions.setdefault(version, VersionRecord())
        old, held.served, held.form = held.served, served, form
        self._note_answering()
        return old

    def take(self, version: int, why: str) -> ServedVersion | None:
        """A version leaves service; what served it."""
        held = self.versions[version]
        old, held.served, held.form, held.why = held.served, None, None, why
        self._note_answering()
        return old

    def fail(self, errors: Mapping[int, ServingError], versions: Collection[int]) -> None:
        """A load of `versions` failed. Where nothing serves, the index tells of no others any more."""
        self.failure = next(iter(errors.values())).message
        for version, error in errors.items():
            held = self.versions.setdefault(version, VersionRecord())
            held.why = error.message
            held.failed_loads += 1
        if not self.serves:
            for version in [v for v, held in self.versions.items() if v not in versions and not held.closings]:
                del self.versions[version]

    def _note_answering(self) -> None:
        serving = {version: held.served for version, held in self.versions.items() if held.served is not None}
        self.answering = {str(version): served for version, served in serving.items()}
        if serving:
            self.answering[""] = serving[max(serving)]
