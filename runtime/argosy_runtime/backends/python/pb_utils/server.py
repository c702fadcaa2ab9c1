"""What the server does for a model: its log and the model repository."""

from enum import IntEnum

from argosy_runtime.backends.contract import IsModelReady, LoadModel, UnloadModel
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


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Load or reload a model of this server.

    `files` maps "file:<version>/<name>" to contents and needs `config`.
    """
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{model_name}', files should be a dictionary of file paths and file contents"
        )
    try:
        next(context.current().host.call(LoadModel(model_name, config or None, dict(files or {}))))
    except ServingError as error:
        raise TritonModelException(f"Failed to load model: {error.message}") from error


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unload a model of this server, with its ensemble's models if asked."""
    try:
        next(context.current().host.call(UnloadModel(model_name, unload_dependents)))
    except ServingError as error:
        raise TritonModelException(f"Failed to unload model: {error.message}") from error


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a model (and this version of it, if given) can answer."""
    _check_version(model_version)
    try:
        return bool(next(context.current().host.call(IsModelReady(model_name, model_version))))
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
