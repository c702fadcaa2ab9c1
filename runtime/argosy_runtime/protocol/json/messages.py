"""Protobuf messages as the JSON that Triton's HTTP endpoints answer with.

Keys are the fields' own names, integers of every width are numbers, scalars are printed also where they are
zero.
"""

from typing import Any

from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb

from .text import dumps


def message_document(message: Message, fill: bool = False) -> dict[str, Any]:
    """Return a message as a JSON object. Unset messages within it are left out, or printed empty where `fill` is
    true.
    """
    document: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            document[field.name] = _repeated(field, value, fill)
        elif field.has_presence:
            if message.HasField(field.name) or (fill and field.message_type and not field.containing_oneof):
                document[field.name] = _single(field, value, fill)
        else:
            document[field.name] = _single(field, value, fill)
    return document


def _repeated(field: Any, value: Any, fill: bool) -> Any:
    if field.message_type and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name["value"]
        return {str(key): _single(entry, value[key], fill) for key in value}
    return [_single(field, item, fill) for item in value]


def _single(field: Any, value: Any, fill: bool) -> Any:
    if field.message_type is not None:
        return message_document(value, fill)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named else value
    return value.decode("latin-1") if isinstance(value, bytes) else value


def message_json(message: Message) -> bytes:
    """Return server metadata, model metadata or a model's configuration."""
    return dumps(message_document(message))


def statistics_json(statistics: pb.ModelStatisticsResponse) -> bytes:
    """Return the statistics of models, with every counter."""
    return dumps(message_document(statistics, fill=True))


def index_json(index: pb.RepositoryIndexResponse) -> bytes:
    """Return the repository's models. Empty fields are left out: a model never loaded has its name alone."""
    return dumps(
        [
            {
                key: value
                for key, value in (
                    ("name", model.name),
                    ("version", model.version),
                    ("state", model.state),
                    ("reason", model.reason),
                )
                if value or key == "name"
            }
            for model in index.models
        ]
    )
