"""The parameter `version_traffic`: what it may say, its text and its messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import ConfigError, check_structure
from argosy_runtime.modelconfig.parameters.traffic import (
    MILLIONTHS,
    PARAMETER,
    OutputTolerance,
    Shadow,
    Sticky,
    VersionTraffic,
    check_traffic,
    traffic_text,
    version_traffic,
)


def config_of(text: str) -> ModelConfig:
    config = ModelConfig(name="fraud")
    config.parameters[PARAMETER].string_value = text
    return config


def test_a_model_without_the_parameter_has_no_division():
    assert version_traffic(ModelConfig(name="fraud")) is None


def test_the_parameter_is_json_in_camel_case():
    text = """{"weights": {"3": 0, "1": 950000, "2": 50000}, "sticky": [{"header": "x-user"}, {"parameter": "user"}],
    "shadow": {"version": 3, "share": 100000, "maxInFlight": 4,
    "tolerances": [{"output": "score", "absolute": 0.5, "relative": 0.1},
    {"output": "rank", "top1Agreement": 0.99}]}}"""
    assert version_traffic(config_of(text)) == VersionTraffic(
        {1: 950_000, 2: 50_000, 3: 0},
        (Sticky(header="x-user"), Sticky(parameter="user")),
        Shadow(3, 100_000, (OutputTolerance("score", 0.5, 0.1), OutputTolerance("rank", top1_agreement=0.99)), 4),
    )


def test_stable_is_the_version_of_the_highest_weight_and_of_equal_ones_the_first_listed():
    assert VersionTraffic({1: 400_000, 2: 600_000}).stable == 2
    assert VersionTraffic({2: 500_000, 1: 500_000}).stable == 2
    assert VersionTraffic({7: 0, 2: 500_000, 1: 500_000}).order == (2, 1, 7)


weights = st.dictionaries(st.integers(1, 2**40), st.integers(0, 1000), min_size=1, max_size=16).map(
    lambda parts: {**parts, min(parts): MILLIONTHS - sum(parts.values()) + parts[min(parts)]}
)
names = st.text("abcdefgh-", min_size=1)
keys = st.builds(Sticky, header=names) | st.builds(Sticky, parameter=st.text(min_size=1))
tolerances = st.builds(
    OutputTolerance,
    st.text(min_size=1),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
    st.none() | st.floats(0, 1),
)
shadows = st.builds(
    Shadow,
    st.integers(2**41, 2**42),
    st.integers(1, MILLIONTHS),
    st.lists(tolerances, max_size=4, unique_by=lambda tolerance: tolerance.output).map(tuple),
    st.integers(1, 100),
)
divisions = st.builds(VersionTraffic, weights, st.lists(keys, max_size=8, unique=True).map(tuple), st.none() | shadows)


@given(divisions)
def test_a_division_is_read_as_it_was_written(traffic):
    assert version_traffic(config_of(traffic_text(traffic))) == traffic


WAYS_OUT = {
    "": 'cannot be read: Input data was truncated; expected JSON such as {"weights"',
    "[]": "Expected `object`, got `array`",
    '{"wieghts": {}}': "unknown field `wieghts`",
    '{"weights": {"one": 1000000}}': "Expected `int`",
    '{"weights": {"1": 0.5}}': "Expected `int`, got `float`",
    '{"weights": {}}': "weights has 0 versions; list 1 to 16",
    '{"weights": {"0": 1000000}}': "weights names version 0; versions are numbers from 1",
    '{"weights": {"1": 1100000, "2": -100000}}': "weights[2] is -100000; a weight is 0 to 1000000 millionths",
    '{"weights": {"1": 95, "2": 5}}': "the weights add up to 100; they are millionths and must add up to 1000000",
    '{"weights": {"1": 1000000}, "sticky": [{}]}': "sticky[0] must have either header or parameter",
    '{"weights": {"1": 1000000}, "sticky": [{"header": "a", "parameter": "b"}]}': "must have either header or",
    '{"weights": {"1": 1000000}, "sticky": [{"header": "X-User"}]}': "write the header's name in lower case",
    '{"weights": {"1": 1000000}, "sticky": [{"header": "a"}, {"header": "a"}]}': "sticky lists a key twice",
    '{"weights": {"1": 1000000}, "shadow": {"version": 1, "share": 5}}': "name the version that is to be compared",
    '{"weights": {"1": 1000000}, "shadow": {"version": 0, "share": 5}}': "shadow.version is 0; versions are numbers",
    '{"weights": {"1": 1000000}, "shadow": {"version": 2, "share": 0}}': "leave shadow out for none",
    '{"weights": {"1": 1000000}, "shadow": {"version": 2, "share": 5, "maxInFlight": 0}}': "shadow.maxInFlight is 0",
}


@pytest.mark.parametrize(("text", "message"), WAYS_OUT.items())
def test_a_wrong_parameter_is_refused_with_its_field_and_the_way_out(text, message):
    with pytest.raises(ConfigError) as error:
        version_traffic(config_of(text))
    assert f"parameter '{PARAMETER}' of model 'fraud'" in str(error.value)
    assert message in str(error.value)
    assert [violation.path for violation in check_traffic(config_of(text))] == ['parameters["version_traffic"]']


WRONG_TOLERANCES = {
    '{"output": ""}': "shadow.tolerances[0].output is empty",
    '{"output": "y", "absolute": -1}': "shadow.tolerances[0].absolute is -1; a tolerance must not be negative",
    '{"output": "y", "top1Agreement": 1.5}': "shadow.tolerances[0].top1Agreement is 1.5; a share is 0 to 1",
    '{"output": "y"}, {"output": "y"}': "shadow.tolerances lists an output twice",
}


@pytest.mark.parametrize(("tolerances", "message"), WRONG_TOLERANCES.items())
def test_a_wrong_tolerance_is_refused_with_its_field(tolerances, message):
    text = f'{{"weights": {{"1": 1000000}}, "shadow": {{"version": 2, "share": 5, "tolerances": [{tolerances}]}}}}'
    with pytest.raises(ConfigError, match="version_traffic") as error:
        version_traffic(config_of(text))
    assert message in str(error.value)


def test_keys_and_versions_are_bounded():
    many = VersionTraffic({version: MILLIONTHS if version == 1 else 0 for version in range(1, 18)})
    with pytest.raises(ConfigError, match="weights has 17 versions; list 1 to 16"):
        version_traffic(config_of(traffic_text(many)))
    keys = VersionTraffic({1: MILLIONTHS}, tuple(Sticky(header=f"x-{number}") for number in range(9)))
    with pytest.raises(ConfigError, match="sticky has 9 keys; at most 8 are possible"):
        version_traffic(config_of(traffic_text(keys)))


def test_a_wrong_parameter_is_a_violation_of_the_configuration():
    messages = [str(violation) for violation in check_structure(config_of("{}"))]
    assert any(f'parameters["{PARAMETER}"]: ' in message for message in messages)
