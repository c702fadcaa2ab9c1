"""What the registry knows of each model: its versions and their states, as the repository index tells them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from .layout import ModelFolder
from .preparing import Prepared
from .served import ServedVersion

UNLOADED = "unloaded"
"""Why a version is unavailable that was taken out of service."""


class State(StrEnum):
    """A version's state, in the words of the repository extension."""

    LOADING = "LOADING"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    UNLOADING = "UNLOADING"


@dataclass(slots=True)
class VersionRecord:
    """One version: its state, why it is unavailable, what serves it. `key` changes with all that calls for a reload."""

    state: State
    reason: str = ""
    served: ServedVersion | None = None
    key: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self.served is not None and self.served.ready


@dataclass(slots=True)
class ModelRecord:
    """One model the server has been asked for; `asked_for` by its own name, not as a step of an ensemble."""

    name: str
    versions: dict[int, VersionRecord] = field(default_factory=dict)
    prepared: Prepared | None = None
    folder: ModelFolder | None = None
    override: str | None = None
    wanted: bool = False
    asked_for: bool = False
    failure: str = ""

    def serving(self) -> Iterator[tuple[int, ServedVersion]]:
        """Versions that answer, ascending."""
        for version in sorted(self.versions):
            record = self.versions[version]
            if record.served is not None and record.served.ready:
                yield version, record.served

    @property
    def is_ensemble(self) -> bool:
        """Whether it was last understood to be an ensemble."""
        return self.prepared is not None and self.prepared.is_ensemble

    @property
    def busy(self) -> bool:
        """Whether a version is coming or going."""
        return any(record.state in (State.LOADING, State.UNLOADING) for record in self.versions.values())
