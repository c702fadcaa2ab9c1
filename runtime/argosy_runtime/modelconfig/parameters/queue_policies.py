"""Queue policies and priorities of models without dynamic batching.

The parameter `queue_policies` of a configuration: a JSON object with the fields of Triton's `ModelDynamicBatching` that
are about the queue, such as `{"default_queue_policy": {"max_queue_size": 100}}`. Triton has no such parameter: there
only models with dynamic batching have limits, and so merge requests, too.
"""

import json
from typing import Final

from google.protobuf import json_format
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelDynamicBatching

from argosy_runtime.modelconfig.errors import ConfigError

PARAMETER: Final = "queue_policies"
FIELDS: Final = ("priority_levels", "default_priority_level", "default_queue_policy", "priority_queue_policy")


def queue_policies(config: ModelConfig) -> ModelDynamicBatching | None:
    """Return the queue's fields of a model that does not batch dynamically; None without the parameter.

    Raises ConfigError.
    """
    if PARAMETER not in config.parameters:
        return None
    begin = f"parameter '{PARAMETER}' of model '{config.name}'"
    if config.HasField("dynamic_batching"):
        raise ConfigError(f"{begin} is for models without dynamic_batching; set its fields in dynamic_batching")
    if config.HasField("ensemble_scheduling"):
        raise ConfigError(
            f"{begin} has no effect on an ensemble, which has no queue; set it on the models of its steps"
        )
    declared = ModelDynamicBatching()
    try:
        fields = json.loads(config.parameters[PARAMETER].string_value)
        if not isinstance(fields, dict):
            raise ValueError("it is no object")
        json_format.ParseDict(fields, declared)
    except (ValueError, RecursionError, json_format.ParseError) as error:
        raise ConfigError(
            f"{begin} cannot be read: {error}; expected JSON such as "
            '{"default_queue_policy": {"max_queue_size": 100}}'
        ) from None
    other = [field.name for field, _ in declared.ListFields() if field.name not in FIELDS]
    if other:
        raise ConfigError(f"{begin} cannot have '{other[0]}'; its fields are {', '.join(FIELDS)}")
    if config.HasField("sequence_batching") and not _fits_sequences(declared):
        raise ConfigError(
            f"{begin} can have max_queue_size and default_timeout_microseconds of default_queue_policy alone: the "
            "requests of a sequence keep their order, and have timeouts of their own"
        )
    return declared


def _fits_sequences(declared: ModelDynamicBatching) -> bool:
    """Return whether only what sequences can have is set."""
    possible = ModelDynamicBatching()
    if declared.HasField("default_queue_policy"):
        policy = declared.default_queue_policy
        possible.default_queue_policy.max_queue_size = policy.max_queue_size
        possible.default_queue_policy.default_timeout_microseconds = policy.default_timeout_microseconds
    return bool(declared == possible)


__all__ = ["FIELDS", "PARAMETER", "queue_policies"]
