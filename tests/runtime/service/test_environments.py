"""A Python model's own environment (EXECUTION_ENV_PATH): its process starts in it."""

import io
import sys
import tarfile
import tempfile

import pytest
from tests.runtime.service.conftest import CONFIG, value
from tests.waiting import until

from argosy_runtime.errors import ServingError

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = f"lib/{PYTHON}/site-packages"
INITIALIZE = """
import subprocess, sys
import idna
import beside
assert "/env" in idna.__file__ or "argosy-environment" in idna.__file__, idna.__file__
assert beside.VALUE == 7
assert subprocess.run(["argosy-test-tool"], capture_output=True, text=True, check=True).stdout == "a tool\\n"
assert os.environ["LD_LIBRARY_PATH"].split(":")[0].endswith("/lib")
said = subprocess.check_output([sys.executable, "-c", "import idna; print(idna.VERSION)"], text=True)
assert said == "idna of the environment\\n", said
"""
FILES = {
    f"{PACKAGES}/idna/__init__.py": "VERSION = 'idna of the environment'\n",
    f"{PACKAGES}/more.pth": "../../../more\n",
    "more/beside.py": "VALUE = 7\n",
    "bin/argosy-test-tool": "#!/bin/sh\necho a tool\n",
    "lib/libmine.so": "",
}
PARAMETER = 'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "$$TRITON_MODEL_DIRECTORY/{}" }} }}'


def archive(files: dict[str, str]) -> bytes:
    """Return the files as a tar.gz; those in `bin` are executable."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            made.addfile(member, io.BytesIO(content.encode()))
    return packed.getvalue()


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
async def test_what_a_model_brings_along_comes_before_the_servers(repository, serve, packed):
    folder = repository.add("m", INITIALIZE, config=CONFIG + PARAMETER.format("env.tar.gz" if packed else "env"))
    if packed:
        (folder / "env.tar.gz").write_bytes(archive(FILES))
    else:
        repository.write(
            "m", {f"env/{name}": content for name, content in FILES.items()}, (folder / "config.pbtxt").read_text()
        )
        (folder / "env/bin/argosy-test-tool").chmod(0o755)
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


async def test_an_incompatible_package_is_reported_with_both_versions(repository, serve):
    files = {
        f"env/{PACKAGES}/msgspec/__init__.py": "raise ImportError('too old')\n",
        f"env/{PACKAGES}/msgspec-0.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: msgspec\nVersion: 0.1.0\n",
    }
    config = CONFIG + PARAMETER.format("env")
    repository.add("m", config=config)
    repository.write("m", files, config)
    plane = await serve()
    with pytest.raises(ServingError, match=r"in place of the server's packages: msgspec 0\.1\.0 for \d"):
        await plane.load("m", None, {})


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the temporary folder of the server and of its models' processes."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


async def test_what_is_unpacked_goes_with_the_last_model_that_uses_it(repository, serve, temporary):
    for name in ("a", "b"):
        folder = repository.add(name, "import idna", config=CONFIG + PARAMETER.format("env.tar.gz"))
        (folder / "env.tar.gz").unlink(missing_ok=True)
        (folder / "env.tar.gz").symlink_to(repository.path.parent / "env.tar.gz")
    shared = repository.path.parent / "env.tar.gz"
    shared.write_bytes(archive(FILES))
    plane = await serve()
    await plane.load("a", None, {})
    await plane.load("b", None, {})
    (first,) = temporary.glob("argosy-environment-*")
    shared.write_bytes(archive({**FILES, "more/new.py": ""}))
    await plane.load("a", None, {})
    await until(lambda: len(list(temporary.glob("argosy-environment-*"))) == 2)
    await plane.unload("b", False)
    await until(lambda: not first.exists())
    assert await value(plane, "a", 3) == 3
    await plane.unload("a", False)
    await until(lambda: not list(temporary.glob("argosy-environment-*")))


async def test_what_failed_loads_unpack_does_not_stay(repository, serve, temporary):
    folder = repository.add("m", "1 / 0", config=CONFIG + PARAMETER.format("env.tar.gz"))
    (folder / "env.tar.gz").write_bytes(archive(FILES))
    plane = await serve()
    with pytest.raises(ServingError, match="ZeroDivisionError"):
        await plane.load("m", None, {})
    assert not list(temporary.glob("argosy-environment-*"))


async def test_an_environment_that_is_not_there_is_named(repository, serve):
    repository.add("m", config=CONFIG + PARAMETER.format("env"))
    plane = await serve()
    with pytest.raises(ServingError, match=r"EXECUTION_ENV_PATH '.*/m/env' does not exist"):
        await plane.load("m", None, {})
