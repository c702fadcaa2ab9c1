"""config.pbtxt, read into a ModelConfig. The JSON form is in `json_config`."""

import re

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import ConfigError

from .fields import ENUMS, MESSAGES, field_names, hint, value_names
from .json_config import parse_json, to_json

_POSITION = re.compile(r"^\d+:\d+ : ")
_NO_FIELD = re.compile(r'Message type "(?P<type>[^"]+)" has no field named "(?P<name>[^"]+)"')
_NO_VALUE = re.compile(r'Enum type "(?P<type>[^"]+)" has no value named (?P<name>\w+)')


def parse_text(text: str, source: str = "config.pbtxt") -> ModelConfig:
    """Read a config.pbtxt. `source` is named in errors.

    Raises ConfigError with the line, the column and, for an unknown name, the nearest known one.
    """
    try:
        return text_format.Parse(text, ModelConfig())
    except text_format.ParseError as error:
        raise ConfigError(f"failed to read text proto from {source}: {_explain(error)}") from None
    except (UnicodeError, RecursionError, ValueError) as error:
        raise ConfigError(f"failed to read text proto from {source}: {error}") from None


def _explain(error: text_format.ParseError) -> str:
    message = _POSITION.sub("", str(error)).strip()
    where = f"line {error.GetLine()}, column {error.GetColumn()}: " if error.GetLine() is not None else ""
    return f"{where}{message}{_suggestion(message)}"


def _suggestion(message: str) -> str:
    field = _NO_FIELD.search(message)
    if field and field["type"] in MESSAGES:
        return hint(field["name"], field_names(MESSAGES[field["type"]]))
    value = _NO_VALUE.search(message)
    if value and value["type"] in ENUMS:
        return hint(value["name"], value_names(ENUMS[value["type"]]))
    return ""


__all__ = ["parse_json", "parse_text", "to_json"]
