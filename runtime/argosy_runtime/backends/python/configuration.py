"""Changes of a model's configuration by its `auto_complete_config`."""

import json
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import parse_json, to_json


def as_text(config: ModelConfig) -> str:
    """Return Triton's JSON form of a configuration, which Python models read."""
    return json.dumps(to_json(config))


def merge_completed(config: ModelConfig, completed: dict[str, Any]) -> ModelConfig:
    """Return a copy of `config` with the parts that a model may complete.

    Raises ConfigError where they do not fit the schema.
    """
    parsed = parse_json(json.dumps(completed))
    result = ModelConfig()
    result.CopyFrom(config)
    result.max_batch_size = parsed.max_batch_size
    for field in ("input", "output"):
        result.ClearField(field)
        getattr(result, field).extend(getattr(parsed, field))
    for field in ("dynamic_batching", "model_transaction_policy"):
        if parsed.HasField(field):
            getattr(result, field).CopyFrom(getattr(parsed, field))
    return result
