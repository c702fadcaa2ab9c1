"""What a model's requests leave out, by its files and parameters, as vLLM reads them."""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.language.defaults import DECLARED, MAX_NEW_TOKENS, declared_defaults

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
    overrides = _overrides(f"{about}: parameter '{OVERRIDES}'", parameters.text(OVERRIDES, "{}"))
    declared = _checked(f"{about}: {SOURCE}", values | overrides)
    for name in [name for name in declared if name in lacking]:
        source = OVERRIDES if name in overrides else SOURCE
        host.log(
            "warning",
            f"model instance '{spec.name}': its {source} has '{name}', which backend '{spec.config.backend}' lacks: "
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


def _overrides(about: str, text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise invalid(f"{about} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise invalid(f"{about} is no JSON object")
    unknown = sorted(values.keys() - DECLARED.keys())
    if unknown:
        raise invalid(f"{about} has '{unknown[0]}', expected {', '.join(DECLARED)}")
    _checked(about, values)
    return values


def _checked(about: str, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return declared_defaults(values)
    except ServingError as error:
        problem = error.message.removeprefix("sampling_parameters: ").replace("'max_tokens'", f"'{MAX_NEW_TOKENS}'")
        raise invalid(f"{about}: {problem}") from None
