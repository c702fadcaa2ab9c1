"""What the server does for a model: its log, custom metrics, and the model repository."""

import weakref
from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any

from argosy_runtime.backends.contract import Host, MetricFamilySpec
from argosy_runtime.errors import ServingError

from . import context
from .errors import TritonModelException


class Level(IntEnum):
    """How urgent a line is."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    """The server's log."""

    LogLevel = Level
    INFO = Level.INFO
    WARNING = Level.WARNING
    ERROR = Level.ERROR
    VERBOSE = Level.VERBOSE

    @staticmethod
    def log(message: str, level: Level = Level.INFO) -> None:
        """A line of the given level."""
        context.current().host.log(Level(level).name.lower(), message)

    @staticmethod
    def log_info(message: str) -> None:
        """A line for information."""
        Logger.log(message, Level.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        """A warning."""
        Logger.log(message, Level.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        """An error."""
        Logger.log(message, Level.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        """A line only a verbose log keeps."""
        Logger.log(message, Level.VERBOSE)


class MetricKind(Enum):
    """What a family's metrics are."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric:
    """One metric of a family. It leaves /metrics when the model lets go of it."""

    def __init__(self, host: Host, family: MetricFamilySpec, labels: dict[str, str]) -> None:
        self._host = host
        self._family = family
        self._labels = labels
        self._act("create", 0.0, "Error when creating Metric: ")
        weakref.finalize(self, _remove, host, family, labels).atexit = False

    def increment(self, value: float) -> None:
        """Add `value`. Counters take no negative values, histograms none at all."""
        self._act("increment", value, "Failed to increment metric value: ")

    def set(self, value: float) -> None:
        """Set a gauge."""
        self._act("set", value, "Failed to set metric value: ")

    def observe(self, value: float) -> None:
        """Count `value` in a histogram."""
        self._act("observe", value, "Failed to observe metric value: ")

    def value(self) -> float:
        """The value of a counter or gauge."""
        return self._act("value", 0.0, "Failed to get metric value: ")

    def _act(self, action: str, value: float, failure: str) -> float:
        try:
            return self._host.metric(self._family, self._labels, action, float(value))
        except ServingError as error:
            raise TritonModelException(failure + error.message) from error


def _remove(host: Host, family: MetricFamilySpec, labels: dict[str, str]) -> None:
    try:
        host.metric(family, labels, "remove", 0.0)
    except (ServingError, OSError) as error:
        host.log("verbose", f"metric '{family.name}' could not be removed: {error}")


class MetricFamily:
    """Metrics of one name and kind that differ in their labels."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        self._name = name
        self._description = description
        self._kind = MetricKind(kind)
        self._host = context.current().host

    def Metric(  # noqa: N802 - Triton's name for it
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        """The family's metric with these labels.

        A histogram needs `buckets` (upper bounds), the others refuse them.
        """
        if labels is not None and not isinstance(labels, Mapping):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        spec = MetricFamilySpec(self._name, self._description, self._kind.value, self._bounds(buckets))
        return Metric(self._host, spec, {str(key): str(value) for key, value in (labels or {}).items()})

    def _bounds(self, buckets: Any) -> tuple[float, ...]:
        if buckets is None:
            if self._kind is MetricKind.HISTOGRAM:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
            return ()
        if not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if self._kind is not MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        return tuple(float(bound) for bound in buckets)


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Load or reload a model of this server.

    `files` maps "file:<version>/<name>" to contents and needs `config`.
    """
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{model_name}', files should be a dictionary of file paths and file contents"
        )
    try:
        context.current().host.load_model(model_name, config or None, dict(files or {}))
    except ServingError as error:
        raise TritonModelException(f"Failed to load model: {error.message}") from error


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unload a model of this server, with its ensemble's models if asked."""
    try:
        context.current().host.unload_model(model_name, unload_dependents)
    except ServingError as error:
        raise TritonModelException(f"Failed to unload model: {error.message}") from error


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a model (and this version of it, if given) can answer."""
    _check_version(model_version)
    try:
        return context.current().host.is_model_ready(model_name, model_version)
    except ServingError as error:
        raise TritonModelException(f"Failed to check model readiness: {error.message}") from error


def _check_version(version: str) -> None:
    if version and not (version.isascii() and version.isdigit()):
        raise TritonModelException(
            f"failed to get model version from specified version string '{version}', "
            "version should be an integral value > 0"
        )


def get_model_dir() -> str:
    """The folder of the running model's version, where `model.py` lies."""
    return str(context.current().version_dir)
