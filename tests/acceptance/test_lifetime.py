"""`argosy up` and its servers under the signals, kills and full disks that machines have."""

import signal
from pathlib import Path

import psutil
import pytest
from tests.acceptance.running import Asking, Starter, Workspace, model, servers_of, wait_for


@pytest.fixture(autouse=True)
def good(workspace: Workspace) -> None:
    """Write one model that doubles."""
    workspace.write_model("double", 2.0)
    workspace.write(model("good", 1, "double"))


def test_after_a_killed_up_the_next_takes_over_without_a_failed_request(workspace: Workspace, up: Starter) -> None:
    first = up()
    first.until_ready("good")
    pid = first.server_pid()
    with Asking(first, "good", 2.0) as asking:
        first.end(signal.SIGKILL)
        second = up()
        second.until_ready("good")
        workspace.write(model("good", 2, "double"))
        wait_for(lambda: second.statuses()["good"].get("activeVersion") == 2, lambda: second.output)
        second.until_ready("good")
    assert asking.failures == []
    assert asking.answers > 10
    assert second.server_pid() == pid
    log = (workspace.state / "servers" / "laptop-0" / "server.log").read_text()
    assert log.count("loading: good:1") == 1


def test_a_killed_server_is_started_again_with_its_models(workspace: Workspace, up: Starter) -> None:
    run = up()
    run.until_ready("good")
    pid = run.server_pid()
    psutil.Process(pid).kill()
    run.until_says("server laptop-0 was ended by SIGKILL")
    wait_for(lambda: any((workspace.state / "servers").glob("*/process.json")), lambda: run.output)
    wait_for(lambda: run.server_pid() != pid and run.condition("good").get("status") == "True", lambda: run.output)
    assert run.infer("good", 2.0) == 4.0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_no_process(workspace: Workspace, up: Starter, how: signal.Signals) -> None:
    run = up()
    run.until_ready("good")
    started = psutil.Process(run.server_pid()).children(recursive=True)
    assert started
    assert run.end(how) == 0
    assert servers_of(workspace) == []
    assert [process for process in started if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
    assert "Traceback" not in run.output


def test_a_second_up_on_the_same_state_is_refused_with_the_pid(up: Starter) -> None:
    first = up()
    first.until_ready("good")
    second = up()
    assert second.process.wait(60) == 1
    assert f"already runs on {first.workspace.state} (pid {first.process.pid})" in second.output
    assert first.infer("good", 1.0) == 2.0


def test_a_state_folder_that_cannot_be_is_refused_in_words(up: Starter, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    run = up(f"--state={tmp_path / 'taken' / 'state'}")
    assert run.process.wait(60) == 1
    assert "Not a directory" in run.output
    assert "--state" in run.output
    assert "Traceback" not in run.output


def test_a_full_disk_is_reported_and_does_not_stop_what_serves(workspace: Workspace, up: Starter) -> None:
    """A limit on the size of files stands for the disk: it is the same error to the program, for large files only."""
    run = up()
    run.until_ready("good")
    psutil.Process(run.process.pid).rlimit(psutil.RLIMIT_FSIZE, (2**20, 2**20))
    weights = workspace.manifests / "large"
    workspace.write_model("large", 3.0)
    (weights / "weights.bin").write_bytes(bytes(2**21))
    with Asking(run, "good", 2.0) as asking:
        workspace.write(model("good", 1, "double"), model("large", 1, "large"))
        wait_for(lambda: run.condition("large", "Stalled").get("status") == "True", lambda: run.output)
    message = run.condition("large")["message"]
    assert "what had come of it was removed: give the cache a larger disk" in message
    assert str(weights) in message
    assert asking.failures == []
    assert not list((workspace.state / "cache").glob(".partial-*"))


def test_a_state_that_cannot_be_written_any_more_does_not_stop_what_serves(workspace: Workspace, up: Starter) -> None:
    run = up()
    run.until_ready("good")
    blocked = workspace.state / f".status.json.{run.process.pid}"
    with Asking(run, "good", 2.0) as asking:
        wait_for(lambda: _occupied(blocked), lambda: run.output)
        run.until_says(f"{workspace.state} cannot be written")
        blocked.rmdir()
        workspace.write(model("good", 2, "double"))
        wait_for(lambda: run.statuses()["good"].get("activeVersion") == 2, lambda: run.output)
    assert asking.failures == []
    assert asking.answers > 10


def _occupied(path: Path) -> bool:
    """Put a folder where a file is to be written."""
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True
