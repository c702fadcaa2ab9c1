"""Autofill without a look inside model files: backend from the platform, a file's or the folder's name."""

from collections.abc import Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from .errors import ConfigError
from .modelfiles import AUTOFILLED, ENSEMBLE, FORMATS, ModelFormat


def guess_backend(files: Sequence[str]) -> ModelFormat | None:
    """Return the format of a version folder's files, tried in Triton's order; None where none matches.

    `files` are names relative to the version folder; a directory's ends with "/".
    """
    present = set(files)
    for row in AUTOFILLED:
        if row.filename in present or (row.may_be_directory and f"{row.filename}/" in present):
            return row
    return None


def fill(config: ModelConfig, folder_name: str, files: Sequence[str] = ()) -> None:
    """Fill in the name, backend, platform and default_model_filename that are missing, in place.

    `files` list the first version folder, as for `guess_backend`.
    Raises ConfigError where no backend can be determined.
    """
    if not config.name:
        config.name = folder_name
    if config.platform == ENSEMBLE:
        return
    row = _format_of(config, files)
    if row is not None:
        _fill_from(config, row)
    elif not (config.backend or config.platform or config.default_model_filename):
        _fill_custom(config, folder_name)


def _format_of(config: ModelConfig, files: Sequence[str]) -> ModelFormat | None:
    if config.backend:
        rows = [row for row in FORMATS if row.backend == config.backend]
        named = [row for row in rows if _names(config, row)]
        candidates = named if config.platform else named or rows
        return candidates[0] if candidates else None
    named = [row for row in FORMATS if _names(config, row)]
    if named:
        return named[0]
    if config.platform or config.default_model_filename:
        return None
    return guess_backend(files)


def _names(config: ModelConfig, row: ModelFormat) -> bool:
    if config.platform:
        return config.platform in row.platforms
    return bool(config.default_model_filename == row.filename)


def _fill_from(config: ModelConfig, row: ModelFormat) -> None:
    config.backend = config.backend or row.backend
    config.platform = config.platform or row.platform
    config.default_model_filename = config.default_model_filename or row.filename


def _fill_custom(config: ModelConfig, folder_name: str) -> None:
    _, dot, backend = folder_name.partition(".")
    if not dot:
        raise ConfigError(
            f"Invalid model name: Could not determine backend for model '{folder_name}' with no backend in "
            "model configuration. Expected model name of the form 'model.<backend_name>'."
        )
    config.backend = backend
    config.default_model_filename = f"model.{backend}"
