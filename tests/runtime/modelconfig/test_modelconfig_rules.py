"""One case per rule: the smallest configuration that breaks it, the path and the whole message."""

import re

import pytest

from argosy_runtime.modelconfig import (
    Violation,
    check,
    check_model_name,
    check_placement,
    check_structure,
    parse_text,
)

GOOD = """
name: "m" backend: "python" max_batch_size: 8
input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "B" data_type: TYPE_FP32 dims: [ 4 ] }
version_policy { latest { num_versions: 1 } }
"""
SEQUENCE = "sequence_batching { control_input { name: 'C' control { %s } } }"
STATE = "sequence_batching { state { input_name: 'S' output_name: 'T' data_type: TYPE_INT32 dims: [ %s ] %s } }"
DELAY = "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }"

# Each is added to GOOD; where it is marked "=", its first field replaces that of GOOD.
CASES = {
    "name": ('= name: ""', "name", "model configuration must specify 'name'"),
    "no backend": ('= backend: ""', "platform", "unexpected platform type '' for m"),
    "pair": (
        '= backend: "onnxruntime" platform: "pytorch_libtorch"',
        "platform",
        "unexpected 'platform' and 'backend' pair, got:pytorch_libtorch, onnxruntime",
    ),
    "ensemble with backend": (
        'platform: "ensemble"',
        "backend",
        "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
    ),
    "negative batch": ("= max_batch_size: -1", "max_batch_size", "'max_batch_size' must be non-negative value for m"),
    "latest none": (
        "= version_policy { latest {} }",
        "version_policy.latest.num_versions",
        "at least one version must be available under the version policy of model 'm'",
    ),
    "specific none": (
        "= version_policy { specific {} }",
        "version_policy.specific.versions",
        "at least one version must be available under the version policy of model 'm'",
    ),
    "tensor name": (
        "input { data_type: TYPE_FP32 dims: 1 }",
        "input[1].name",
        "model input must specify 'name' for m",
    ),
    "datatype": (
        'input { name: "X" dims: 1 }',
        "input[1].data_type",
        "model input 'X' must specify 'data_type' for m",
    ),
    "dims": (
        'output { name: "X" data_type: TYPE_FP32 }',
        "output[1].dims",
        "model output 'X' must specify 'dims' for m",
    ),
    "zero dim": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 1, 0 ] }',
        "input[1].dims[1]",
        "model input 'X' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    "dim below -1": (
        'output { name: "X" data_type: TYPE_FP32 dims: [ -2 ] }',
        "output[1].dims[0]",
        "model output 'X' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    "reshape dim": (
        'input { name: "X" data_type: TYPE_FP32 dims: 1 reshape { shape: [ 0 ] } }',
        "input[1].reshape.shape[0]",
        "model input 'X' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    "empty reshape without batching": (
        '= max_batch_size: 0 input { name: "X" data_type: TYPE_FP32 dims: 1 reshape {} }',
        "input[1].reshape.shape",
        "model input 'X' cannot have empty reshape for non-batching model as scalar tensors are not supported for m",
    ),
    "reshape count": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 3 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "empty reshape of several elements": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] reshape {} }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "reshape wildcard lost": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ 4 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "reshape wildcard number": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: [ -1 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different number of variable-size dimensions for dims and reshape for m",
    ),
    "reshape between wildcards": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 2, -1, 6 ] reshape { shape: [ 6, -1, 2 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "too many elements": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4294967296, 4294967296 ] }',
        "input[1].dims",
        "element count for tensor 'X dims' exceeds maximum size of 9223372036854775807 for m",
    ),
    "duplicate input": (
        'input { name: "A" data_type: TYPE_FP32 dims: 1 }',
        "input[1].name",
        "model input 'A' is specified more than once for m",
    ),
    "duplicate output": (
        'output { name: "B" data_type: TYPE_FP32 dims: 1 }',
        "output[1].name",
        "model output 'B' is specified more than once for m",
    ),
    "image format": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 1, 2 ] format: FORMAT_NCHW }',
        "input[1].format",
        "model input NHWC/NCHW require 3 dims for m",
    ),
    "shape tensor": (
        'output { name: "X" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }',
        "output[1].is_shape_tensor",
        "shape tensors are only supported for TensorRT platform for m",
    ),
    "non-linear": (
        'input { name: "X" data_type: TYPE_INT32 dims: 1 is_non_linear_format_io: true }',
        "input[1].is_non_linear_format_io",
        "Non-linear IO format is only supported for the TensorRT platform for m",
    ),
    "non-linear dims": (
        (
            '= backend: "tensorrt" platform: "tensorrt_plan" '
            'output { name: "X" data_type: TYPE_INT32 dims: 1 is_non_linear_format_io: true }'
        ),
        "output[1].is_non_linear_format_io",
        "Non-linear IO format output requires 3 dims for m",
    ),
    "batch input source": (
        "batch_input { kind: BATCH_ITEM_SHAPE target_name: 'Z' data_type: TYPE_INT32 }",
        "batch_input[0].source_input",
        "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 0 for m",
    ),
    "batch input datatype": (
        "batch_input { target_name: 'Z' data_type: TYPE_INT64 source_input: 'A' }",
        "batch_input[0].data_type",
        "batch input data type must be TYPE_INT32 or TYPE_FP32 for m",
    ),
    "batch input unknown": (
        "batch_input { target_name: 'Z' data_type: TYPE_INT32 source_input: 'Q' }",
        "batch_input[0].source_input[0]",
        "unknown source input name 'Q' for m",
    ),
    "batch output source": (
        "batch_output { target_name: 'B' source_input: 'A' source_input: 'A' }",
        "batch_output[0].source_input",
        "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 2 for m",
    ),
    "batch output target": (
        "batch_output { target_name: 'Q' source_input: 'A' }",
        "batch_output[0].target_name[0]",
        "unknown target output name 'Q' for m",
    ),
    "batch output twice": (
        "batch_output { target_name: 'B' target_name: 'B' source_input: 'A' }",
        "batch_output[0].target_name[1]",
        "target output name 'B' can only be specified once for m",
    ),
    "preferred above max": (
        "dynamic_batching { preferred_batch_size: [ 4, 16 ] }",
        "dynamic_batching.preferred_batch_size[1]",
        "dynamic batching preferred size must be <= max batch size for m",
    ),
    "preferred zero": (
        "dynamic_batching { preferred_batch_size: [ 0 ] }",
        "dynamic_batching.preferred_batch_size[0]",
        "dynamic batching preferred size must be positive for m",
    ),
    "default priority": (
        "dynamic_batching { priority_levels: 3 }",
        "dynamic_batching.default_priority_level",
        "default priority level must be in range [1, 3] for m",
    ),
    "priority of a policy": (
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} } }",
        "dynamic_batching.priority_queue_policy[3]",
        "priority queue policy must have priority level in range [1, 2] for m",
    ),
    "ordering and priorities": (
        "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 2 }",
        "dynamic_batching.priority_levels",
        "Only one priority level is allowed when 'preserve_ordering' is true for m",
    ),
    "ordering and delay": (
        f"dynamic_batching {{ preserve_ordering: true {DELAY} }}",
        "dynamic_batching.default_queue_policy.timeout_action",
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ),
    "ordering and delay of a level": (
        (
            "dynamic_batching { preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
            "priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 9 } } }"
        ),
        "dynamic_batching.priority_queue_policy[1].timeout_action",
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ),
    "cache and sequences": (
        "sequence_batching {} response_cache { enable: true }",
        "response_cache.enable",
        (
            "Response Cache does not currently support model m with sequence batching scheduler. "
            "Please disable the response cache."
        ),
    ),
    "cache and decoupled": (
        "model_transaction_policy { decoupled: true } response_cache { enable: true }",
        "response_cache.enable",
        (
            "Response Cache does not currently support model m with 'decoupled' transaction policy. "
            "Please disable the response cache."
        ),
    ),
    "oldest preferred": (
        "sequence_batching { oldest { preferred_batch_size: 9 } }",
        "sequence_batching.oldest.preferred_batch_size[0]",
        "sequence batching preferred batch size must be <= max batch size for m",
    ),
    "oldest preferred zero": (
        "sequence_batching { oldest { preferred_batch_size: -1 } }",
        "sequence_batching.oldest.preferred_batch_size[0]",
        "sequence batching preferred batch size must be positive for m",
    ),
    "slot utilization": (
        "sequence_batching { direct { minimum_slot_utilization: 1.5 } }",
        "sequence_batching.direct.minimum_slot_utilization",
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ),
    "slot utilization nan": (
        "sequence_batching { direct { minimum_slot_utilization: nan } }",
        "sequence_batching.direct.minimum_slot_utilization",
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ),
    "control name": (
        "sequence_batching { control_input { } }",
        "sequence_batching.control_input[0].name",
        "sequence batching control tensor must have a name for m",
    ),
    "control tensor twice": (
        "sequence_batching { control_input { name: 'C' } control_input { name: 'C' } }",
        "sequence_batching.control_input[1].name",
        "sequence batching control tensor 'C' is specified for multiple control kinds for m",
    ),
    "control kind twice": (
        (
            "sequence_batching { control_input { name: 'C' control { kind: CONTROL_SEQUENCE_END bool_false_true: "
            "[ false, true ] } } control_input { name: 'D' control { kind: CONTROL_SEQUENCE_END bool_false_true: "
            "[ false, true ] } } }"
        ),
        "sequence_batching.control_input[1].control[0].kind",
        "sequence batching specifies multiple CONTROL_SEQUENCE_END tensors for m",
    ),
    "control without values": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_START",
        "sequence_batching.control_input[0].control[0]",
        (
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' "
            "for CONTROL_SEQUENCE_START for m"
        ),
    ),
    "control with two kinds of values": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]",
        "sequence_batching.control_input[0].control[0]",
        (
            "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and "
            "'bool_false_true' for CONTROL_SEQUENCE_READY for m"
        ),
    ),
    "control with one value": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 1 ]",
        "sequence_batching.control_input[0].control[0].fp32_false_true",
        "sequence batching control 'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m",
    ),
    "corrid with values": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ]",
        "sequence_batching.control_input[0].control[0]",
        (
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' "
            "for CONTROL_SEQUENCE_CORRID for m"
        ),
    ),
    "corrid datatype": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32",
        "sequence_batching.control_input[0].control[0].data_type",
        (
            "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, "
            "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        ),
    ),
    "state name": (
        "sequence_batching { state { output_name: 'T' data_type: TYPE_INT32 } }",
        "sequence_batching.state[0].input_name",
        "sequence batching state must specify 'input_name' for m",
    ),
    "state datatype": (
        "sequence_batching { state { input_name: 'S' output_name: 'T' } }",
        "sequence_batching.state[0].data_type",
        "sequence batching state 'S' must specify 'data_type' for m",
    ),
    "two initial states": (
        STATE % ("1", "initial_state {} initial_state {}"),
        "sequence_batching.state[0].initial_state",
        "initial_state field for state input 'S' must contain exactly one or zero element. Found '2' elements.",
    ),
    "initial datatype": (
        STATE % ("1", "initial_state { name: 'i' data_type: TYPE_FP32 dims: 1 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].data_type",
        "The data type used for 'initial_state' field of state 'S' does not match the state data type.",
    ),
    "initial name": (
        STATE % ("1", "initial_state { data_type: TYPE_INT32 dims: 1 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].name",
        "Field 'name' must be set when using initial_state for state input 'S'.",
    ),
    "initial rank": (
        STATE % ("1", "initial_state { name: 'i' data_type: TYPE_INT32 dims: [ 1, 1 ] zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].dims",
        (
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'S'. "
            "2 != 1"
        ),
    ),
    "initial wildcard": (
        STATE % ("-1", "initial_state { name: 'i' data_type: TYPE_INT32 dims: -1 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].dims[0]",
        "'initial_state' field for state input name 'S' contains variable dimensions.",
    ),
    "initial dim": (
        STATE % ("2", "initial_state { name: 'i' data_type: TYPE_INT32 dims: 3 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].dims[0]",
        "'initial_state' dim for input name 'S' doesn't match 'state' dim description. 3 != 2",
    ),
    "initial data": (
        STATE % ("1", "initial_state { name: 'i' data_type: TYPE_INT32 dims: 1 }"),
        "sequence_batching.state[0].initial_state[0]",
        "initial_state setting expects state'S' to have state_data set",
    ),
    "cpu with gpus": (
        "instance_group { name: 'g' kind: KIND_CPU gpus: 0 }",
        "instance_group[0].gpus",
        "instance group g of model m has kind KIND_CPU but specifies one or more GPUs",
    ),
    "model with gpus": (
        "instance_group { name: 'g' kind: KIND_MODEL gpus: 0 }",
        "instance_group[0].gpus",
        "instance group g of model m has kind KIND_MODEL but specifies one or more GPUs",
    ),
    "profile": (
        "instance_group { name: 'g' profile: '0' }",
        "instance_group[0].profile",
        "instance group g of model m and platform specifies profile field which is only supported for TensorRT models",
    ),
    "profile index": (
        "= backend: 'tensorrt' platform: 'tensorrt_plan' instance_group { name: 'g' profile: '-1' }",
        "instance_group[0].profile[0]",
        (
            "instance group g of model m and platform tensorrt_plan specifies invalid profile -1. The field should "
            "contain the string representation of a non-negative integer."
        ),
    ),
    "resource scope": (
        (
            "instance_group { name: 'g' rate_limiter { resources { name: 'R' global: true count: 1 } } } "
            "instance_group { name: 'h' rate_limiter { resources { name: 'R' count: 1 } } }"
        ),
        "instance_group[1].rate_limiter.resources[0].global",
        'Resource "R" is present as both global and device-specific resource in the model configuration.',
    ),
    "warmup wildcard": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { data_type: TYPE_FP32 dims: -1 zero_data: true } } }",
        'model_warmup[0].inputs["A"].dims',
        "warmup setting expects all variable-size dimensions are specified for input 'A'",
    ),
    "warmup data": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { data_type: TYPE_FP32 dims: 4 } } }",
        'model_warmup[0].inputs["A"]',
        "warmup setting expects input 'A' to have input_data_type set",
    ),
    "warmup datatype": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { dims: 4 zero_data: true } } }",
        'model_warmup[0].inputs["A"].data_type',
        "warmup setting expects input 'A' to have data_type set for m",
    ),
    "warmup dim": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { data_type: TYPE_FP32 dims: -4 zero_data: true } } }",
        'model_warmup[0].inputs["A"].dims',
        "tensor 'A' contains an invalid dimension [-4]",
    ),
    "metric identifier": (
        "model_metrics { metric_control { histogram_options { buckets: 1 } } }",
        "model_metrics.metric_control[0]",
        "metric control must specify 'metric_identifier'",
    ),
    "metric family": (
        "model_metrics { metric_control { metric_identifier {} histogram_options { buckets: 1 } } }",
        "model_metrics.metric_control[0].metric_identifier.family",
        "metric identifier must specify non-empty 'family'",
    ),
    "metric options": (
        "model_metrics { metric_control { metric_identifier { family: 'f' } } }",
        "model_metrics.metric_control[0]",
        "metric control must specify 'histogram_options'",
    ),
    "metric buckets": (
        "model_metrics { metric_control { metric_identifier { family: 'f' } histogram_options {} } }",
        "model_metrics.metric_control[0].histogram_options.buckets",
        "histogram options must specify non-empty 'buckets'",
    ),
}


