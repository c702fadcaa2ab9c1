"""Property tests: CI tries the same examples in each run, and a profile scales their number."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests.properties import examples


@pytest.fixture
def thorough() -> Iterator[None]:
    """Load the profile `thorough` for one test."""
    before = settings.get_current_profile_name()
    settings.load_profile("thorough")
    yield
    settings.load_profile(before)


def test_ci_is_no_lottery() -> None:
    assert settings.get_profile("ci").derandomize
    assert not settings.get_profile("dev").derandomize
    assert 2 * settings.get_profile("ci").max_examples == settings.get_profile("dev").max_examples


@pytest.mark.usefixtures("thorough")
def test_a_profile_scales_the_examples() -> None:
    assert examples(30).max_examples == 300
