"""One case per rule: the smallest configuration that breaks it, the path and the whole message."""

import re

import pytest
from tests.runtime.modelconfig.rules.batching import BATCHING
from tests.runtime.modelconfig.rules.instances import INSTANCES
from tests.runtime.modelconfig.rules.models import MODELS
from tests.runtime.modelconfig.rules.sequences import SEQUENCES
from tests.runtime.modelconfig.rules.tensors import TENSORS

from argosy_runtime.modelconfig import (
    Violation,
    check,
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

CASES = {**MODELS, **TENSORS, **BATCHING, **SEQUENCES, **INSTANCES}


def broken(change: str) -> list[Violation]:
    """Return the violations of GOOD with this added; marked "=", its first field replaces that of GOOD."""
    config = parse_text(GOOD)
    addition = change.removeprefix("=").strip()
    if change.startswith("="):
        config.ClearField(re.split(r"\W", addition)[0])
    config.MergeFrom(parse_text(addition))
    return check(config)


def test_a_good_configuration_breaks_no_rule() -> None:
    assert check(parse_text(GOOD), "m") == []


@pytest.mark.parametrize(("change", "path", "message"), CASES.values(), ids=CASES)
def test_every_rule(change: str, path: str, message: str) -> None:
    result = broken(change)
    assert Violation(path, message) in result
    assert len(result) <= 2


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
    ("group", "gpus", "message"),
    [
        ("kind: KIND_GPU", [], "has kind KIND_GPU but no GPUs are available"),
        ("kind: KIND_GPU", [0], "has kind KIND_GPU but specifies no GPUs"),
        (
            "kind: KIND_GPU gpus: [ 0, 7 ]",
            [0, 1],
            "specifies invalid or unsupported gpu id 7. GPUs are: 0, 1",
        ),
        ("", [], "has unexpected kind KIND_AUTO"),
    ],
)
def test_groups_against_the_machine(group: str, gpus: list[int], message: str) -> None:
    config = parse_text(f"name: 'm' instance_group {{ name: 'g' {group} }}")
    assert check_placement(config, gpus) == [Violation("", f"instance group g of model m {message}")]


def test_a_model_needs_instance_groups_and_an_ensemble_does_not() -> None:
    message = "must specify one or more 'instance group's for m"
    assert check_placement(parse_text("name: 'm'"), []) == [Violation("instance_group", message)]
    assert check_placement(parse_text("name: 'm' ensemble_scheduling {}"), []) == []
