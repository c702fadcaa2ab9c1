"""The disk is read in threads: the event loop, which serves every request, waits for none of it."""

import builtins
import io
import os
import threading
from collections.abc import Iterator

import pytest
from tests.runtime.service.conftest import CONFIG, states


@pytest.fixture
def read_on_this_thread(repository, monkeypatch) -> Iterator[list[str]]:
    """Paths below the repository that are looked at on the thread of the event loop."""
    seen: list[str] = []
    here = threading.get_ident()

    def watched(function):
        def call(path=".", *args, **options):
            if threading.get_ident() == here and str(path).startswith(str(repository.path)):
                seen.append(f"{function.__name__} {path}")
            return function(path, *args, **options)

        return call

    for module, name in ((os, "stat"), (os, "scandir"), (os, "listdir"), (io, "open"), (builtins, "open")):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return seen


async def test_the_index(repository, serve, read_on_this_thread):
    plane = await serve()
    repository.write("m", {"1/model.py": ""}, CONFIG)
    read_on_this_thread.clear()
    assert await states(plane) == {"m": ""}
    assert not read_on_this_thread
