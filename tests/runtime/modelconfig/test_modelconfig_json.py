import json

import pytest

from argosy_runtime.modelconfig import ConfigError, parse_json, parse_text, to_json

PREFIX = "failed to parse model configuration JSON: "


def test_an_empty_configuration_prints_its_defaults_and_no_unset_message() -> None:
    assert to_json(parse_text("")) == {
        "name": "",
        "platform": "",
        "backend": "",
        "runtime": "",
        "max_batch_size": 0,
        "input": [],
        "output": [],
        "batch_input": [],
        "batch_output": [],
        "instance_group": [],
        "default_model_filename": "",
        "cc_model_filenames": {},
        "metric_tags": {},
        "parameters": {},
        "model_warmup": [],
    }


def test_names_are_snake_case_in_the_schemas_order() -> None:
    assert list(to_json(parse_text("version_policy { all {} } max_batch_size: 4")))[:6] == [
        "name",
        "platform",
        "backend",
        "runtime",
        "version_policy",
        "max_batch_size",
    ]


def test_sixty_four_bit_integers_are_numbers_and_enums_names() -> None:
    config = parse_text(
        """
        input { name: "a" data_type: TYPE_FP32 dims: [ -1, 9007199254740993 ] reshape { shape: [ 2 ] } }
        dynamic_batching {
          priority_levels: 18446744073709551615
          priority_queue_policy { key: 3 value { timeout_action: DELAY default_timeout_microseconds: 5 } }
        }
        """
    )
    revision = to_json(config)
    assert revision["input"][0]["dims"] == [-1, 9007199254740993]
    assert revision["input"][0]["data_type"] == "TYPE_FP32"
    assert revision["input"][0]["reshape"] == {"shape": [2]}
    assert revision["dynamic_batching"]["priority_levels"] == 2**64 - 1
    assert revision["dynamic_batching"]["priority_queue_policy"] == {
        "3": {
            "timeout_action": "DELAY",
            "default_timeout_microseconds": 5,
            "allow_timeout_override": False,
            "max_queue_size": 0,
        }
    }


def test_only_the_chosen_member_of_a_oneof_is_printed() -> None:
    revision = to_json(parse_text("version_policy { latest { num_versions: 0 } }"))
    assert revision["version_policy"] == {"latest": {"num_versions": 0}}


def test_floats_are_the_shortest_that_read_back() -> None:
    config = parse_text("sequence_batching { direct { minimum_slot_utilization: 0.1 } }")
    assert to_json(config)["sequence_batching"]["direct"]["minimum_slot_utilization"] == 0.1


def test_what_clients_send_is_read() -> None:
    sent = {
        "maxBatchSize": "8",
        "input": [{"name": "a", "data_type": "type_fp32", "dims": ["4", -1]}],
        "version_policy": None,
        "parameters": {"k": {"string_value": "v"}},
    }
    assert parse_json(json.dumps(sent)) == parse_text(
        'max_batch_size: 8 input { name: "a" data_type: TYPE_FP32 dims: [ 4, -1 ] } '
        'parameters { key: "k" value { string_value: "v" } }'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"input":[{},{"nme":"a"}]}', 'input[1].nme: no field named "nme" in ModelInput. Did you mean "name"?'),
        ('{"parameters":{"k":{"value":"a"}}}', 'parameters["k"].value: no field named "value" in ModelParameter.'),
        ('{"input":[{"data_type":"TYPE_FLOAT"}]}', 'Did you mean "TYPE_FP32"?'),
        ('{"input":{"name":"a"}}', "input: expected an array, got an object"),
        ('{"input":["a"]}', "input[0]: expected an object, got a string"),
        ('{"input":[null]}', "input[0]: expected an object, got null"),
        ('{"version_policy":3}', "version_policy: expected an object, got a number"),
        ('{"parameters":[]}', "parameters: expected an object, got an array"),
        ('{"name":["a"]}', "name: expected a single value, got an array"),
        ('{"max_batch_size":1,"maxBatchSize":2}', "field 'max_batch_size' is given more than once"),
        ('{"name":3}', "name"),
        ('{"max_batch_size":1.5}', "max_batch_size"),
        ('{"max_batch_size":true}', "max_batch_size"),
        ('{"dynamic_batching":{},"sequence_batching":{}}', "scheduling_choice"),
        ("[]", "the document: expected an object, got an array"),
        ("true", "the document: expected an object, got a boolean"),
        ("{", "line 1 column 2"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_wrong_document_names_the_field(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_json(text)
    assert str(caught.value).startswith(PREFIX)
    assert message in str(caught.value)


def test_a_repeated_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="field 'name' is given more than once"):
        parse_json('{"name":"a","name":"b"}')
