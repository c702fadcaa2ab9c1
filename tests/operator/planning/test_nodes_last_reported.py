"""What a node had, noted with the servers that run there, and when that counts."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, gpu_node

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.last_reported import hardware_text, parse_hardware, with_last_reported
from argosy.planning.nodes.slices import dra_index

NOTED = Node(
    "a",
    (Gpu(0, 80 * GIB), Gpu(1, 80 * GIB), Gpu(2, 80 * GIB, withheld_by="MIG (nvidia.com/mig-1g.10gb)")),
    "NVIDIA-H100-80GB-HBM3",
    "9.0",
    (frozenset({0, 1}),),
)


def test_what_is_noted_of_a_node_is_read_back() -> None:
    assert parse_hardware("a", hardware_text(NOTED)) == NOTED


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"memory": 3, "withheld": {}}', "{"])
def test_what_people_made_of_a_note_says_nothing(text: str) -> None:
    assert parse_hardware("a", text) is None


def test_a_node_that_reports_no_gpus_keeps_them_and_takes_nothing_new() -> None:
    silent = Node("a", (), labels={"zone": "x"}, schedulable=False, stale=True)
    (result,) = with_last_reported([silent], [NOTED])
    assert result == replace(NOTED, labels={"zone": "x"}, schedulable=False, stale=True)


def test_a_node_whose_gpus_seem_to_be_gone_is_as_if_cordoned() -> None:
    (result,) = with_last_reported([Node("a", (Gpu(0, GIB, is_cpu=True),))], [NOTED])
    assert (result.gpus, result.schedulable, result.stale) == (NOTED.gpus, False, False)


def test_a_node_that_tells_of_its_gpus_is_believed() -> None:
    assert with_last_reported([gpu_node("a"), gpu_node("b")], [NOTED]) == (gpu_node("a"), gpu_node("b"))


FULL, PART = "gpu.nvidia.com", "mig.nvidia.com"
INDEX = dra_index(FULL, "true", part=False)


def note(index: object = INDEX, memory: object = 80, of_class: str = FULL, **more: Any) -> str:
    """Return a note of one device that a DRA driver publishes."""
    device = {"driver": FULL, "pool": "a", "name": "gpu-0", "deviceClass": of_class, "selector": "true", "profile": ""}
    rest = {"withheld": {}, "nvlink": [], "product": "x", "computeCapability": ""} | more
    devices = {str(index): device | {"compute": 1000}}
    return json.dumps({"memory": [memory], "indexes": [index], "devices": devices, **rest})


@pytest.mark.parametrize("index", ["z", 1.5, -3, True, None, [1], 2_000_000_000, INDEX + 1, 0])
def test_an_index_that_cannot_be_is_no_note(index: object) -> None:
    assert parse_hardware("a", note(index)) is None


@pytest.mark.parametrize("memory", [-5, 1.5, float("inf"), float("nan"), "80", True, 1 << 60])
def test_a_memory_that_cannot_be_is_no_note(memory: object) -> None:
    assert parse_hardware("a", note(memory=memory)) is None
    assert parse_hardware("a", note(0, memory, devices={}, indexes=[0])) is None


def test_a_note_that_is_nested_too_deeply_or_names_another_class_is_none() -> None:
    assert parse_hardware("a", "[" * 100_000) is None
    assert parse_hardware("a", note(dra_index("any", "true", part=False), of_class="any")) is None
    assert parse_hardware("a", note(dra_index(FULL, "true", part=True))) is None, "another device than its claim's"
    assert parse_hardware("a", note(devices={})) is None


def test_no_note_replaces_gpus_that_a_node_reports() -> None:
    noted = parse_hardware("n", note())
    assert noted is not None
    eight = gpu_node("n", 8)
    (result,) = with_last_reported([eight], [noted])
    assert replace(result, former=()) == eight
    assert [gpu.index for gpu in result.former] == [INDEX]
    (silent,) = with_last_reported([Node("n", (Gpu(0, GIB, is_cpu=True),))], [noted])
    assert silent.fault.startswith("servers have its GPUs by ResourceClaims")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(json.loads(note()))), VALUES, max_size=3))
def test_whatever_a_note_has_every_node_stays_and_a_round_goes_on(changed: Mapping[str, Any]) -> None:
    noted = parse_hardware("n", json.dumps(json.loads(note()) | changed))
    eight = gpu_node("n", 8)
    for of in (eight, Node("n", ())) if noted is not None else ():
        (result,) = with_last_reported([of], [noted])
        assert all(type(gpu.index) is int and gpu.memory >= 0 for gpu in (*result.gpus, *result.former))
        assert of is not eight or result.gpus == eight.gpus