def broken(change: str) -> list[Violation]:
    config = parse_text(GOOD)
    addition = change.removeprefix("=").strip()
    if change.startswith("="):
        config.ClearField(re.split(r"\W", addition)[0])
    config.MergeFrom(parse_text(addition))
    return check(config)


def test_a_good_configuration_breaks_no_rule() -> None:
    assert check(parse_text(GOOD), "m") == []


@pytest.mark.parametrize(("change", "path", "message"), CASES.values(), ids=CASES)
def test_each_rule(change: str, path: str, message: str) -> None:
    found = broken(change)
    assert Violation(path, message) in found
    assert len(found) <= 2


def test_every_violation_is_reported_not_only_the_first() -> None:
    config = parse_text(GOOD + 'input { name: "X" dims: [ 0 ] } dynamic_batching { preferred_batch_size: [ 0, 99 ] }')
    assert [violation.path for violation in check(config)] == [
        "dynamic_batching.preferred_batch_size[0]",
        "dynamic_batching.preferred_batch_size[1]",
        "input[1].data_type",
        "input[1].dims[0]",
    ]


def test_a_folder_of_another_name() -> None:
    message = "unexpected directory name 'other' for model 'm', directory name must equal model name"
    assert check(parse_text(GOOD), "other") == [Violation("name", message)]


