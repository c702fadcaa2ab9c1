"""The lists and the cases of deviations fit together, and each case differs from what Triton said."""

import pytest
from tests.differential.deviations import DEVIATIONS
from tests.differential.deviations.lists import sections
from tests.differential.oracle import recorded

LISTED = [listed for section in sections() for listed in section.deviations]
NAMES = [listed.name for listed in LISTED if listed.name]


@pytest.mark.parametrize(("topic", "name"), DEVIATIONS)
def test_deviates_from_a_recording(topic: str, name: str) -> None:
    assert recorded(topic)[name] != DEVIATIONS[(topic, name)].answer


def test_names_are_listed_once_and_have_cases() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) == {deviation.name for deviation in DEVIATIONS.values()}


def test_deviations_say_what_both_servers_do() -> None:
    assert [listed for listed in LISTED if not (listed.argosy and listed.triton)] == []
