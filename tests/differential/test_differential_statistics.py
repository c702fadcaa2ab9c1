"""The same requests move the same counts."""

import pytest
from tests.differential.deviations import owed
from tests.differential.oracle import recorded
from tests.differential.statistics_cases import CASES, StatisticsCase, moved
from tests.peers.server import Server


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_counts_move_as_recorded(server: Server, case: StatisticsCase) -> None:
    expected = owed(server.name, "statistics", case.name, recorded("statistics")[case.name])
    assert moved(server.http, case) == expected
