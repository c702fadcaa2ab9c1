"""What both servers say of a load that fails: to the client, and in the index."""

from pathlib import Path
from typing import Any

import pytest
from tests.differential.conftest import PEERS
from tests.differential.http_calls import post, send
from tests.differential.test_differential_start import CONFIG, index, write
from tests.peers.fixtures import StartServer
from tests.peers.server import Server

WHY = "Internal: ValueError: no luck\n\nAt:\n  "


@pytest.fixture(params=PEERS)
def start(request: pytest.FixtureRequest, triton_server: StartServer, argosy_server: StartServer) -> StartServer:
    """Return the start of each side in turn."""
    return {"triton": triton_server, "argosy": argosy_server}[request.param]


def load(server: Server, model: str) -> tuple[int, str]:
    """Return the status and the error of a load."""
    answer: dict[str, Any] = send(server.http, post(f"/v2/repository/models/{model}/load", {}))
    return answer["status"], answer["body"]["error"]


def test_failed_loads_are_explained(start: StartServer, tmp_path: Path) -> None:
    for name in ("failing", "ensemble", "nobackend"):
        write(tmp_path, name)
    config = tmp_path / "ensemble/config.pbtxt"
    server = start(tmp_path, "--model-control-mode=explicit")
    status, text = load(server, "ensemble")
    assert status == 400
    missing = "ensemble ensemble contains models that are not available or ambiguous: nowhere\n"
    # Argosy's error continues with the reason.
    assert text.startswith(f"load failed for model 'ensemble': {missing}")
    config.write_text(config.read_text().replace("nowhere", "failing"))
    status, text = load(server, "ensemble")
    depends = (
        "ensemble 'ensemble' depends on 'failing' which has no loaded version. Model 'failing' loading failed with"
    )
    assert status == 400
    assert text.startswith(
        f"load failed for model 'ensemble': {depends} error: version 1 is at UNAVAILABLE state: {WHY}"
    )
    load(server, "nobackend")
    rows = index(server)
    assert rows["failing"]["reason"].startswith(WHY)
    assert rows["nobackend"]["reason"].startswith("Invalid argument: unable to find backend library for backend 'nope'")
    assert rows["ensemble"] == {"name": "ensemble"}
    server.stop()


def test_a_load_in_another_mode_is_refused(start: StartServer, tmp_path: Path) -> None:
    write(tmp_path, "echo")
    server = start(tmp_path)
    status, text = load(server, "echo")
    assert status == 503
    # Argosy's error continues with the request.
    assert text.startswith("explicit model load / unload is not allowed if polling is enabled")
    server.stop()


CODES = {
    "syntax": ("def x(:", "SyntaxError: invalid syntax (model.py, line 1)"),
    "classless": ("x = 1", "AttributeError: module '1.model' has no attribute 'TritonPythonModel'"),
}


def test_model_files_that_cannot_be_imported_and_groups_without_gpus(start: StartServer, tmp_path: Path) -> None:
    for name, (code, _) in CODES.items():
        write(tmp_path, name)
        (tmp_path / name / "1" / "model.py").write_text(code)
    write(tmp_path, "importing")
    path = tmp_path / "importing" / "1" / "model.py"
    path.write_text("import nothing_like_this")
    write(tmp_path, "gpu")
    (tmp_path / "gpu" / "config.pbtxt").write_text(CONFIG.replace("KIND_CPU", "KIND_GPU"))
    server = start(tmp_path, "--model-control-mode=explicit")
    failed = "load failed for model '{}': version 1 is at UNAVAILABLE state: {};\n"
    for name, (_, error) in CODES.items():
        assert load(server, name) == (400, failed.format(name, f"Internal: {error}"))
    text = load(server, "importing")[1]
    why = "Internal: ModuleNotFoundError: No module named 'nothing_like_this'\n\nAt:\n"
    assert text.startswith(failed.partition("{};")[0].format("importing") + f"{why}  {path}(1): <module>\n")
    # Frames of the interpreter's import, whose lines depend on its version.
    frames = [line.rpartition(": ")[2] for line in text.splitlines() if "frozen importlib" in line]
    assert frames == [
        "_call_with_frames_removed",
        "exec_module",
        "_load_unlocked",
        "_find_and_load_unlocked",
        "_find_and_load",
    ]
    why = "instance group gpu_0 of model gpu has kind KIND_GPU but no GPUs are available"
    assert load(server, "gpu") == (400, failed.format("gpu", f"Invalid argument: {why}"))
    server.stop()
