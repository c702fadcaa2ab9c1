"""Triton's defaults, filled in where a configuration leaves fields out."""

from collections.abc import Sequence

from tritonclient.grpc.model_config_pb2 import ModelConfig

from . import autofill
from .instances import fill_instance_groups
from .versions import policy_of

SEQUENCE_IDLE_MICROSECONDS = 1_000_000


def normalize(
    config: ModelConfig, folder_name: str, files: Sequence[str] = (), gpus: Sequence[int] | None = None
) -> ModelConfig:
    """Return a copy with every default filled in; normalizing twice changes nothing.

    `files` list the first version folder (a directory's name ends with "/"). `gpus` are the machine's ordinals;
    None where they are unknown, which leaves kind, count and GPUs of the instance groups open. Raises ConfigError
    where no backend can be determined.
    """
    full = ModelConfig()
    full.CopyFrom(config)
    autofill.fill(full, folder_name, files)
    if not full.HasField("version_policy"):
        full.version_policy.CopyFrom(policy_of(full))
    _fill_batching(full)
    _fill_pinned_memory(full)
    fill_instance_groups(full, gpus)
    return full


def _fill_batching(config: ModelConfig) -> None:
    scheduler = config.WhichOneof("scheduling_choice")
    if scheduler == "dynamic_batching":
        _fill_preferred(config, config.dynamic_batching)
    if scheduler == "sequence_batching":
        sequence = config.sequence_batching
        sequence.max_sequence_idle_microseconds = sequence.max_sequence_idle_microseconds or SEQUENCE_IDLE_MICROSECONDS
        if sequence.HasField("oldest"):
            _fill_preferred(config, sequence.oldest)


def _fill_preferred(config: ModelConfig, batching: ModelConfig) -> None:
    if not batching.preferred_batch_size and config.max_batch_size > 0:
        batching.preferred_batch_size.append(config.max_batch_size)


def _fill_pinned_memory(config: ModelConfig) -> None:
    if config.HasField("ensemble_scheduling"):
        return
    for name in ("input_pinned_memory", "output_pinned_memory"):
        if not config.optimization.HasField(name):
            getattr(config.optimization, name).enable = True
