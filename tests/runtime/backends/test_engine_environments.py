"""Where the environment of an engine is found, and what is said where there is none."""

import sys
import venv
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from argosy_common import engine_folders
from argosy_runtime.backends import engine_backends, isolation
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.environments import engines
from argosy_runtime.backends.environments.choice import environment_of, is_certain
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.modelconfig import parse_text
from argosy_runtime.repository.options import BackendSetting, RepositoryOptions


def spec(backend: str = "vllm", environment: Path | None = None, parameters: str = "") -> InstanceSpec:
    """Return the spec of a model of that backend."""
    config = parse_text(f'name: "lm" backend: "{backend}" {parameters}')
    return InstanceSpec(config, 1, Path("/m"), Path("/m/1"), "lm_0", "KIND_CPU", 0, environment)


@pytest.fixture
def folders(tmp_path, monkeypatch) -> list[Path]:
    """Return two folders that are searched for environments; both are empty, and vllm is not installed here."""
    both = [tmp_path / "first", tmp_path / "second"]
    monkeypatch.setenv(engine_folders.VARIABLE, ":".join(map(str, both)))
    monkeypatch.setattr(engines, "find_spec", lambda package: None)
    return both


def test_the_first_folder_with_an_interpreter_is_taken(folders):
    (folders[0] / "vllm").mkdir(parents=True)
    venv.create(folders[1] / "vllm", symlinks=True)
    environment = environment_of(spec())
    assert environment.executable == str(folders[1] / "vllm/bin/python")
    assert environment.packages == folders[1] / f"vllm/lib/python3.{sys.version_info.minor}/site-packages"
    assert "PYTHONPATH" not in environment.variables
    venv.create(folders[0] / "vllm", symlinks=True)
    assert environment_of(spec()).executable == str(folders[0] / "vllm/bin/python")


def test_the_server_s_own_package_is_used_and_a_flag_comes_before_it(folders, tmp_path, monkeypatch):
    installed = ModuleSpec("vllm", None, origin="vllm/__init__.py")
    monkeypatch.setattr(engines, "find_spec", lambda package: installed if package == "vllm" else None)
    assert environment_of(spec()).executable == sys.executable
    venv.create(tmp_path / "own", symlinks=True)
    assert environment_of(spec(environment=tmp_path / "own")).executable == str(tmp_path / "own/bin/python")


def test_a_folder_of_the_package_s_name_is_no_package(folders, monkeypatch):
    folder = ModuleSpec("vllm", None, is_package=True)
    monkeypatch.setattr(engines, "find_spec", lambda package: folder)
    venv.create(folders[0] / "vllm", symlinks=True)
    assert environment_of(spec()).executable == str(folders[0] / "vllm/bin/python")


def test_a_model_s_own_environment_comes_before_the_engine_s(folders, tmp_path):
    venv.create(folders[0] / "vllm", symlinks=True)
    venv.create(tmp_path / "own", symlinks=True)
    own = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{tmp_path}/own" }} }}'
    assert environment_of(spec(parameters=own)).executable == str(tmp_path / "own/bin/python")


@pytest.mark.parametrize(("backend", "package"), [("vllm", "vllm"), ("tensorrtllm", "tensorrt_llm")])
def test_without_one_the_command_that_makes_it_is_named(folders, backend, package):
    with pytest.raises(ServingError, match=f"needs the package '{package}'.* argosy engines install {backend}") as no:
        environment_of(spec(backend))
    assert no.value.kind is ErrorKind.UNAVAILABLE
    assert all(str(folder / backend) in no.value.message for folder in folders)


def test_a_flag_s_folder_without_an_interpreter_is_named(folders, tmp_path):
    with pytest.raises(ServingError, match=f"the environment '{tmp_path}' of backend 'vllm' has no interpreter"):
        environment_of(spec(environment=tmp_path))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ARGOSY_ENGINES": "/a:/b"}, ["/a", "/b"]),
        ({"XDG_DATA_HOME": "/data"}, ["/data/argosy/engines", "/opt/argosy/engines"]),
        ({"XDG_DATA_HOME": "relative"}, [f"{Path.home()}/.local/share/argosy/engines", "/opt/argosy/engines"]),
        ({"ARGOSY_ENGINES": ""}, [f"{Path.home()}/.local/share/argosy/engines", "/opt/argosy/engines"]),
    ],
)
def test_folders_that_are_searched(variables, expected):
    assert [str(folder) for folder in engine_folders.searched(variables)] == expected


def test_engines_run_in_processes_of_their_own_alone():
    assert engine_backends() == {"vllm", "tensorrtllm"}
    thread = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
    for backend in engine_backends():
        assert isolation(spec(backend).config) == "process"
        with pytest.raises(ServingError, match=f"ISOLATION is 'thread', and backend '{backend}' runs in a process"):
            isolation(spec(backend, parameters=thread).config)
        assert not is_certain(spec(backend))
    assert is_certain(spec("python"))


def test_the_last_setting_of_a_backend_names_its_environment():
    settings = ["vllm,environment=/a", "vllm,environment=/b", "tensorrtllm,environment=/c", "python,environment=/d"]
    options = RepositoryOptions((), backend_settings=tuple(map(BackendSetting.parse, settings)))
    named = {backend: options.environment(backend) for backend in ("vllm", "tensorrtllm", "python")}
    assert named == {"vllm": Path("/b"), "tensorrtllm": Path("/c"), "python": None}
    assert [setting.acts for setting in options.backend_settings] == [True, True, True, False]
    with pytest.raises(ValueError, match="'vllm,environment=there': environment must be the absolute path of a folder"):
        BackendSetting.parse("vllm,environment=there")
