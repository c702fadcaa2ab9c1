"""Engine environments are made whole or not at all, by the real uv and the real pip, of small packages made here."""

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from argosy.cli import engines as command
from argosy.cli.application import application
from argosy.environments import tools
from argosy.environments.errors import EnvironmentFailedError
from argosy.environments.installing import Request, install, uninstall
from argosy.environments.inventory import BUILDS, installed, read_record
from argosy.environments.recipes import ENGINES, Alias, Device, Recipe, recipe


def wheel(folder: Path, name: str, version: str = "1.0", code: str = "") -> str:
    """Write a wheel of one module, and return its path."""
    module = name.replace("-", "_")
    path = folder / f"{module}-{version}-py3-none-any.whl"
    described = f"{module}-{version}.dist-info"
    files = {
        f"{module}.py": code,
        f"{described}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{described}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{described}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in {**files, f"{described}/RECORD": record}.items():
            archive.writestr(file, content)
    return str(path)


def small(tmp_path: Path, check: str = "import engine_core", version: str = "1.0", **fields: object) -> Recipe:
    """Return the recipe of an engine that is one module."""
    requirement = wheel(tmp_path, "engine-core", version)
    return Recipe("vllm", Device.CPU, (requirement,), check, **fields)


def request(root: Path, made_of: Recipe, **fields: object) -> Request:
    """Return the request to install it."""
    return Request(made_of, root, sys.executable, **fields)


@pytest.fixture(params=["uv", "pip"])
def tool(request, monkeypatch) -> str:
    """Have environments made by uv, and by pip as where no uv is installed."""
    if request.param == "pip":
        monkeypatch.setattr(tools, "_uv", lambda: None)
    return request.param


def test_an_environment_is_made_by_either_tool_without_extras_that_are_broken(tmp_path, tool):
    lines: list[str] = []
    made_of = small(
        tmp_path,
        check="import engine_core, importlib.metadata as m; assert m.version('engine') == '1.0+cpu'",
        alias=Alias("engine-core", "engine", "cpu"),
        optional=("broken_extra", "whole_extra", "absent_extra"),
    )
    extras = wheel(tmp_path, "broken_extra", code="1 / 0"), wheel(tmp_path, "whole_extra")
    made_of = replace(made_of, requirements=(*made_of.requirements, *extras))
    folder, record = install(request(tmp_path / "engines", made_of), lines.append)
    assert folder == tmp_path / "engines/vllm"
    assert record == read_record(folder)
    assert (record.engine, record.device, record.python) == ("vllm", "cpu", f"3.{sys.version_info.minor}")
    steps = [line for line in lines if line[1:3] == "/4"]
    assert [line[:3] for line in steps] == ["1/4", "2/4", "3/4", "4/4"]
    assert steps[1].endswith(f"by {tool}")
    file = subprocess.check_output([folder / "bin/python", "-c", "import engine_core as e; print(e.__file__)"])
    assert str(folder).encode() in file
    (packages,) = folder.glob("lib/python3*/site-packages")
    assert (packages / "whole_extra.py").exists()
    assert not (packages / "broken_extra.py").exists()
    assert any(line.startswith("removed broken_extra, which") for line in lines)


def test_one_of_the_same_recipe_is_not_made_again_unless_that_is_requested(tmp_path):
    root, made_of = tmp_path / "engines", small(tmp_path)
    folder, record = install(request(root, made_of), lambda line: None)
    before = folder.resolve()
    assert install(request(root, made_of), lambda line: None) == (folder, record)
    assert folder.resolve() == before
    install(request(root, made_of, again=True), lambda line: None)
    assert folder.resolve() != before
    assert not before.exists()


def test_what_does_not_start_or_install_leaves_the_former_environment(tmp_path):
    root, lines = tmp_path / "engines", []
    folder, record = install(request(root, small(tmp_path)), lines.append)
    before = folder.resolve()
    newer = small(tmp_path, "raise SystemError('no such device')", version="2.0")
    with pytest.raises(EnvironmentFailedError, match="was installed and does not start: SystemError: no such device"):
        install(request(root, newer), lines.append)
    gone = Recipe("vllm", Device.CPU, (str(tmp_path / "gone.whl"),), "", advice="look elsewhere")
    with pytest.raises(EnvironmentFailedError, match=r"(?s)cannot install vllm: .* ended with .*\nlook elsewhere$"):
        install(request(root, gone), lines.append)
    assert (folder.resolve(), read_record(folder)) == (before, record)
    assert [path.name for path in (root / BUILDS).iterdir() if path.is_dir()] == [before.name]


def test_an_environment_that_a_killed_installation_left_is_never_used_and_goes(tmp_path):
    root = tmp_path / "engines"
    half = root / BUILDS / "vllm-half"
    (half / "bin").mkdir(parents=True)
    (half / "bin/python").symlink_to(sys.executable)
    assert not list(installed([root]))
    install(request(root, small(tmp_path)), lambda line: None)
    assert not half.exists()
    assert [environment.engine for environment in installed([root])] == ["vllm"]


def test_an_environment_in_use_stays_when_it_is_replaced_and_is_not_removed(tmp_path):
    root = tmp_path / "engines"
    folder, _ = install(request(root, small(tmp_path)), lambda line: None)
    before = folder.resolve()
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [before / "bin/python", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"up\n"
        with pytest.raises(EnvironmentFailedError, match="is in use: unload the models of 'vllm' first"):
            uninstall(root, "vllm")
        install(request(root, small(tmp_path, version="2.0")), lambda line: None)
        assert folder.resolve() != before
        assert (before / "bin/python").exists()
        process.stdin.close()
    assert uninstall(root, "vllm")
    assert not list(installed([root]))
    assert not before.exists()
    assert not uninstall(root, "vllm")


def test_a_folder_that_something_else_made_stays(tmp_path):
    (tmp_path / "vllm/bin").mkdir(parents=True)
    with pytest.raises(EnvironmentFailedError, match=r"vllm was not made by argosy engines install: remove it, or use"):
        install(request(tmp_path, small(tmp_path)), lambda line: None)
    with pytest.raises(EnvironmentFailedError, match=r"was not made by argosy engines install; it stays"):
        uninstall(tmp_path, "vllm")


@pytest.mark.parametrize(
    ("engine", "device", "gpu", "first"),
    [
        ("vllm", None, False, "torch==2.13.0"),
        ("vllm", None, True, "vllm==0.33.0"),
        ("vllm", Device.CUDA, False, "vllm==0.33.0"),
        ("vllm", Device.CPU, True, "torch==2.13.0"),
        ("tensorrtllm", None, True, "tensorrt-llm==1.2.1"),
        ("tensorrtllm", Device.CUDA, False, "tensorrt-llm==1.2.1"),
    ],
)
def test_a_recipe_suits_the_machine_unless_a_device_is_named(engine, device, gpu, first):
    assert recipe(engine, device, lambda: gpu).requirements[0] == first


def test_what_does_not_run_on_the_device_is_refused_with_the_reason():
    with pytest.raises(EnvironmentFailedError, match=r"runs on NVIDIA's GPUs alone, and this machine has none"):
        recipe("tensorrtllm", None, lambda: False)
    with pytest.raises(EnvironmentFailedError, match=r"runs on NVIDIA's GPUs alone\. On a CPU"):
        recipe("tensorrtllm", Device.CPU, lambda: True)
    with pytest.raises(EnvironmentFailedError, match="no engine 'sglang' to install; the engines are vllm"):
        recipe("sglang", None, lambda: True)


def test_the_command_installs_lists_and_removes(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGOSY_ENGINES", str(tmp_path / "engines"))
    monkeypatch.setattr(command, "recipe", lambda engine, device, has_gpu: small(tmp_path))
    run = CliRunner()
    app = application(["engines"])
    done = run.invoke(app, ["engines", "install", "vllm"])
    assert done.exit_code == 0, done.output
    assert f"{tmp_path}/engines/vllm: " in done.output
    (row,) = json.loads(run.invoke(app, ["engines", "installed", "-o", "json"]).output)
    assert (row["engine"], row["device"], row["folder"]) == ("vllm", "cpu", f"{tmp_path}/engines/vllm")
    assert int(row["bytes"]) > 1000
    assert "ENGINE" in run.invoke(app, ["engines", "installed"]).output
    assert run.invoke(app, ["engines", "uninstall", "vllm"]).exit_code == 0
    refused = run.invoke(app, ["engines", "uninstall", "vllm"])
    assert refused.exit_code == 1
    assert f"there is no environment of 'vllm' in {tmp_path}/engines" in refused.output


def test_an_image_of_the_server_can_install_without_the_operator_s_packages():
    code = (
        "import sys; import argosy.cli.application as m; m.application(['engines'])\n"
        "sys.exit(', '.join({'pydantic', 'kopf', 'kubernetes', 'obstore', 'httpx'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ENGINES == ("vllm", "tensorrtllm")


def test_builds_of_images_get_the_reason_of_a_failure(tmp_path):
    command = [sys.executable, "-m", "argosy.environments", "tensorrtllm", "--device", "cpu", "--into", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("'tensorrtllm' runs on NVIDIA's GPUs alone. On a CPU language models run by")


def test_a_folder_of_builds_that_is_no_engine_s_stays(tmp_path):
    other = tmp_path / "engines" / BUILDS / "reports"
    other.mkdir(parents=True)
    install(request(tmp_path / "engines", small(tmp_path)), lambda line: None)
    assert uninstall(tmp_path / "engines", "vllm")
    assert other.is_dir()
