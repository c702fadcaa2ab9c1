"""Sequence batching: the strategies' own settings."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation

_PATH = "sequence_batching"


def check_sequence_batching(config: ModelConfig) -> Iterator[Violation]:
    """No response cache beside it, `oldest` prefers possible sizes, `direct` a share of the slots up to 1."""
    if not config.HasField("sequence_batching"):
        return
    if config.response_cache.enable:
        yield Violation(
            "response_cache.enable",
            f"Response Cache does not currently support model {config.name} with sequence batching "
            "scheduler. Please disable the response cache.",
        )
    strategy = config.sequence_batching.WhichOneof("strategy_choice")
    if strategy == "oldest":
        yield from _check_oldest(config)
    if strategy == "direct":
        yield from _check_direct(config)


def _check_oldest(config: ModelConfig) -> Iterator[Violation]:
    oldest = config.sequence_batching.oldest
    for index, size in enumerate(oldest.preferred_batch_size):
        path = f"{_PATH}.oldest.preferred_batch_size[{index}]"
        if size <= 0:
            message = f"sequence batching preferred batch size must be positive for {config.name}"
            yield Violation(path, message)
        elif size > config.max_batch_size:
            message = f"sequence batching preferred batch size must be <= max batch size for {config.name}"
            yield Violation(path, message)


def _check_direct(config: ModelConfig) -> Iterator[Violation]:
    # `not (… <= …)` so that NaN is refused as well.
    if not 0.0 <= config.sequence_batching.direct.minimum_slot_utilization <= 1.0:
        yield Violation(
            f"{_PATH}.direct.minimum_slot_utilization",
            f"sequence batching minimum slot utilization must be in range (0.0, 1.0] for {config.name}",
        )
