"""The bench on which an agent is tried."""

from pathlib import Path
from typing import Any

import pytest
from tests.agent.sync.bench import Bench


@pytest.fixture
def bench(tmp_path: Path, fake: Any) -> Bench:
    """A bench."""
    return Bench(tmp_path, fake)
