"""A model's name."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation


def check_name(config: ModelConfig) -> Iterator[Violation]:
    """A name is there; whether it may be a folder's is `check_model_name`."""
    if not config.name:
        yield Violation("name", "model configuration must specify 'name'")


def check_model_name(name: str) -> str | None:
    """What is wrong with a name a client asks to load: it becomes a folder's name. None where nothing is."""
    trimmed = name.strip()
    if not trimmed:
        return "Model name cannot be empty. Please enter a valid name to deploy."
    if trimmed in (".", "..") or "/" in trimmed or "\x00" in trimmed:
        return f"invalid model name '{name}', model name must not contain path traversal characters"
    return None
