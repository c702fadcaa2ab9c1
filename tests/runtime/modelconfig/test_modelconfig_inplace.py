"""Changes that a serving model takes, and the instances that stay."""

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import instances, normalize
from argosy_runtime.modelconfig.inplace import completed_like, instance_changes, suits

BASE = """
backend: "python" max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def config(text: str = "", base: str = BASE) -> ModelConfig:
    return text_format.Parse(base + text, ModelConfig())


@pytest.mark.parametrize(
    "text",
    [
        "instance_group [ { count: 5 kind: KIND_CPU } ]",
        "dynamic_batching { max_queue_delay_microseconds: 100 }",
        "version_policy { all { } }",
        "parameters { key: 'queue_policies' value { string_value: '{}' } }",
    ],
)
def test_what_changes_inplace(text):
    assert suits(config(), config(text))
    assert suits(config(text), config())


@pytest.mark.parametrize(
    "text",
    [
        'parameters { key: "k" value { string_value: "v" } }',
        "sequence_batching { }",
        'metric_tags { key: "k" value: "v" }',
        "model_transaction_policy { decoupled: true }",
        "optimization { cuda { graphs: true } }",
    ],
)
def test_what_is_reloaded(text):
    assert not suits(config(), config(text))


@pytest.mark.parametrize(
    ("loaded", "desired", "fits"), [(8, 8, 1), (8, 4, 1), (8, 9, 0), (8, 0, 0), (0, 8, 0), (0, 0, 1)]
)
def test_a_batch_may_be_as_large_as_the_instances_were_loaded_for(loaded, desired, fits):
    one, other = config(), config()
    one.max_batch_size, other.max_batch_size = loaded, desired
    assert suits(one, other) is bool(fits)


def test_sequences_lie_in_the_slots_of_a_batch():
    smaller = config("sequence_batching { }")
    smaller.max_batch_size = 4
    assert not suits(config("sequence_batching { }"), smaller)


def test_what_the_model_itself_completed_stays():
    declared = config(base='backend: "onnxruntime" instance_group [ { count: 1 } ]')
    completed = config(
        "dynamic_batching { preferred_batch_size: [ 8 ] } instance_group [ { count: 1 kind: KIND_CPU } ]"
    )
    changed = config(base='backend: "onnxruntime" instance_group [ { count: 3 } ] version_policy { all { } }')
    result = completed_like(declared, completed, changed)
    assert result is not None
    assert [group.count for group in result.instance_group] == [3]
    assert result.version_policy.HasField("all")
    assert result.dynamic_batching == completed.dynamic_batching
    assert result.input == completed.input


def test_a_smaller_batch_is_preferred_where_the_largest_was():
    declared = config(base='backend: "onnxruntime"')
    completed = config("dynamic_batching { preferred_batch_size: [ 8 ] }")
    result = completed_like(declared, completed, config(base='backend: "onnxruntime" max_batch_size: 2'))
    assert result is not None
    assert normalize(result, "m").dynamic_batching.preferred_batch_size == [2]


@pytest.mark.parametrize(
    ("declared", "desired"),
    [
        ("", 'parameters { key: "k" value { string_value: "v" } }'),
        ("dynamic_batching { }", ""),
        ("", "max_batch_size: 16"),
        ("max_batch_size: 4", ""),
    ],
)
def test_what_only_the_models_files_can_say(declared, desired):
    base = 'backend: "onnxruntime"'
    assert completed_like(config(declared, base), config(), config(desired, base)) is None


def placements(*counts: int, extra: str = ""):
    groups = ", ".join(f"{{ count: {count} kind: KIND_CPU {extra} }}" for count in counts)
    return instances(config(f"instance_group [ {groups} ]"), ())


def test_more_and_fewer():
    one, three = placements(1), placements(3)
    added, removed = instance_changes(one, three)
    assert [location.name for location in added] == ["m_0_1", "m_0_2"] or [p.name for p in added] == ["_0_1", "_0_2"]
    assert not removed
    assert instance_changes(three, one) == ([], [1, 2])


def test_other_instances_come_alongside_those_that_go():
    added, removed = instance_changes(placements(2), placements(2, extra='host_policy: "x"'))
    assert len(added) == 2
    assert removed == [0, 1]


def test_gpus_have_their_own():
    on_one = instances(config("instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] } ]"), (0, 1))
    on_both = instances(config("instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]"), (0, 1))
    added, removed = instance_changes(on_one, on_both)
    assert [(placement.device_id, placement.kind) for placement in added] == [(1, "KIND_GPU")] * 2
    assert not removed
    assert [on_both[index].device_id for index in instance_changes(on_both, on_one)[1]] == [1, 1]


def test_one_that_comes_has_a_name_of_its_own():
    first, second, third = placements(3)
    added, removed = instance_changes([second, third], placements(3))
    assert [placement.name for placement in added] == [first.name]
    assert not removed


counts = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@given(before=counts, after=counts)
def test_afterwards_there_is_what_is_desired(before, after):
    running, desired = placements(*before), placements(*after)
    added, removed = instance_changes(running, desired)
    left = [placement for index, placement in enumerate(running) if index not in removed]
    assert sorted(placement.alike for placement in [*left, *added]) == sorted(placement.alike for placement in desired)
    assert not (added and removed), "all are alike, so there are either too few or too many"
