"""`requirements.txt` next to a `model.py`: installed once into an environment that the model's process runs by."""

import asyncio
import logging
import sys
import zipfile
from pathlib import Path

import pytest
from tests.runtime.service.conftest import CONFIG, value

from argosy_runtime.backends.environments import requirements
from argosy_runtime.errors import ServingError
from argosy_runtime.flags import parse

PACKAGE = "argosy_test_thing"
THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
OFFLINE = "--no-index\n--find-links ../../../wheels\n"
USES_IT = f"""
import sys
import numpy
import {PACKAGE}
assert {PACKAGE}.VALUE == 7
assert sys.prefix != {sys.prefix!r}
"""


def write_wheel(folder: Path, version: str = "1.0") -> Path:
    """Write a wheel with one module."""
    folder.mkdir(exist_ok=True)
    info = f"{PACKAGE}-{version}.dist-info"
    files = {
        f"{PACKAGE}.py": "VALUE = 7\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    wheel = folder / f"{PACKAGE}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, content)
    return wheel


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a folder for environments; the wheel lies next to it."""
    write_wheel(tmp_path / "wheels")
    return tmp_path / "cache"


def add(repository, name: str, requirements: str = f"{OFFLINE}{PACKAGE}==1.0\n", config: str = CONFIG) -> None:
    """Write a model with requirements."""
    folder = repository.add(name, USES_IT, config=config)
    (folder / "1/requirements.txt").write_text(requirements)


async def test_requirements_are_installed_once_for_all_models_that_have_them(repository, serve, cache, caplog):
    caplog.set_level(logging.INFO)
    add(repository, "one")
    add(repository, "two")
    plane = await serve(requirements=cache)
    await asyncio.gather(plane.load("one", None, {}), plane.load("two", None, {}))
    assert [await value(plane, name, 3) for name in ("one", "two")] == [3, 3]
    assert len([entry for entry in cache.iterdir() if entry.is_dir()]) == 1
    assert len([line for line in caplog.messages if ": installing " in line]) == 1
    assert any("Successfully installed" in line for line in caplog.messages)


async def test_they_are_not_installed_unless_that_is_allowed(repository, serve, cache):
    add(repository, "m")
    plane = await serve()
    with pytest.raises(ServingError, match=f"No module named '{PACKAGE}'") as caught:
        await plane.load("m", None, {})
    assert "Its requirements.txt is installed by a server with --allow-model-requirements=true." in caught.value.message
    assert not cache.exists()


async def test_files_of_the_model_are_no_modules_of_the_installer(repository, serve, cache, tmp_path):
    add(repository, "m")
    ran = tmp_path / "ran"
    for module in ("venv", "pip", "sitecustomize", "random", "logging", "urllib", "argparse", "optparse"):
        code = f"open({str(ran)!r}, 'a').write({module!r})"
        (repository.path / f"m/1/{module}.py").write_text(code)
    requirements.environment_of("m", repository.path / "m/1", cache)
    assert list(cache.glob(f"**/{PACKAGE}.py"))
    assert not ran.exists()


async def test_what_cannot_be_installed_fails_with_the_installers_message(repository, serve, cache):
    add(repository, "m", f"{OFFLINE}argosy-no-such-thing\n")
    plane = await serve(requirements=cache)
    with pytest.raises(ServingError, match=r"requirements\.txt' cannot be installed") as caught:
        await plane.load("m", None, {})
    assert "No matching distribution found for argosy-no-such-thing" in caught.value.message
    assert not [entry for entry in cache.iterdir() if entry.is_dir()]
    add(repository, "m")
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


async def test_what_a_killed_server_left_is_made_again(repository, serve, cache):
    add(repository, "m")
    left = cache / requirements._key(repository.path / "m/1")
    (left / "bin").mkdir(parents=True)
    plane = await serve(requirements=cache)
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3
    assert (left / "argosy-complete").exists()


async def test_a_model_on_a_thread_cannot_have_any(repository, serve, cache):
    add(repository, "m", config=CONFIG + THREAD)
    plane = await serve(requirements=cache)
    with pytest.raises(ServingError, match=r"has a requirements\.txt, which needs ISOLATION process, not thread"):
        await plane.load("m", None, {})


async def test_models_without_requirements_run_as_ever(repository, serve, cache):
    repository.add("m", f"import sys\nassert sys.prefix == {sys.prefix!r}")
    plane = await serve(requirements=cache)
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


def test_the_environment_is_that_of_the_requirements_and_of_all_files_that_they_name(tmp_path):
    version, wheels = tmp_path / "1", tmp_path / "wheels"
    version.mkdir()
    file, more = version / "requirements.txt", version / "more.txt"
    wheel = write_wheel(wheels)
    keys = []

    def changed(content: str | None = None) -> None:
        if content is not None:
            file.write_text(content)
        key = requirements._key(version)
        assert key not in keys
        keys.append(key)

    changed("numpy\n")
    changed("numpy>1\n")
    more.write_text("idna\n")
    changed("-r more.txt\n")
    more.write_text("idna>1\n")
    changed()
    changed("--find-links=../wheels\nidna\n")
    write_wheel(wheels, "2.0")
    changed()
    changed(f"{wheel}\n")
    wheel.write_bytes(b"other")
    changed()
    file.write_text("numpy\n")
    assert requirements._key(version) == keys[0]


def test_the_flags(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    repository = f"--model-repository={tmp_path}"
    allow = "--allow-model-requirements=true"
    assert parse([repository]).repository.requirements is None
    assert parse([repository, allow]).repository.requirements == tmp_path / "argosy/requirements"
    chosen = parse([repository, allow, f"--model-requirements-folder={tmp_path}/here"])
    assert chosen.repository.requirements == tmp_path / "here"
