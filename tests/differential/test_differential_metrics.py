"""Triton's metrics are there by its names, kinds and labels, and its counts move with the same requests."""

import pytest
from tests.differential import metrics_cases
from tests.differential.deviations import owed
from tests.differential.metrics_cases import CASES, StatisticsCase, moved
from tests.differential.oracle import recorded
from tests.peers.server import Server
from tests.waiting import wait


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_counts_move_as_recorded(server: Server, case: StatisticsCase) -> None:
    expected = owed(server.name, "metrics", case.name, recorded("metrics")[case.name])
    assert moved(server, case, expected) == expected


def test_tritons_metrics_are_there_with_their_kinds_and_labels(server: Server) -> None:
    expected = recorded("metrics")["families"]
    # The processors' utilization is reported from the second reading on.
    wait(lambda: expected.keys() <= metrics_cases.families(server).keys(), pause_s=0.1)
    families = metrics_cases.families(server)
    assert {name: families[name] for name in expected} == expected
