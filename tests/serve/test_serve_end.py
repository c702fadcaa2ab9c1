"""`argosy serve` ends in order, also when a part of it dies."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.serve.conftest import AddModel, Start
from tests.serve.process import PATIENCE_S, Serving, wait_until

PID = "y = os.getpid()"
SLOW = "time.sleep(x / 1000); y = x"


def _pending(server: Serving, model: str) -> int:
    lines = server.metrics().splitlines()
    name = "nv_inference_pending_request_count{"
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(name) and f'model="{model}"' in line)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(serve: Start, add_model: AddModel, number: signal.Signals) -> None:
    add_model("echo")
    server = serve().wait_until_ready()
    assert server.workers()
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []
    assert "Traceback" not in server.text


def test_a_signal_while_models_load_ends_it(serve: Start, add_model: AddModel) -> None:
    add_model("patient", initialize="time.sleep(60)")
    server = serve()
    server.wait_for_ports()
    wait_until(lambda: "loading: patient:1" in server.text and bool(server.workers()), server.log)
    server.process.terminate()
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []


def test_accepted_requests_are_answered_before_it_ends(serve: Start, add_model: AddModel) -> None:
    add_model("slow", execute=SLOW)
    server = serve().wait_until_ready()
    values = [400, 401, 402, 403]
    with ThreadPoolExecutor(len(values)) as pool:
        answers = [pool.submit(server.infer, "slow", value) for value in values]
        wait_until(lambda: _pending(server, "slow") == len(values) - 1, server.log)
        server.process.terminate()
        wait_until(lambda: "stopping" in server.text, server.log)
        refused = _refusal(server)
        assert [answer.result(PATIENCE_S) for answer in answers] == [(200, value) for value in values]
    assert refused in ("no connection", "503")
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []


def _refusal(server: Serving) -> str:
    """Return the answer to a request that arrives after the signal."""
    try:
        return str(server.infer("slow", 1)[0])
    except OSError:
        return "no connection"


def test_exit_timeout_ends_what_takes_too_long(serve: Start, add_model: AddModel, tmp_path: Path) -> None:
    mark = tmp_path / "at work"
    add_model("busy", execute=f"{_marking(mark)}; y = x")
    server = serve("--exit-timeout-secs=0.5").wait_until_ready()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(_cut, server)
        wait_until(mark.exists, server.log)
        server.process.terminate()
        # Within a third of the time that the model's request takes.
        assert server.process.wait(7) in (0, 1)
        answer.result(PATIENCE_S)
    assert server.left() == []


def test_a_killed_server_takes_its_workers_along(serve: Start, add_model: AddModel, tmp_path: Path) -> None:
    mark = tmp_path / "at work"
    add_model("echo")
    add_model("busy", execute=f"{_marking(mark)}; y = x")
    server = serve().wait_until_ready()
    workers = server.workers()
    assert len(workers) >= 2
    with ThreadPoolExecutor(1) as pool:
        cut = pool.submit(_cut, server)
        wait_until(mark.exists, server.log)
        server.process.kill()
        assert cut.result(PATIENCE_S)
    wait_until(lambda: server.left() == [], server.log)
    assert not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers)


FAMILY = (
    "import multiprocessing, subprocess; subprocess.Popen(['sleep', '10000']); "
    "multiprocessing.get_context('fork').Process(target=time.sleep, args=(10000,)).start()"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_model_has_started_ends_with_the_server(serve: Start, add_model: AddModel, number: int) -> None:
    add_model("parent", initialize=FAMILY, execute=PID)
    server = serve().wait_until_ready()
    assert len(psutil.Process(server.infer("parent", 0)[1]).children()) == 2
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE_S) in (0, -signal.SIGKILL)
    wait_until(lambda: server.left() == [], server.log)


def _cut(server: Serving) -> bool:
    try:
        server.infer("busy", 20_000)
    except OSError:
        return True
    return False


def test_a_killed_worker_comes_back_and_no_one_else_notices(serve: Start, add_model: AddModel) -> None:
    add_model("victim", execute=PID)
    add_model("bystander", execute=PID)
    server = serve().wait_until_ready()
    victim, bystander = server.infer("victim", 0)[1], server.infer("bystander", 0)[1]
    psutil.Process(victim).kill()
    wait_until(lambda: _other(server, victim), server.log)
    assert server.infer("bystander", 0) == (200, bystander)
    assert server.process.poll() is None
    assert server.status("/v2/health/ready") == 200


def _other(server: Serving, victim: int) -> bool:
    """Return whether the model answers from another process than `victim`."""
    status, answer = server.infer("victim", 0)
    return status == 200 and answer != victim


def test_a_worker_killed_at_work_fails_its_request_alone(serve: Start, add_model: AddModel, tmp_path: Path) -> None:
    mark = tmp_path / "at work"
    add_model("victim", execute=f"{_marking(mark)} if x else None; y = os.getpid()")
    server = serve().wait_until_ready()
    pid = server.infer("victim", 0)[1]
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(server.infer, "victim", 20_000)
        wait_until(mark.exists, server.log)
        psutil.Process(pid).kill()
        status, error = lost.result(PATIENCE_S)
    assert status == 500
    assert "victim" in error
    assert "SIGKILL" in error
    wait_until(lambda: _other(server, pid), server.log)


def _marking(mark: Path) -> str:
    """Return code by which a model marks that it is at work, and then works for X milliseconds."""
    return f"(open({str(mark)!r}, 'w').close(), time.sleep(x / 1000))"
