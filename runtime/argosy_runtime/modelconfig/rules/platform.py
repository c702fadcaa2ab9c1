"""Platform, backend and the maximum batch size."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.platforms import ENSEMBLE, platforms_of


def check_platform(config: ModelConfig) -> Iterator[Violation]:
    """A backend is known, an ensemble has none, and a known backend goes with one of its platforms."""
    if not config.backend and config.platform != ENSEMBLE:
        yield Violation("platform", f"unexpected platform type '{config.platform}' for {config.name}")
    if config.backend and config.platform == ENSEMBLE:
        message = f"Ensemble model '{config.name}' must have platform type '{ENSEMBLE}' and empty backend type"
        yield Violation("backend", message)
        return
    allowed = platforms_of(config.backend)
    if config.platform and allowed and config.platform not in allowed:
        message = f"unexpected 'platform' and 'backend' pair, got:{config.platform}, {config.backend}"
        yield Violation("platform", message)


def check_batch_size(config: ModelConfig) -> Iterator[Violation]:
    """max_batch_size is 0 (no batching) or more."""
    if config.max_batch_size < 0:
        message = f"'max_batch_size' must be non-negative value for {config.name}"
        yield Violation("max_batch_size", message)
