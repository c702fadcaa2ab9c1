"""The parameter `queue_policies`: what it may say, and its messages."""

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelQueuePolicy

from argosy_runtime.modelconfig import ConfigError, check_structure, normalize
from argosy_runtime.modelconfig.inplace import completed_like
from argosy_runtime.modelconfig.parameters.queue_policies import PARAMETER, queue_policies


def config_of(text: str) -> ModelConfig:
    config = ModelConfig(name="m", backend="python", max_batch_size=8)
    config.parameters[PARAMETER].string_value = text
    return config


def test_a_model_without_the_parameter_has_no_policies():
    assert queue_policies(ModelConfig(name="m")) is None


def test_the_fields_are_those_of_triton():
    text = """{"priority_levels": 2, "default_priority_level": 1,
    "default_queue_policy": {"timeout_action": "DELAY", "default_timeout_microseconds": 5},
    "priority_queue_policy": {"2": {"max_queue_size": 3, "allow_timeout_override": true}}}"""
    policies = queue_policies(config_of(text))
    assert policies is not None
    assert (policies.priority_levels, policies.default_priority_level) == (2, 1)
    assert policies.default_queue_policy.timeout_action == ModelQueuePolicy.DELAY
    assert policies.priority_queue_policy[2].max_queue_size == 3
    assert check_structure(normalize(config_of(text), "m")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        ("[[1]]", "cannot be read"),
        ("1", "cannot be read"),
        ("{}x", "cannot be read"),
        ('{"max_queue_size": 1}', "cannot be read"),
        ('{"default_queue_policy": {"max_queue_size": -1}}', "cannot be read"),
        ('{"preferred_batch_size": [1]}', "cannot have 'preferred_batch_size'; its fields are priority_levels"),
        ("[" * 5_000, "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_out(text, message):
    with pytest.raises(ConfigError) as caught:
        queue_policies(config_of(text))
    assert str(caught.value).startswith("parameter 'queue_policies' of model 'm' ")
    assert message in str(caught.value)


def test_priorities_are_checked_as_in_dynamic_batching():
    config = normalize(config_of('{"priority_levels": 2, "priority_queue_policy": {"3": {}}}'), "m")
    assert [str(violation) for violation in check_structure(config)] == [
        'parameters["queue_policies"].default_priority_level: default priority level must be in range [1, 2] for m',
        (
            'parameters["queue_policies"].priority_queue_policy[3]: '
            "priority queue policy must have priority level in range [1, 2] for m"
        ),
    ]


def test_dynamic_batching_has_policies_of_its_own_and_an_ensemble_has_no_queue():
    config = config_of("{}")
    config.dynamic_batching.SetInParent()
    with pytest.raises(ConfigError, match="set its fields in dynamic_batching"):
        queue_policies(config)
    config.ensemble_scheduling.SetInParent()
    with pytest.raises(ConfigError, match="set it on the models of its steps"):
        queue_policies(config)


def test_it_changes_without_a_reload():
    before, after = config_of("{}"), config_of('{"priority_levels": 1, "default_priority_level": 1}')
    changed = completed_like(before, before, after)
    assert changed is not None
    assert changed.parameters[PARAMETER] == after.parameters[PARAMETER]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("{}", True),
        ('{"default_queue_policy": {"max_queue_size": 3, "default_timeout_microseconds": 5}}', True),
        ('{"default_queue_policy": {"timeout_action": "DELAY"}}', False),
        ('{"default_queue_policy": {"allow_timeout_override": true}}', False),
        ('{"priority_levels": 1, "default_priority_level": 1}', False),
    ],
)
def test_sequences_have_a_size_and_a_timeout_alone(text, fits):
    config = config_of(text)
    config.sequence_batching.SetInParent()
    assert any("max_queue_size" in str(violation) for violation in check_structure(config)) is not fits
