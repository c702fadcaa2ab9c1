"""The bench on which an agent is tried."""

from pathlib import Path
from typing import Any

import pytest
from tests.agent.sync.bench import Bench

from argosy_agent.sync import sidecar
from argosy_agent.sync.storage import keys


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the limits by which a busy machine's storage would count as not answering."""
    for module in (keys, sidecar):
        monkeypatch.setattr(module, "PATIENCE_S", 60.0)


@pytest.fixture
def bench(tmp_path: Path, fake: Any) -> Bench:
    """Return a bench."""
    return Bench(tmp_path, fake)
