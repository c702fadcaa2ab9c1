"""A model's file, its environment and its isolation: found and imported, or refused by name."""

import io
import random
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.backends.python.sources import CONFIG, ECHO, THREAD, request

from argosy_runtime.backends import python
from argosy_runtime.errors import ErrorKind, ServingError


def test_a_missing_file_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(CONFIG)
    for act in (
        lambda: python.load(folder.spec(), host),
        lambda: python.complete_config(folder.model_dir, folder.version_dir, folder.config),
    ):
        with pytest.raises(ServingError, match=r"Python model file not found in '.*/m/1/model\.py'") as raised:
            act()
        assert raised.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import nothing_like_this", "ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("x = (", r"SyntaxError"),
        ("class Other: pass", "AttributeError: module '1.model' has no attribute 'TritonPythonModel'"),
        (
            "class TritonPythonModel:\n    def initialize(self, args):\n        1 / 0",
            r"ZeroDivisionError: division by zero\n\nAt:\n  .*model\.py\(3\): initialize",
        ),
    ],
)
def test_a_model_that_cannot_load_says_why(loaded: Any, source: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected):
        loaded(source)


def test_a_reload_within_the_same_second_sees_the_new_source(loaded: Any, host: Any, responder: Any) -> None:
    first = loaded(ECHO)
    folder = first._spec.version_dir
    (folder / "model.py").write_text(ECHO.replace("data + 1", "data + 5"))
    second = python.load(first._spec, host)
    second.execute([request(1)], responder)
    assert responder.only().outputs[0].array[0, 0] == 6
    second.close()


def test_another_file_name(model_folder: Callable[[str], Any], host: Any, responder: Any) -> None:
    folder = model_folder(CONFIG + THREAD + 'default_model_filename: "my-model.v2.py"')
    (folder.version_dir / "my-model.v2.py").write_text(ECHO)
    instance = python.load(folder.spec(), host)
    instance.execute([request()], responder)
    assert responder.only().error is None
    instance.close()


def test_isolation_must_be_valid(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(CONFIG + THREAD.replace("thread", "vm"))
    (folder.version_dir / "model.py").write_text(ECHO)
    with pytest.raises(ServingError, match="ISOLATION is 'vm'"):
        python.load(folder.spec(), host)


def test_a_process_of_its_own_imports_by_name(
    model_folder: Callable[[str], Any], host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = model_folder(CONFIG)
    (folder.version_dir / "beside_the_model.py").write_text("VALUE = 1")
    (folder.version_dir / "model.py").write_text("import beside_the_model\nclass TritonPythonModel:\n    pass\n")
    python.load(folder.spec(), host).close()
    assert str(folder.version_dir) in sys.path
    del sys.modules["beside_the_model"]


def test_an_environment_of_another_python_is_refused(model_folder: Callable[[str], Any], host: Any) -> None:
    env = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env" } }'
    folder = model_folder(CONFIG + env)
    (folder.version_dir / "model.py").write_text(ECHO)
    with pytest.raises(ServingError, match=r"EXECUTION_ENV_PATH '.*/m/env' does not exist"):
        python.load(folder.spec(), host)
    (folder.model_dir / "env" / "lib" / "python3.4").mkdir(parents=True)
    with pytest.raises(ServingError, match=r"holds python3\.4, but this server runs python3"):
        python.load(folder.spec(), host)


def _packed_environment() -> bytes:
    """Return a tar.gz of an environment with one file that does not compress."""
    content, packed = random.Random(0).randbytes(1 << 16), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("lib/data.bin")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


_PACKED = _packed_environment()


@pytest.mark.parametrize(
    "archive",
    [_PACKED[: len(_PACKED) // 2], _PACKED[:200] + b"\xff" * 200 + _PACKED[400:], b"", b"no archive"],
    ids=["cut off", "damaged", "empty", "no archive"],
)
def test_a_broken_environment_leaves_nothing_behind(
    archive: bytes, model_folder: Callable[[str], Any], host: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    env = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }'
    folder = model_folder(CONFIG + env)
    (folder.version_dir / "model.py").write_text(ECHO)
    (folder.model_dir / "env.tar.gz").write_bytes(archive)
    with pytest.raises(ServingError, match=r"EXECUTION_ENV_PATH '.*/env\.tar\.gz' cannot be unpacked: it is [^\n]*$"):
        python.load(folder.spec(), host)
    assert not list(temporary.iterdir())


def test_an_environment_is_importable(
    model_folder: Callable[[str], Any], host: Any, responder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    env = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env" } }'
    folder = model_folder(CONFIG + env)
    running = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder.model_dir / "env" / "lib" / running / "site-packages"
    packages.mkdir(parents=True)
    (packages / "brought_along.py").write_text("VALUE = 5")
    source = "import brought_along\n" + ECHO.replace("data + 1", "data + brought_along.VALUE")
    (folder.version_dir / "model.py").write_text(source)
    instance = python.load(folder.spec(), host)
    instance.execute([request(1)], responder)
    assert responder.only().outputs[0].array[0, 0] == 6
    instance.close()
    del sys.modules["brought_along"]


@pytest.mark.parametrize("name", ["a;b", "a b$c", "m'", "what?", "x[1]"])
def test_a_name_that_triton_does_not_start_is_refused_in_its_words(
    model_folder: Callable[[str], Any], host: Any, name: str
) -> None:
    folder = model_folder(CONFIG)
    (folder.version_dir / "model.py").write_text(ECHO)
    spec = replace(folder.spec(), name=name)
    with pytest.raises(ServingError, match="Invalid stub name: contains invalid characters") as raised:
        python.load(spec, host)
    assert raised.value.kind is ErrorKind.INVALID_ARG
