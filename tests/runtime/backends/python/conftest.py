"""A fixture that loads a model from its source."""

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.python.sources import CONFIG, THREAD

from argosy_runtime.backends import python


@pytest.fixture
def loaded(model_folder: Callable[[str], Any], host: Any) -> Any:
    """Yield a function that loads a model from its source; close the model afterwards."""
    instances = []

    def load(source: str, pbtxt: str = CONFIG + THREAD) -> Any:
        folder = model_folder(pbtxt)
        (folder.version_dir / "model.py").write_text(textwrap.dedent(source))
        instances.append(python.load(folder.spec(), host))
        return instances[-1]

    yield load
    for instance in instances:
        instance.close()
