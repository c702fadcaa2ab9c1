"""With tensors in shared memory each server answers, and writes, as Triton was recorded to."""

import pytest
from tests.differential.cases.shared_memory import SharedCase
from tests.differential.deviations import owed
from tests.differential.oracle import recorded
from tests.differential.shared_memory_cases import CASES, answers
from tests.peers.server import Server


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_answers_as_recorded(server: Server, case: SharedCase) -> None:
    expected = owed(server.name, "shared_memory", case.name, recorded("shared_memory")[case.name])
    assert answers(server, case) == expected


def test_every_recording_has_its_case() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert set(recorded("shared_memory")) == set(names)
