"""Deviations are few, each is a case, and each differs from what Triton said."""

import pytest
from tests.differential.deviations import DEVIATIONS
from tests.differential.oracle import recorded


@pytest.mark.parametrize(("topic", "name"), DEVIATIONS)
def test_deviates_from_a_recording(topic: str, name: str) -> None:
    assert recorded(topic)[name] != DEVIATIONS[(topic, name)].answer
    assert DEVIATIONS[(topic, name)].reason
