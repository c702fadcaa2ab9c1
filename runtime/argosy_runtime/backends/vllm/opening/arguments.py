"""The arguments of an engine: `model.json`, or a folder of Hugging Face's, and parameters of the configuration."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import invalid, unavailable
from argosy_runtime.language.chat import TRUST_REQUESTS

MODEL_JSON: Final = "model.json"
_FOREIGN: Final = frozenset(
    (
        *("adapters", "chat", "environment", "gpu_device_ids", "model_key", TRUST_REQUESTS, "variants"),
        "TENSORRT_LLM_VERSION",
    )
)
"""Parameters of the configuration that others read."""
_TRUE: Final = ("true", "1")
_SWITCHES: Final = ("enable_lora", "enable_prefix_caching", "enforce_eager", "trust_remote_code", "disable_log_stats")
"""Arguments that clients of Triton's backend write as strings, as well."""


def engine_arguments(config: ModelConfig, version_dir: Path) -> dict[str, Any]:
    """Return the arguments by the names of `AsyncEngineArgs`. Which names exist is for vLLM to say (`unknown`).

    Raises ServingError: UNAVAILABLE where the folder has no model, INVALID_ARG for what cannot be read.
    """
    arguments = _declared(config.name, version_dir)
    for name, text in _parameters(config).items():
        arguments[name] = _value(text)
    for name in _SWITCHES:
        if isinstance(arguments.get(name), str):
            arguments[name] = arguments[name].lower() in _TRUE
    return arguments


def is_pooling(arguments: Mapping[str, Any]) -> bool:
    """Return whether the model makes embeddings instead of text."""
    return arguments.get("runner") == "pooling" or arguments.get("task") in ("embed", "embedding")


def parts(arguments: Mapping[str, Any]) -> int:
    """Return the number of devices that the model is split over."""
    return int(arguments.get("tensor_parallel_size", 1)) * int(arguments.get("pipeline_parallel_size", 1))


def split_unknown(
    arguments: Mapping[str, Any], fields: Iterable[str], parameters: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments that vLLM has, and the names of the others, all of which are `parameters`.

    `fields` are those of its `AsyncEngineArgs`. Raises ServingError (INVALID_ARG) for an unknown one of `model.json`.
    """
    supported = set(fields)
    unknown = [name for name in arguments if name not in supported]
    of_file = [name for name in unknown if name not in set(parameters)]
    if of_file:
        raise invalid(f"{MODEL_JSON}: this vLLM has no argument '{of_file[0]}'")
    return {name: value for name, value in arguments.items() if name in supported}, unknown


def parameter_names(config: ModelConfig) -> list[str]:
    """Return the names of the configuration's parameters that are arguments of the engine, if it has them."""
    return list(_parameters(config))


def _parameters(config: ModelConfig) -> dict[str, str]:
    """Return the parameters in lower case, as arguments of vLLM are; Triton's own are in upper case."""
    values = Parameters(config).starting_with("")
    return {name: text for name, text in values.items() if name.islower() and name not in _FOREIGN}


def _declared(model: str, version_dir: Path) -> dict[str, Any]:
    path = version_dir / MODEL_JSON
    if not path.is_file():
        if (version_dir / "config.json").is_file():
            return {"model": str(version_dir)}
        raise unavailable(f"unable to find '{path}' or '{version_dir / 'config.json'}' for model '{model}'")
    arguments = read_object(model, path)
    name = arguments.setdefault("model", str(version_dir))
    for field in ("model", "tokenizer"):
        value = arguments.get(field)
        if isinstance(value, str) and (version_dir / value).is_dir():
            arguments[field] = str(version_dir / value)
    if not isinstance(name, str):
        raise invalid(f"model '{model}': 'model' in '{path}' is not a text")
    return arguments


def read_object(model: str, path: Path) -> dict[str, Any]:
    """Return the JSON object of a file. Raises ServingError (INVALID_ARG)."""
    try:
        value = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise invalid(f"model '{model}': '{path}' cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise invalid(f"model '{model}': '{path}' is not a JSON object")
    return value


def _value(text: str) -> Any:
    """Return the value of a parameter: JSON, or else the text itself."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
