"""What a node had, noted with the servers that run there, and when that counts."""

from dataclasses import replace

import pytest
from tests.operator.planning.declared import GIB, gpu_node

from argosy.planning.facts import Gpu, Node
from argosy.planning.nodes.last_reported import hardware_text, parse_hardware, with_last_reported

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
