"""`argosy up` with the real runtime: what people do to it, and what it must stand."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from tests.acceptance.running import wait_for

SOURCES = [str(Path(__file__).resolve().parents[3] / part) for part in ("operator", "runtime")]
Documents = Callable[[str, int, str], str]
Start = Callable[..., Any]
Servers = Callable[[], list[psutil.Process]]


def test_once_serves_says_so_and_leaves_nothing(
    workspace: Any, any_up: Start, documents: Documents, pipe: str, servers: Servers
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write_model("triple", 3.0)
    workspace.write(documents("one", 1, "double"), documents("two", 1, "triple"), pipe)
    run = any_up("--once", "--timeout=60")
    assert run.process.wait(90) == 0, run.output
    for name in ("InferenceModel one v1", "InferenceModel two v1", "Ensemble pipe v1"):
        assert f"{name}: Ready=True (Serving)" in run.output
    assert servers() == []


def test_once_fails_fast_with_the_reason_while_the_rest_is_served(
    workspace: Any, any_up: Start, documents: Documents, servers: Servers
) -> None:
    workspace.write_model("good", 2.0)
    workspace.write_model("bad", 3.0, body="raise ValueError('no weights here')")
    workspace.write(documents("one", 1, "good"), documents("two", 1, "bad"))
    run = any_up("--once", "--timeout=80")
    assert run.process.wait(90) == 1, run.output
    assert "InferenceModel one v1: Ready=True" in run.output
    assert "InferenceModel two v1: Ready=False (LoadFailed)" in run.output
    assert "no weights here" in run.output
    assert "not everything is Ready after" not in run.output
    assert servers() == []


def test_a_killed_up_is_taken_over_and_a_signal_leaves_no_process(
    workspace: Any, any_up: Start, documents: Documents, servers: Servers
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    first = any_up()
    first.until_ready("one")
    pid = first.server_pid()
    first.end(signal.SIGKILL)
    assert first.infer("one", 4.0) == 8.0
    second = any_up()
    second.until_ready("one")
    assert second.server_pid() == pid
    assert second.infer("one", 4.0) == 8.0
    log = (workspace.state / "servers" / "laptop-0" / "server.log").read_text()
    assert log.count("successfully loaded 'one'") == 1
    assert second.end(signal.SIGINT) == 0
    assert servers() == []
    assert not psutil.pid_exists(pid)


def test_a_web_page_controls_no_server_and_the_token_is_nowhere_to_be_seen(
    workspace: Any, any_up: Start, documents: Documents, servers: Servers
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    run = any_up()
    run.until_ready("one")
    source = base64.b64encode(b"raise SystemExit").decode()
    body = json.dumps({"parameters": {"config": "{}", "file:1/model.py": source}})
    page = {"content-type": "text/plain", "origin": "http://evil.example", "host": "evil.example"}
    for action in ("load", "unload"):
        reply = httpx.post(f"{run.url}/v2/repository/models/one/{action}", content=body, headers=page, timeout=20)
        assert reply.status_code == 403
    assert run.infer("one", 4.0) == 8.0
    (file,) = workspace.state.glob("servers/*/control-token")
    assert file.stat().st_mode & 0o777 == 0o400
    token = file.read_text().strip()
    titles = " ".join(word for process in servers() for word in process.cmdline())
    written = " ".join(path.read_text() for path in workspace.state.rglob("*.json"))
    logs = " ".join(path.read_text() for path in workspace.state.rglob("*.log"))
    assert token not in titles + written + logs + run.output
    os.kill(run.server_pid(), signal.SIGKILL)
    wait_for(lambda: file.read_text().strip() != token, lambda: run.output)


def test_edits_under_load_lose_no_request(workspace: Any, any_up: Start, documents: Documents, pipe: str) -> None:
    edit_under_load(workspace, any_up, documents, pipe)


@pytest.mark.triton
def test_edits_under_load_lose_no_request_on_nvidias_server(
    workspace: Any, triton_up: Start, documents: Documents, pipe: str
) -> None:
    edit_under_load(workspace, triton_up, documents, pipe)


def edit_under_load(workspace: Any, start: Start, documents: Documents, pipe: str) -> None:
    """Send requests from two threads while versions, then files, change; no answer may be wrong or missing."""
    workspace.write_model("double", 2.0)
    workspace.write_model("triple", 3.0)
    workspace.write(documents("one", 1, "double"), documents("two", 1, "triple"), pipe)
    run = start()
    run.until_ready("one", "two", "pipe")
    seen: list[float] = []
    failures: list[str] = []
    stop = threading.Event()

    def load() -> None:
        with httpx.Client() as client:
            while not stop.is_set():
                try:
                    seen.append(run.infer("pipe", 1.0, client))
                except (AssertionError, httpx.HTTPError) as error:
                    failures.append(repr(error))

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        # both steps' versions at once: no request may see one of them without the other
        workspace.write_model("five", 5.0)
        workspace.write_model("seven", 7.0)
        workspace.write(documents("one", 2, "five"), documents("two", 2, "seven"), pipe)
        _until(run, lambda: run.infer("pipe", 1.0) == 35.0 and run.statuses()["one"].get("activeVersion") == 2)
        run.until_ready("one", "two", "pipe")
        # the same version's files
        workspace.write_model("seven", 11.0)
        _until(run, lambda: run.infer("pipe", 1.0) == 55.0)
        run.until_ready("two", "pipe")
        _until(run, lambda: 55.0 in seen)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert set(seen) == {6.0, 35.0, 55.0}
    repository = workspace.state / "servers" / "laptop-0" / "repository"
    assert [path.name for path in (repository / "one").iterdir() if path.is_dir()] == ["2"]


def _until(run: Any, what: Callable[[], bool]) -> None:
    deadline = 600
    for _ in range(deadline):
        if what():
            return
        threading.Event().wait(0.1)
    raise AssertionError(run.output)


def test_a_bad_manifest_or_a_bad_version_keeps_what_is_served(
    workspace: Any, any_up: Start, documents: Documents
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    run = any_up()
    run.until_ready("one")
    workspace.write(
        documents("one", 1, "double").replace("poolRef: {name: laptop}", "poolRef: {name: laptap}"),
        "  nonsense: true\n",
    )
    run.until_says("nonsense")
    assert run.infer("one", 1.0) == 2.0
    workspace.write_model("bad", 3.0, body="raise ValueError('no weights here')")
    workspace.write(documents("one", 2, "bad"))
    run.until_says("no weights here")
    assert run.infer("one", 1.0) == 2.0
    assert run.condition("one", "Stalled")["status"] == "True"
    workspace.write_model("bad", 3.0)
    _until(run, lambda: run.infer("one", 1.0) == 3.0)
    run.until_ready("one")


def test_what_is_taken_out_of_the_manifests_is_unloaded(workspace: Any, up: Start, documents: Documents) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"), documents("two", 1, "double"))
    run = up()
    run.until_ready("one", "two")
    workspace.write(documents("one", 1, "double"))
    _until(run, lambda: httpx.get(f"{run.url}/v2/models/two/ready").status_code != 200)
    assert run.infer("one", 1.0) == 2.0
    _until(run, lambda: not (workspace.state / "servers" / "laptop-0" / "repository" / "two").exists())


def test_a_crashed_server_is_started_again_with_its_models(workspace: Any, up: Start, documents: Documents) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    run = up()
    run.until_ready("one")
    pid = run.server_pid()
    psutil.Process(pid).kill()
    run.until_says("was ended by SIGKILL")
    _until(run, lambda: len(list((workspace.state / "servers").glob("*/process.json"))) == 1)
    _until(run, lambda: run.condition("one").get("status") == "True" and run.server_pid() != pid)
    assert run.infer("one", 1.0) == 2.0


def test_a_server_that_hangs_is_not_ready_until_it_answers_again(
    workspace: Any, up: Start, documents: Documents
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    run = up()
    run.until_ready("one")
    process = psutil.Process(run.server_pid())
    process.suspend()
    try:
        run.until_says("has not answered for 5 s")
        _until(run, lambda: run.condition("one").get("status") == "False")
        _until(run, lambda: run.condition("laptop").get("reason") == "ServersNotReady")
    finally:
        process.resume()
    _until(run, lambda: run.condition("one").get("status") == run.condition("laptop").get("status") == "True")
    assert run.infer("one", 1.0) == 2.0


def test_a_port_in_use_names_its_flag(
    workspace: Any, up: Start, documents: Documents, servers: Servers, ports: tuple[int, int, int]
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports[1]))
        other.listen()
        run = up()
        assert run.process.wait(60) == 1
    assert f"port {ports[1]} on 127.0.0.1 is in use by another program: pass another one with --grpc-port" in run.output
    assert servers() == []


def test_an_address_of_another_machine_is_named(
    workspace: Any, up: Start, documents: Documents, servers: Servers
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    run = up("--host=192.0.2.1")
    assert run.process.wait(60) == 1
    assert "this machine cannot listen on 192.0.2.1: Cannot assign requested address: pass one of its" in run.output
    assert servers() == []


@pytest.mark.parametrize(("right", "wrong"), [("name: one", "name: One_"), ("InferenceModel", "InferenceModell")])
def test_a_wrong_name_or_kind_stops_no_server(
    workspace: Any, up: Start, documents: Documents, right: str, wrong: str
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    run = up()
    run.until_ready("one")
    workspace.write(documents("one", 1, "double").replace(right, wrong))
    status = workspace.state / "status.json"
    _until(run, lambda: json.loads(status.read_text())["problems"] != [])
    assert set(run.statuses()) == {"one", "laptop"}
    assert run.infer("one", 1.0) == 2.0
    workspace.write(documents("one", 1, "double"))
    run.until_says("all manifests are valid again")
    assert run.infer("one", 1.0) == 2.0


def test_one_state_folder_has_one_up(workspace: Any, up: Start, documents: Documents) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    first = up()
    first.until_ready("one")
    second = up()
    assert second.process.wait(60) == 1
    assert f"(pid {first.process.pid})" in second.output
    assert first.infer("one", 1.0) == 2.0


def test_manifests_that_are_wrong_from_the_start_start_nothing(
    workspace: Any, up: Start, documents: Documents, servers: Servers
) -> None:
    wrong = (documents("one", 1, "double").replace("python", "pyton"), documents("two", 0, "double"))
    (workspace.manifests / "all.yaml").write_text("".join(wrong))
    run = up()
    assert run.process.wait(60) == 1
    assert "spec.modelFormat.name" in run.output
    assert "spec.version" in run.output
    assert servers() == []


def test_a_right_pool_is_begun_alongside_a_wrong_model(workspace: Any, up: Start, documents: Documents) -> None:
    workspace.write_model("double", 2.0)
    workspace.write()
    one = workspace.manifests / "one.yaml"
    one.write_text(documents("one", 1, "double").replace("python", "pyton"))
    run = up()
    run.until_says("ServingPool laptop: Ready=")
    assert f"{one}: InferenceModel default/one: spec.modelFormat.name" in run.output
    one.write_text(documents("one", 1, "double"))
    run.until_ready("one")
    assert run.infer("one", 1.0) == 2.0


def test_what_a_rollout_will_do_that_may_surprise_is_printed_once(
    workspace: Any, up: Start, documents: Documents
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    run = up()
    run.until_ready("one")
    surprising = documents("one", 1, "double").replace("spec:\n", "spec:\n  rollout: {strategy: Recreate}\n", 1)
    workspace.write(surprising)
    run.until_says("InferenceModel default/one: spec.rollout.strategy: Recreate unloads the only replica")
    workspace.write(surprising, documents("two", 1, "double"))
    run.until_ready("two")
    assert run.output.count("Recreate unloads the only replica") == 1


def test_get_prints_the_crds_columns_and_what_has_no_effect(workspace: Any, up: Start, documents: Documents) -> None:
    workspace.write_model("double", 2.0)
    unused = "spec:\n  rateLimiter: {priority: 2}\n"
    workspace.write(documents("one", 1, "double").replace("spec:\n", unused, 1))
    run = up()
    run.until_ready("one")
    code = "import typer; from argosy.cli.local.get import get; typer.run(get)"
    command = [sys.executable, "-c", code, "amodel", f"--state={workspace.state}"]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES)}
    )
    reported = "InferenceModel default/one: without effect in this release: spec.rateLimiter"
    assert reported in ran.stderr
    assert reported in run.output
    shown = ran.stdout.splitlines()
    assert shown[0].split() == [
        *("NAME", "READY", "REASON", "POOL", "VERSION", "ROLLOUT", "REPLICAS", "AVAILABLE", "INSTANCES"),
        *("SCALING", "TOKENS/S", "BOTTLENECK", "REGIME", "AGE"),
    ]
    assert shown[1].split()[:8] == ["one", "True", "Serving", "laptop", "1", "<none>", "1", "1"]


def test_a_second_server_takes_the_next_free_ports_and_keeps_them(
    workspace: Any, up: Start, documents: Documents, servers: Servers
) -> None:
    workspace.write_model("double", 2.0)
    other = documents("two", 1, "double").replace("laptop", "other")
    pool = "\n---\napiVersion: argosy.dev/v1alpha1\nkind: ServingPool\nmetadata: {name: other, namespace: team}\n"
    workspace.write(documents("one", 1, "double"), pool, other.replace("{name: two}", "{name: two, namespace: team}"))
    first = up()
    first.until_ready("one", "two")
    url = first.statuses()["two"]["url"]
    assert url != f"{first.url}/v2/models/two"
    assert httpx.get(f"{url}/ready").status_code == 200
    first.end(signal.SIGKILL)
    second = up()
    second.until_ready("one", "two")
    assert second.statuses()["two"]["url"] == url
    assert len(servers()) == 2


def test_a_state_folder_among_the_manifests_wakes_no_one(workspace: Any, up: Start, documents: Documents) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"))
    (workspace.manifests / "kept.yaml").write_text("# nothing\n")
    run = up(f"--state={workspace.manifests / '.argosy'}", "--once")
    assert run.process.wait(60) == 0, run.output
    assert not (workspace.state / "servers").exists()


def two_versions(workspace: Any, documents: Documents, setting: str) -> Callable[[int, str], str]:
    """Write the models `double` and `triple`, and declare version 1 as the first. Return how versions are declared."""

    def declared(version: int, source: str) -> str:
        return f"{documents('one', version, source).rstrip()}\n  {setting}\n"

    workspace.write_model("double", 2.0)
    workspace.write_model("triple", 3.0)
    workspace.write(declared(1, "double"))
    return declared


def test_after_a_rollback_the_declared_version_answers(workspace: Any, up: Start, documents: Documents) -> None:
    declared = two_versions(workspace, documents, "versionPolicy: {latest: {numVersions: 2}}")
    run = up()
    run.until_ready("one")
    workspace.write(declared(2, "triple"))
    _until(run, lambda: run.infer("one", 1.0) == 3.0)
    run.until_ready("one")
    assert httpx.get(f"{run.url}/v2/models/one/versions/1/ready").status_code == 200, "it is retained"
    workspace.write(declared(1, "double"))
    _until(run, lambda: run.infer("one", 1.0) == 2.0)
    run.until_ready("one")
    assert run.infer("one", 1.0) == 2.0


def test_recreate_unloads_the_old_version_before_the_new_one_is_loaded(
    workspace: Any, up: Start, documents: Documents
) -> None:
    declared = two_versions(workspace, documents, "rollout: {strategy: Recreate}")
    run = up()
    run.until_ready("one")
    workspace.write(declared(2, "triple"))
    folder = workspace.state / "servers" / "laptop-0" / "repository" / "one"
    _until(run, lambda: not folder.exists())
    _until(run, lambda: httpx.get(f"{run.url}/v2/models/one/versions/2/ready").status_code == 200)
    assert run.infer("one", 1.0) == 3.0
    assert not (folder / "1").exists()
    run.until_ready("one")
