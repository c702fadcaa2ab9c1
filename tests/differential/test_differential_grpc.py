"""Over gRPC, each server answers as Triton was recorded to answer."""

import pytest
from tests.differential.deviations import owed
from tests.differential.grpc_cases import CASES, GrpcCase, answer
from tests.differential.oracle import recorded
from tests.peers.server import Server


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_answers_as_recorded(server: Server, case: GrpcCase) -> None:
    expected = owed(server.name, "grpc", case.name, recorded("grpc")[case.name])
    assert answer(server.grpc, case) == expected


def test_every_recording_has_its_case() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert set(recorded("grpc")) == set(names)
