"""The disk is read in threads: the event loop, which serves every request, waits for none of it."""

import builtins
import io
import os
import threading
from collections.abc import Iterator

import pytest
from tests.runtime.service.conftest import CONFIG, states, value
from tests.runtime.service.test_lifecycle import ENSEMBLE

from argosy_runtime.repository.options import ControlMode


@pytest.fixture
def read_on_this_thread(repository, monkeypatch) -> Iterator[list[str]]:
    """Yield the paths below the repository that are looked at on the thread of the event loop."""
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


WARM_UP = """
model_warmup [ { name: "w" batch_size: 1 inputs {
  key: "X" value { data_type: TYPE_FP32 dims: 1 input_data_file: "x" } } } ]
"""


def labelled(config: str) -> str:
    """Return the configuration with a file that names the output's classes."""
    return config.replace('name: "Y"', 'name: "Y" label_filename: "labels.txt"', 1)


async def test_loads_and_reloads(repository, serve, read_on_this_thread):
    plane = await serve()
    for name in "ab":
        repository.add(name, execute="y = x + 1", config=labelled(CONFIG) + WARM_UP)
        repository.write(name, {"labels.txt": "one", "warmup/x": b"\0" * 4}, labelled(CONFIG) + WARM_UP)
    repository.write("e", {"1/.keep": "", "labels.txt": "two"}, labelled(ENSEMBLE))
    read_on_this_thread.clear()
    await plane.load("e", None, {})
    repository.add("a", execute="y = x + 2", config=labelled(CONFIG) + WARM_UP)
    read_on_this_thread.clear()
    await plane.load("a", None, {})
    assert not read_on_this_thread
    assert [list(plane.labels(name, "", "Y")) for name in "ae"] == [["one"], ["two"]]
    assert await value(plane, "e", 1) == 4


async def test_a_label_file_is_read_byte_for_byte(repository, serve):
    plane = await serve()
    repository.add("m", config=labelled(CONFIG))
    repository.write("m", {"labels.txt": "\ufeffcat\u2028s\r\nd\rog\n"}, labelled(CONFIG))
    await plane.load("m", None, {})
    assert list(plane.labels("m", "", "Y")) == ["cat\u2028s", "d\rog"]


async def test_a_load_with_files(repository, serve, read_on_this_thread, monkeypatch, tmp_path):
    folder = repository.add("m")
    source = (folder / "1/model.py").read_bytes()
    monkeypatch.setattr("tempfile.tempdir", str(repository.path))
    plane = await serve()
    read_on_this_thread.clear()
    config = (
        '{"backend":"python","max_batch_size":8,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[1]}],'
        '"output":[{"name":"Y","data_type":"TYPE_FP32","dims":[1]}]}'
    )
    await plane.load("m", config, {"file:1/model.py": source})
    await plane.unload("m", False)
    assert not read_on_this_thread


async def test_polling(repository, serve, read_on_this_thread):
    repository.add("m")
    plane = await serve(ControlMode.POLL)
    repository.add("new")
    read_on_this_thread.clear()
    await plane.poll()
    assert await states(plane) == {"m:1": "READY", "new:1": "READY"}
    assert not read_on_this_thread
