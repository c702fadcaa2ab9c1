"""Fetching what a request names: the model's files, the data, a script."""

from dataclasses import dataclass
from pathlib import Path

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builds import BuildFailure, DataSource
from argosy_agent.transfer.errors import FULL, StorageError, TooLargeError, UnusableError, shown

from .contract import BuildError, Progress

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input: its name for people, its field, and the failures of a build without it."""

    name: str
    field: str
    unavailable: BuildFailure
    invalid: BuildFailure


MODEL = Kind("model", "spec.storageUri", BuildFailure.MODEL_UNAVAILABLE, BuildFailure.MODEL_INVALID)
CALIBRATION = Kind(
    "calibration data",
    "spec.engine.calibration.dataUri",
    BuildFailure.CALIBRATION_INVALID,
    BuildFailure.CALIBRATION_INVALID,
)
DATA = Kind(
    "accuracy data",
    "spec.engine.accuracy.dataUri",
    BuildFailure.ACCURACY_DATA_INVALID,
    BuildFailure.ACCURACY_DATA_INVALID,
)
SCRIPT = Kind(
    "accuracy script",
    "spec.engine.accuracy.script",
    BuildFailure.ACCURACY_DATA_INVALID,
    BuildFailure.ACCURACY_DATA_INVALID,
)


def brought(storage: Storage, kind: Kind, source: DataSource, progress: Progress) -> Path:
    """Return the folder with the files of a source, which must not be written to. Raises BuildError."""

    def report(done: int, total: int) -> None:
        of = f" of {total // MIB}" if total else ""
        progress(100 * done // total if total else -1, f"{kind.name}: {done // MIB}{of} MiB of {shown(source.uri)}")

    try:
        return storage.fetch(source.uri, source.digest, report, source.secret)
    except StorageError as error:
        raise _explained(kind, error) from error


def _explained(kind: Kind, error: StorageError) -> BuildError:
    message = f"{kind.field}: {str(error).replace(MODEL.field, kind.field)}"
    if isinstance(error, UnusableError):
        return BuildError(kind.invalid, message)
    if isinstance(error, TooLargeError) or getattr(error.__cause__, "errno", None) in FULL:
        return BuildError(BuildFailure.DISK_FULL, f"{message}; give the build a larger disk")
    return BuildError(kind.unavailable, message, passes=True)
