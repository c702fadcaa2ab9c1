"""Functions of the server for a model: its log and the model repository."""

from collections.abc import Mapping
from typing import Any

from argosy_runtime.backends.contract import Answer, IsModelReady, LoadModel, UnloadModel
from argosy_runtime.errors import ServingError, invalid

from . import arguments, context
from .errors import Constant, TritonModelException

_UNCHECKED = "Failed to check model readiness"


class Logger:
    """The server's log."""

    class LogLevel(Constant):
        """How urgent a line is."""

        INFO = 0
        WARNING = 1
        ERROR = 2
        VERBOSE = 3

    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: LogLevel = LogLevel.INFO) -> None:
        """Write a line of a level."""
        line = arguments.text("message", message)
        if not isinstance(level, Logger.LogLevel):
            raise TypeError(f"level must be one of Logger's, not {level!r}")
        context.current().host.log(level.name.lower(), line)

    @staticmethod
    def log_info(message: str) -> None:
        """Write a line for information."""
        Logger.log(message, Logger.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        """Write a warning."""
        Logger.log(message, Logger.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        """Write an error."""
        Logger.log(message, Logger.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Write a line for a verbose log alone."""
        Logger.log(message, Logger.VERBOSE)


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Load or reload a model of this server.

    `files` maps "file:<version>/<name>" to contents and needs `config`.
    """
    model_name = arguments.text("model_name", model_name)
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{model_name}', files should be a dictionary of file paths and file contents"
        )
    load = LoadModel(model_name, _config(config), _contents(files or {}))
    _ask(load, "Failed to load model")


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unload a model of this server, with its ensemble's models if asked."""
    name = arguments.text("model_name", model_name)
    _ask(UnloadModel(name, bool(unload_dependents)), "Failed to unload model")


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Return whether a model (and this version of it, if given) can answer."""
    name, version = arguments.text("model_name", model_name), arguments.text("model_version", model_version)
    if version and not (version.isascii() and version.isdigit()):
        reason = (
            f"failed to get model version from specified version string '{version}' (details: stol), "
            "version should be an integral value > 0"
        )
        raise TritonModelException(f"{_UNCHECKED}: {context.current().refusal(invalid(reason))}")
    return bool(_ask(IsModelReady(name, version), _UNCHECKED))


def _ask(what: LoadModel | UnloadModel | IsModelReady, failure: str) -> Answer:
    """Return the server's answer. Raises TritonModelException."""
    running = context.current()
    try:
        return next(running.host.call(what))
    except ServingError as error:
        raise TritonModelException(f"{failure}: {running.refusal(error)}") from error


def _config(config: Any) -> str | None:
    return arguments.text("config", config) or None if config is not None else None


def _contents(files: Mapping[Any, Any]) -> dict[str, bytes]:
    """Return names and contents as bytes; text as UTF-8. Raises TypeError."""
    contents = {}
    for name, content in files.items():
        if not isinstance(content, bytes | bytearray | memoryview | str):
            raise TypeError(f"files['{name}'] must be bytes, not {type(content).__name__}")
        contents[arguments.text("a name in files", name)] = (
            content.encode() if isinstance(content, str) else bytes(content)
        )
    return contents


def get_model_dir() -> str:
    """Return the folder of the running model's version, where `model.py` lies."""
    return str(context.current().version_dir)
