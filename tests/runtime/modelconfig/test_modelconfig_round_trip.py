"""Any configuration the schema allows survives text and JSON unchanged."""

import json
from typing import Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.properties import examples
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import normalize, parse_json, parse_text, to_json

INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def scalars(field: Any) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type in INTEGERS:
        low, high = INTEGERS[field.type]
        return st.integers(low, high)
    by_type = {
        FieldDescriptor.TYPE_BOOL: st.booleans(),
        FieldDescriptor.TYPE_STRING: STRINGS,
        FieldDescriptor.TYPE_FLOAT: st.floats(width=32, allow_nan=False).map(lambda f: float(np.float32(f))),
        FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False),
    }
    return by_type[field.type]


def fill(draw: st.DrawFn, message: Message) -> None:
    fields: list[FieldDescriptor] = list(message.DESCRIPTOR.fields)
    chosen = draw(st.lists(st.sampled_from(fields), unique_by=lambda f: f.name, max_size=4)) if fields else []
    for field in chosen:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            fill_map(draw, getattr(message, field.name), field.message_type)
        elif field.message_type is None:
            value = draw(st.lists(scalars(field), max_size=3) if field.is_repeated else scalars(field))
            if field.is_repeated:
                getattr(message, field.name).extend(value)
            else:
                setattr(message, field.name, value)
        elif field.is_repeated:
            for _ in range(draw(st.integers(0, 2))):
                fill(draw, getattr(message, field.name).add())
        else:
            getattr(message, field.name).SetInParent()
            fill(draw, getattr(message, field.name))


def fill_map(draw: st.DrawFn, mapping: Any, entry: Any) -> None:
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for name in draw(st.lists(scalars(key), unique=True, max_size=2)):
        if value.message_type is None:
            mapping[name] = draw(scalars(value))
        else:
            fill(draw, mapping[name])


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    config = ModelConfig()
    fill(draw, config)
    return config


SETTINGS = examples(150, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(configs())
def test_text_round_trip(config: ModelConfig) -> None:
    assert parse_text(text_format.MessageToString(config)) == config


@SETTINGS
@given(configs())
def test_json_round_trip(config: ModelConfig) -> None:
    assert parse_json(json.dumps(to_json(config))) == config


@SETTINGS
@given(configs())
def test_normalizing_twice_changes_nothing_and_never_the_original(config: ModelConfig) -> None:
    config.backend = "python"
    for group in config.instance_group:
        group.count = min(group.count, 4)
    before = config.SerializeToString(deterministic=True)
    once = normalize(config, "m", gpus=[0, 1])
    assert config.SerializeToString(deterministic=True) == before
    assert normalize(once, "m", gpus=[0, 1]) == once
