"""A model's process with an interpreter of its own: another Python, other packages, an engine's environment."""

import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from e2e.starting import give_up
from tests.peers.cache import PeerUnavailableError
from tests.peers.python import other_python
from tests.runtime.service.conftest import CONFIG, value

from argosy.environments import running, tools
from argosy_runtime.errors import ServingError

PARAMETER = 'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{}" }} }}'


def packages_of(environment: Path) -> Path:
    """Return the folder of an environment's packages."""
    (folder,) = environment.glob("lib/python3*/site-packages")
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return a virtual environment of this Python, without packages but one that the server has, too."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    package = packages_of(folder) / "idna"
    package.mkdir()
    (package / "__init__.py").write_text("VERSION = 'idna of the environment'\n")
    return folder


async def test_a_model_runs_by_its_environment_s_interpreter_whose_packages_come_first(repository, serve, environment):
    code = f"""
    import subprocess, sys
    import idna, numpy, msgspec
    assert sys.prefix == {str(environment)!r} != {sys.prefix!r}, sys.prefix
    assert idna.VERSION == "idna of the environment"
    assert {sysconfig.get_path("purelib")!r} in msgspec.__file__
    assert os.environ["PATH"].startswith({str(environment / "bin")!r})
    assert os.environ["VIRTUAL_ENV"] == {str(environment)!r}
    assert (os.environ["VIRTUAL_ENV_PROMPT"], os.environ.get("PYTHONHOME")) == ("environment", None)
    here = subprocess.check_output([sys.executable, "-c", "import idna; print(idna.VERSION)"], text=True)
    assert here == "idna of the environment\\n", here
    """
    repository.add("m", code, config=CONFIG + PARAMETER.format(environment))
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


async def test_what_one_model_s_environment_has_no_other_process_imports(repository, serve, environment):
    (packages_of(environment) / "only_there.py").write_text("")
    repository.add("own", "import only_there", config=CONFIG + PARAMETER.format(environment))
    alone = """
    import idna, importlib.util, sys
    assert importlib.util.find_spec("only_there") is None
    assert not hasattr(idna, "VERSION")
    """
    repository.add("other", alone)
    plane = await serve()
    for name in ("own", "other"):
        await plane.load(name, None, {})
        assert await value(plane, name, 3) == 3
    assert not [folder for folder in sys.path if folder.startswith(str(environment))]


async def test_processes_that_such_a_model_spawns_import_the_model_and_the_server_s_code(
    repository, serve, environment
):
    code = """
    import multiprocessing
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(doubled, (2,)) == (4, "idna of the environment")
    """
    folder = repository.add("m", code, config=CONFIG + PARAMETER.format(environment))
    source = folder / "1/model.py"
    code = "def doubled(x):\n    import idna\n    import argosy_runtime.messages\n    return 2 * x, idna.VERSION\n\n"
    source.write_text(code + source.read_text())
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


async def test_auto_complete_runs_in_the_model_s_environment(repository, serve, environment):
    source = """
import idna
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        assert idna.VERSION == "idna of the environment"
        config.set_max_batch_size(5)
        return config
    def execute(self, requests):
        pass
"""
    repository.write("m", {"1/model.py": source}, 'backend: "python"\n' + PARAMETER.format(environment))
    plane = await serve()
    await plane.load("m", None, {})
    assert plane.model_config("m", "").max_batch_size == 5


@pytest.fixture(scope="module")
def other_environment(tmp_path_factory) -> Path:
    """Return an environment of another Python, with real packages that a model's process needs."""
    scratch = tmp_path_factory.mktemp("other")
    try:
        python = other_python()
    except PeerUnavailableError as reason:
        give_up(reason)
    tool = tools.find_tool(python, (), scratch)
    folder = scratch / "environment"
    running.run(tool.creating(folder), "create an environment", print)
    running.run(tool.installing(folder, ["numpy", "msgspec", "protobuf"]), "install packages", print)
    return folder


async def test_a_model_runs_on_another_python_with_packages_that_the_server_could_not_import(
    repository, serve, other_environment
):
    code = f"""
    import sys
    import google.protobuf, msgspec, numpy, tritonclient
    assert sys.version_info[1] != {sys.version_info.minor}
    for package in (google.protobuf, msgspec, numpy):
        assert package.__file__.startswith({str(other_environment)!r}), package.__file__
    assert {sysconfig.get_path("purelib")!r} not in sys.path
    """
    repository.add("m", code, "y = x * 2", CONFIG + PARAMETER.format(other_environment))
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 6


def stand_in(environment: Path, report: str) -> None:
    """Put a program in place of an environment's interpreter."""
    python = environment / "bin/python"
    python.unlink()
    python.write_text(f"#!/bin/sh\n{report}\n")
    python.chmod(0o755)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            """echo '{"version": "3.10.13", "abi": "cpython-310", "packages": "/p", "missing": []}'""",
            r"EXECUTION_ENV_PATH '.*/environment' has Python 3\.10\.13; the server, on Python 3\.\d+\.\d+, needs 3\.11",
        ),
        (
            """echo '{"version": "3.99.1", "abi": "cpython-399", "packages": "/p", "missing": ["numpy", "msgspec"]}'""",
            (
                r"has Python 3\.99\.1, and the server Python 3\.\d+\.\d+, whose packages it cannot import\. It lacks "
                r"numpy, msgspec: .*/bin/python -m pip install numpy msgspec, or create it with Python 3\.\d+"
            ),
        ),
        ("echo 'no such library' >&2; exit 127", r"has an interpreter that fails: .*bin/python: no such library"),
        ("echo hello", r"has an interpreter that cannot be run"),
    ],
    ids=["too old", "of another Python", "broken", "no Python"],
)
async def test_an_interpreter_that_cannot_run_the_model_is_refused_with_the_reason(
    repository, serve, environment, program, message
):
    stand_in(environment, program)
    repository.add("m", config=CONFIG + PARAMETER.format(environment))
    plane = await serve()
    with pytest.raises(ServingError, match=message):
        await plane.load("m", None, {})