def test_structure_is_checked_without_the_tensors_that_autofill_may_add() -> None:
    config = parse_text(GOOD + 'input { name: "X" }')
    assert check_structure(config, "m") == []
    assert {violation.path for violation in check(config)} == {"input[1].data_type", "input[1].dims"}


def test_a_violation_reads_as_path_and_message() -> None:
    assert str(Violation("input[0].dims", "wrong")) == "input[0].dims: wrong"
    assert str(Violation("", "wrong")) == "wrong"


def test_priorities_reach_the_end_of_64_bits() -> None:
    top = 2**64 - 1
    text = f"dynamic_batching {{ priority_levels: {top} default_priority_level: {top} }}"
    assert check(parse_text(GOOD + text)) == []


def test_a_warmup_of_batch_size_zero_is_skipped() -> None:
    assert check(parse_text(GOOD + "model_warmup { inputs { key: 'A' value { dims: -1 } } }")) == []


@pytest.mark.parametrize(
    ("group", "gpus", "path", "message"),
    [
        ("kind: KIND_GPU", [], "instance_group[0].gpus", "has kind KIND_GPU but no GPUs are available"),
        ("kind: KIND_GPU", [0], "instance_group[0].gpus", "has kind KIND_GPU but specifies no GPUs"),
        (
            "kind: KIND_GPU gpus: [ 0, 7 ]",
            [0, 1],
            "instance_group[0].gpus[1]",
            "specifies invalid or unsupported gpu id 7. GPUs are: 0, 1",
        ),
        ("", [], "instance_group[0].kind", "has unexpected kind KIND_AUTO"),
    ],
)
def test_groups_against_the_machine(group: str, gpus: list[int], path: str, message: str) -> None:
    config = parse_text(f"name: 'm' instance_group {{ name: 'g' {group} }}")
    assert check_placement(config, gpus) == [Violation(path, f"instance group g of model m {message}")]


def test_a_model_without_groups_has_nowhere_to_run_and_an_ensemble_needs_none() -> None:
    message = "must specify one or more 'instance group's for m"
    assert check_placement(parse_text("name: 'm'"), []) == [Violation("instance_group", message)]
    assert check_placement(parse_text("name: 'm' ensemble_scheduling {}"), []) == []


@pytest.mark.parametrize("name", ["", " ", "..", ".", "a/b", "/etc", "../x", "a\x00b"])
def test_names_that_no_folder_may_have(name: str) -> None:
    assert check_model_name(name) is not None


def test_a_model_name_may_hold_dots_and_spaces() -> None:
    assert check_model_name("model.v1 b") is None
    assert check_model_name("..") == ("invalid model name '..', model name must not contain path traversal characters")
