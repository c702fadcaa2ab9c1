"""Over HTTP, each server answers as Triton was recorded to answer."""

import pytest
from tests.differential.deviations import owed
from tests.differential.http_calls import Case
from tests.differential.http_cases import TOPICS, answers
from tests.differential.oracle import recorded
from tests.peers.server import Server

EVERY = [pytest.param(topic, case, id=f"{topic}-{case.name}") for topic, cases in TOPICS.items() for case in cases]


@pytest.mark.parametrize(("topic", "case"), EVERY)
def test_answers_as_recorded(server: Server, topic: str, case: Case) -> None:
    expected = owed(server.name, topic, case.name, recorded(topic)[case.name])
    assert answers(server.http, case) == expected


@pytest.mark.parametrize("topic", TOPICS)
def test_every_recording_has_its_case(topic: str) -> None:
    names = [case.name for case in TOPICS[topic]]
    assert len(set(names)) == len(names)
    assert set(recorded(topic)) == set(names)
