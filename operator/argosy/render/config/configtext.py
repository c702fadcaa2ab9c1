"""A model's config.pbtxt as text."""

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig


def config_text(config: ModelConfig) -> str:
    """Return `config` as the text of a config.pbtxt.

    The same message always gives the same bytes: maps are in key order.
    """
    text: str = text_format.MessageToString(config, use_index_order=True, use_short_repeated_primitives=True)
    return text
