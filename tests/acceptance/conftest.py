"""`argosy up` with the real runtime, on folders of manifests that tests write."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.running import Starter, Workspace, free_ports


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return an empty workspace."""
    workspace = Workspace(tmp_path)
    workspace.manifests.mkdir()
    return workspace


@pytest.fixture
def up(workspace: Workspace) -> Iterator[Starter]:
    """Yield a function that starts `argosy up` on the workspace."""
    starter = Starter(workspace, free_ports())
    yield starter
    starter.end()
