"""What a model's requests leave out, by its files and parameters, as vLLM reads them."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.language.defaults import declared_defaults

FILES: Final = ("generation_config.json", "config.json")
"""The file of the defaults, and the one that old checkpoints have them in."""
SOURCE: Final = "generation_config"
"""vLLM's argument: "auto" for the model's files, "vllm" for none."""
OVERRIDES: Final = "override_generation_config"
"""vLLM's argument: a JSON object, whose values go before those of the files."""
_SOURCES: Final = ("auto", "vllm")


def model_defaults(spec: InstanceSpec, folders: Iterable[Path], lacking: Collection[str], host: Host) -> dict[str, Any]:
    """Return the defaults of a model whose files are in one of these folders.

    Those that its backend is `lacking` are left out, with a warning. Raises ServingError (INVALID_ARG).
    """
    parameters, about = Parameters(spec.config), f"model '{spec.config.name}'"
    source = parameters.text(SOURCE, "auto")
    if source not in _SOURCES:
        raise invalid(f"{about}: parameter '{SOURCE}' is '{source}', expected {' or '.join(_SOURCES)}")
    values = _of_files(folders) if source == "auto" else {}
    try:
        values |= _object(parameters.text(OVERRIDES, "{}"))
        declared = declared_defaults(values)
    except ServingError as error:
        raise invalid(f"{about}: {SOURCE}: {error.message}") from None
    for name in [name for name in declared if name in lacking]:
        host.log(
            "warning",
            f"model instance '{spec.name}': its {SOURCE} has '{name}', which backend '{spec.config.backend}' lacks: "
            "it is not applied",
        )
        del declared[name]
    return declared


def _of_files(folders: Iterable[Path]) -> dict[str, Any]:
    for path in [folder / name for name in FILES for folder in folders]:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(values, dict):
            return values
    return {}


def _object(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise invalid(f"'{OVERRIDES}' is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise invalid(f"'{OVERRIDES}' is no JSON object")
    return values
