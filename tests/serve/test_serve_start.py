"""`argosy serve` starts, or reports why not: exit 1, the flag or the model named, nothing left running."""

import json
import resource
import socket
from pathlib import Path

import psutil
import pytest
from tests.serve.conftest import AddModel, Start
from tests.serve.process import PATIENCE_S, wait_until


@pytest.mark.parametrize("flag", ["http_port", "grpc_port", "metrics_port"])
def test_a_port_in_use(serve: Start, add_model: AddModel, flag: str) -> None:
    add_model("echo")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = serve(**{flag: port})
        assert server.process.wait(PATIENCE_S) == 1
    assert f"--{flag.replace('_', '-')} {port} is in use" in server.text
    assert "Traceback" not in server.text
    assert server.left() == []


def test_as_many_connections_as_the_machine_allows(serve: Start, add_model: AddModel) -> None:
    add_model("echo")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[1]), before[1]))
    try:
        server = serve().wait_until_ready()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    soft, hard = psutil.Process(server.process.pid).rlimit(psutil.RLIMIT_NOFILE)
    assert soft == (1 << 20 if hard == resource.RLIM_INFINITY else min(hard, 1 << 20))


def test_an_unknown_flag(serve: Start, add_model: AddModel) -> None:
    add_model("echo")
    server = serve("--no-such-flag=1")
    assert server.process.wait(PATIENCE_S) in (1, 2)
    assert "--no-such-flag" in server.text
    assert "Traceback" not in server.text


@pytest.mark.parametrize("flag", ["--exit-on-error=perhaps", "--http-port=many", "--model-control-mode=sometimes"])
def test_a_flag_with_a_wrong_value(serve: Start, add_model: AddModel, flag: str) -> None:
    add_model("echo")
    server = serve(flag)
    assert server.process.wait(PATIENCE_S) in (1, 2)
    assert flag.split("=")[0] in server.text
    assert flag.split("=")[1] in server.text
    assert "Traceback" not in server.text


def test_a_missing_repository(serve: Start, tmp_path: Path) -> None:
    server = serve(repository=tmp_path / "nowhere")
    assert server.process.wait(PATIENCE_S) == 1
    assert str(tmp_path / "nowhere") in server.text
    assert "Traceback" not in server.text
    assert server.left() == []


@pytest.mark.parametrize("flags", [[], ["--model-control-mode=explicit", "--load-model=*"]])
def test_a_model_that_fails_ends_the_start(serve: Start, add_model: AddModel, flags: list[str]) -> None:
    add_model("echo")
    add_model("unlucky", initialize="raise ValueError('no luck today')")
    server = serve(*flags)
    assert server.process.wait(PATIENCE_S) == 1
    failed = [line for line in server.text.splitlines() if "failed to load" in line and "unlucky" in line]
    assert failed
    assert "no luck today" in server.text
    assert "--exit-on-error" in server.text
    assert server.left() == []


@pytest.mark.parametrize("flags", [[], ["--model-control-mode=explicit", "--load-model=*"]])
def test_a_config_that_is_wrong_is_reported_in_the_log(serve: Start, add_model: AddModel, flags: list[str]) -> None:
    folder = add_model("typo")
    (folder / "config.pbtxt").write_text('backend: "python"\nmax_batch_sice: 8\n')
    server = serve(*flags)
    assert server.process.wait(PATIENCE_S) == 1
    assert "typo" in server.text
    assert "max_batch_sice" in server.text


def test_exit_on_error_false_serves_the_others(serve: Start, add_model: AddModel) -> None:
    add_model("echo")
    add_model("unlucky", initialize="raise ValueError('no luck today')")
    server = serve("--exit-on-error=false")
    server.wait_for_ports()
    wait_until(lambda: server.status("/v2/models/echo/ready") == 200, server.log)
    wait_until(lambda: "failed to load: unlucky" in server.text, server.log)
    assert server.infer("echo", 3) == (200, 3)
    assert server.status("/v2/health/live") == 200
    assert server.status("/v2/health/ready") == 400
    rows = {row["name"]: row for row in json.loads(server.ask("/v2/repository/index", b"")[1])}
    assert rows["unlucky"]["state"] == "UNAVAILABLE"
    assert "no luck today" in rows["unlucky"]["reason"]
    status, error = server.infer("unlucky", 1)
    assert status >= 400
    assert "unlucky" in error
    assert "" not in server.text.splitlines()


def test_strict_readiness_false_is_ready_without_the_failed(serve: Start, add_model: AddModel) -> None:
    add_model("unlucky", initialize="raise ValueError('no luck today')")
    server = serve("--exit-on-error=false", "--strict-readiness=false").wait_until_ready()
    assert server.status("/v2/models/unlucky/ready") == 400


def test_load_model_loads_what_it_names(serve: Start, add_model: AddModel) -> None:
    add_model("wanted")
    add_model("other")
    server = serve("--model-control-mode=explicit", "--load-model=wanted").wait_until_ready()
    assert server.infer("wanted", 5) == (200, 5)
    assert server.status("/v2/models/other/ready") == 400
    assert server.ask("/v2/repository/models/other/load", b"")[0] == 200
    assert server.infer("other", 6) == (200, 6)


def test_load_model_of_what_is_not_there(serve: Start, add_model: AddModel) -> None:
    add_model("echo")
    server = serve("--model-control-mode=explicit", "--load-model=ehco")
    assert server.process.wait(PATIENCE_S) == 1
    assert "ehco" in server.text
    assert server.left() == []


def test_load_model_needs_explicit_mode(serve: Start, add_model: AddModel) -> None:
    add_model("echo")
    server = serve("--load-model=echo")
    assert server.process.wait(PATIENCE_S) in (1, 2)
    assert "--model-control-mode=explicit" in server.text


def test_models_are_not_loaded_by_request_without_explicit_mode(serve: Start, add_model: AddModel) -> None:
    add_model("echo")
    server = serve().wait_until_ready()
    status, body = server.ask("/v2/repository/models/echo/unload", b"")
    assert status == 503
    assert b"explicit model load / unload is not allowed if polling is enabled" in body
    assert server.infer("echo", 1) == (200, 1)


def test_poll_mode_follows_the_repository(serve: Start, add_model: AddModel) -> None:
    add_model("first")
    server = serve("--model-control-mode=poll", "--repository-poll-secs=0.2").wait_until_ready()
    assert server.infer("first", 1) == (200, 1)
    folder = add_model("second", execute="y = x + 1")
    wait_until(lambda: server.status("/v2/models/second/ready") == 200, server.log)
    assert server.infer("second", 1) == (200, 2)
    model = folder / "1" / "model.py"
    model.write_text(model.read_text().replace("y = x + 1", "y = x + 2"))
    wait_until(lambda: server.infer("second", 1) == (200, 3), server.log)
    folder.rename(folder.parents[1] / "gone")
    wait_until(lambda: server.status("/v2/models/second/ready") == 400, server.log)
    assert server.infer("first", 1) == (200, 1)


def test_every_log_line_is_the_servers_own(serve: Start, add_model: AddModel) -> None:
    """A library that writes into the log by itself does so unnoticed otherwise."""
    for number in range(3):
        add_model(f"echo{number}")
    server = serve().wait_until_ready()
    levels = ("INFO", "WARNING", "ERROR")
    strange = [line for line in server.text.splitlines() if line.split()[2:3] not in [[level] for level in levels]]
    assert strange == []
