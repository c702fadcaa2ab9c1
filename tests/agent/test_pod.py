"""The agent's processes with a real server: ours, and NVIDIA's, of which it knows nothing but the public protocol."""

import http.server
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import psutil
import pytest
from google.protobuf import text_format
from tests.acceptance.running import wait_for
from tests.agent.running import Pod, folder_of, is_root, model, report_of
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.render.workloads.pods.control import restricted
from argosy_agent.contract import FailureKind, LoadState, RenderedModel, VersionSource
from argosy_agent.controltoken import OWNER, write_token
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER as TRAFFIC
from argosy_runtime.modelconfig.parameters.traffic import VersionTraffic, traffic_text

SERVERS = [
    pytest.param("argosy_server", id="argosy"),
    pytest.param("triton_server", id="triton", marks=pytest.mark.triton),
]
MakePod = Callable[..., Pod]


@pytest.fixture
def make_pod(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakePod]:
    """Yield a function that starts a Pod's server and agent; both are ended afterwards."""
    pods: list[Pod] = []

    def make(server: str | None = "argosy_server", *flags: str, control: Sequence[str] = ()) -> Pod:
        pod = Pod(tmp_path, None, flags)
        pods.append(pod)
        pod.folder.joinpath("repository").mkdir(parents=True)
        if server is not None:
            start = request.getfixturevalue(server)
            explicit = ("--model-control-mode=explicit", "--exit-timeout-secs=5")
            pod.server = start(pod.folder / "repository", *explicit, *control, wait_for="/v2/health/live")
        pod.start_agent()
        return pod

    yield make
    for pod in pods:
        pod.end()


@pytest.fixture(params=SERVERS)
def pod(make_pod: MakePod, request: pytest.FixtureRequest) -> Pod:
    """Return a Pod of each kind of server."""
    return make_pod(request.param)


@dataclass
class Asking:
    """A thread that asks a model all the while; `failures` is what did not come back as one of `expected`."""

    pod: Pod
    name: str
    expected: tuple[float, ...]
    answers: int = 0

    def __enter__(self) -> "Asking":
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def more(self, count: int = 20) -> None:
        """Wait for so many answers more."""
        seen, enough = self.answers, threading.Event()
        while self.answers < seen + count and not self.failures:
            enough.wait(0.02)

    def _ask(self) -> None:
        with httpx.Client() as client:
            while not self._stop.is_set():
                try:
                    result = self.pod.infer(self.name, 1.0, client)
                except (AssertionError, httpx.HTTPError) as error:
                    self.failures.append(repr(error))
                else:
                    self.answers += 1
                    if result not in self.expected:
                        self.failures.append(f"answered {result}")
                self._stop.wait(0.01)


def test_a_version_bump_under_load_fails_no_request(pod: Pod) -> None:
    pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}))
    first = pod.until_ready("m", 1)
    assert (first.pod, first.live, first.applied.server) == ("a-uid", True, "pool-0")
    pod.until(lambda state: state.settled)
    with Asking(pod, "m", (2.0, 3.0)) as asking:
        asking.more()
        bump = model("m", {2: folder_of(pod.root, "two", 3.0)})
        fingerprint = pod.want(bump)
        state = pod.until(lambda state: state.applied.models == (bump,))
        assert report_of(state, "m", 2).state is LoadState.READY
        assert state.desired == fingerprint
        asking.more()
    assert asking.failures == []
    assert pod.infer("m", 1.0) == 3.0
    pod.until(lambda _: not (pod.folder / "repository" / "m" / "1").exists())
    pod.want()
    pod.until(lambda state: not state.applied.models)
    assert not list((pod.folder / "repository").iterdir())


def divided(desired: RenderedModel, **weights: int) -> RenderedModel:
    """Return a model whose requests are divided by these weights in percent, such as `v1=95, v2=5`."""
    config = text_format.Parse(desired.config_text, ModelConfig())
    millionths = {int(name[1:]): percent * 10_000 for name, percent in weights.items()}
    config.parameters[TRAFFIC].string_value = traffic_text(VersionTraffic(millionths))
    return replace(desired, config_text=text_format.MessageToString(config), reload_key="the same")


def test_all_requests_go_back_to_the_stable_version_while_the_next_one_loads(make_pod: MakePod) -> None:
    """Version 2 is taken back in the same change that brings version 3, whose load takes as long as it likes."""
    pod = make_pod("argosy_server")
    loading, go_on = pod.root / "loading", pod.root / "go_on"
    opened = f"iter(lambda: os.path.exists({str(go_on)!r}), True)"
    waits = f"import os, time; open({str(loading)!r}, 'w').close(); [time.sleep(0.01) for _ in {opened}]"
    stable, bad = (folder_of(pod.root, name, factor) for name, factor in (("one", 2.0), ("two", 3.0)))
    pod.want(divided(model("m", {1: stable, 2: bad}), v1=50, v2=50))
    pod.until_ready("m", 2)
    assert sorted(pod.infer("m", 1.0) for _ in range(4)) == [2.0, 2.0, 3.0, 3.0]
    slow = folder_of(pod.root, "three", 4.0, body=waits)
    pod.want(divided(model("m", {1: stable, 3: slow}), v1=100, v3=0))
    wait_for(loading.exists, lambda: pod.log)
    assert {pod.infer("m", 1.0) for _ in range(10)} == {2.0}
    go_on.touch()
    pod.until_ready("m", 3)
    assert {pod.infer("m", 1.0) for _ in range(10)} == {2.0}
    assert pod.loads("m") == 3, "no version was loaded twice"


@pytest.mark.parametrize("server", SERVERS)
def test_a_model_that_leaves_answers_until_no_one_asks(make_pod: MakePod, server: str) -> None:
    pod = make_pod(server, "--drain-quiet-secs=2", "--drain-timeout-secs=600")
    pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}))
    pod.until_ready("m", 1)
    with Asking(pod, "m", (2.0,)) as asking:
        asking.more()
        fingerprint = pod.want()
        pod.until(lambda state: state.desired == fingerprint)
        asking.more(200)
    assert asking.failures == []
    pod.until(lambda state: not state.applied.models)


@pytest.mark.parametrize("server", ["argosy_server", pytest.param("triton_server", marks=pytest.mark.triton)])
def test_the_agent_alone_controls_its_server_by_the_token(
    tmp_path: Path, request: pytest.FixtureRequest, make_pod: MakePod, server: str
) -> None:
    file = tmp_path / "token"
    write_token(file, OWNER)
    control = [f"--control-token-file={file}"]
    if server == "triton_server":
        shown = ["bash", "-c", restricted("printf '%s\\n'", str(file)), "bash"]
        control = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines()[-2:]
    pod = make_pod(server, f"--control-token-file={file}", control=control)
    pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}))
    pod.until_ready("m", 1)
    for action in ("load", "unload"):
        refused = httpx.post(f"{pod.url}/v2/repository/models/m/{action}", content="{}", timeout=20)
        assert refused.status_code == 403
    assert pod.infer("m", 1.0) == 2.0
    pod.want()
    pod.until(lambda state: not state.applied.models)


def test_a_killed_agent_returns_reloads_nothing_and_loses_no_request(pod: Pod) -> None:
    desired = model("m", {1: folder_of(pod.root, "one", 2.0)})
    pod.want(desired)
    pod.until_ready("m", 1)
    with Asking(pod, "m", (2.0,)) as asking:
        asking.more()
        (pod.root / "state.json").unlink()
        pod.kill_worker()
        state = pod.until_ready("m", 1)
        assert state.settled
        assert state.applied.models == (desired,)
        asking.more()
        other = model("n", {1: folder_of(pod.root, "other", 5.0)})
        pod.want(desired, other)
        pod.until_ready("n", 1)
    assert asking.failures == []
    assert pod.agent.poll() is None
    assert pod.loads("m") == 1
    assert "was ended by SIGKILL" in pod.log


def test_a_broken_model_delays_nothing_and_is_reported(pod: Pod) -> None:
    good = model("good", {1: folder_of(pod.root, "good", 2.0)})
    bad = model("bad", {1: folder_of(pod.root, "bad", 3.0, body="raise ValueError('no weights here')")})
    pod.want(good, bad)
    state = pod.until(lambda state: state.settled)
    assert pod.infer("good", 1.0) == 2.0
    reported = report_of(state, "bad", 1)
    assert (reported.state, reported.failure) == (LoadState.UNAVAILABLE, FailureKind.LOAD)
    assert "no weights here" in reported.reason
    folder_of(pod.root, "bad", 3.0)
    assert report_of(pod.until_ready("bad", 1), "bad", 1).failure is None
    assert pod.infer("bad", 1.0) == 3.0


class Missing(http.server.BaseHTTPRequestHandler):
    """Answers 404 to everything."""

    def do_GET(self) -> None:
        """Answer 404."""
        self.send_error(404)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture
def missing() -> Iterator[str]:
    """Yield the URL of a web server that has nothing."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Missing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/model.py"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_cannot_be_fetched_is_reported_and_the_rest_served(make_pod: MakePod, missing: str) -> None:
    pod = make_pod()
    wrong = VersionSource(folder_of(pod.root, "wrong", 3.0).uri, "sha256:" + "0" * 64)
    good = model("good", {1: folder_of(pod.root, "good", 2.0)})
    pod.want(good, model("wrong", {1: wrong}), model("absent", {1: VersionSource(missing)}))
    state = pod.until(lambda state: state.settled)
    assert report_of(state, "good", 1).state is LoadState.READY
    assert report_of(state, "wrong", 1).failure is FailureKind.DIGEST
    assert "its digest is sha256:" in report_of(state, "wrong", 1).reason
    assert report_of(state, "absent", 1).failure is FailureKind.FILES
    assert "404" in report_of(state, "absent", 1).reason
    pod.want(good, model("wrong", {1: VersionSource(wrong.uri)}))
    pod.until_ready("wrong", 1)


@pytest.mark.skipif(not is_root(), reason="mounts a small file system")
def test_a_full_disk_is_reported_and_what_serves_goes_on(make_pod: MakePod, tmp_path: Path) -> None:
    (tmp_path / "models" / "cache").mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "argosy", str(tmp_path / "models" / "cache")])
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        pod = make_pod()
        small = model("small", {1: folder_of(tmp_path, "small", 2.0)})
        pod.want(small)
        pod.until_ready("small", 1)
        large = folder_of(tmp_path, "large", 3.0)
        weights = tmp_path / "sources" / "large" / "weights"
        weights.touch()
        os.truncate(weights, 128 * 2**20)
        pod.want(small, model("large", {1: large}))
        state = pod.until(lambda state: report_of(state, "large", 1).failure)
        assert report_of(state, "large", 1).failure is FailureKind.DOWNLOAD
        assert "full" in report_of(state, "large", 1).reason
        assert pod.infer("small", 1.0) == 2.0
        weights.unlink()
        pod.until_ready("large", 1)
        pod.end()
    finally:
        subprocess.run(["umount", str(tmp_path / "models" / "cache")], check=True)


def test_an_unreadable_wish_is_reported_and_the_last_good_one_stands(make_pod: MakePod) -> None:
    pod = make_pod()
    fingerprint = pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}))
    pod.until_ready("m", 1)
    (pod.root / "repository.json").write_text('{"server": "pool-0", "models": [{"name": "../etc"}]}')
    state = pod.until(lambda state: state.problem)
    assert "repository.json.models[0].name: '../etc' cannot be a file's name" in state.problem
    assert state.desired == fingerprint
    assert report_of(state, "m", 1).state is LoadState.READY
    pod.kill_worker()
    pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}), model("n", {1: folder_of(pod.root, "other", 5.0)}))
    assert pod.until_ready("n", 1).problem == ""


def test_a_server_that_is_not_there_yet_is_waited_for(make_pod: MakePod, request: pytest.FixtureRequest) -> None:
    pod = make_pod(None)
    pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}))
    state = pod.until(lambda state: state.desired)
    assert (state.live, state.settled) == (False, False)
    assert report_of(state, "m", 1).state is LoadState.LOADING
    assert pod.end_agent() == 0
    pod.server = request.getfixturevalue("argosy_server")(
        pod.folder / "repository", "--model-control-mode=explicit", wait_for="/v2/health/live"
    )
    pod.start_agent()
    assert pod.until_ready("m", 1).live
    pod.server.stop()
    gone = pod.until(lambda state: not state.live)
    assert gone.settled
    assert report_of(gone, "m", 1).state is LoadState.LOADING


def test_a_signal_ends_both_processes(make_pod: MakePod) -> None:
    pod = make_pod()
    pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}))
    pod.until_ready("m", 1)
    worker = pod.worker()
    assert pod.end_agent() == 0
    assert not worker.is_running()
    assert pod.infer("m", 1.0) == 2.0


def test_two_agents_never_work_on_one_folder(make_pod: MakePod) -> None:
    pod = make_pod()
    pod.until(lambda state: state.live)
    first, worker = pod.agent, pod.worker()
    pod.start_agent()
    try:
        pod.until(lambda _: "another agent works on" in pod.log)
        first.kill()
        first.wait()
        psutil.wait_procs([worker], timeout=20)
        pod.want(model("m", {1: folder_of(pod.root, "one", 2.0)}))
        pod.until_ready("m", 1)
    finally:
        if first.poll() is None:
            first.kill()
            first.wait()


def test_agents_need_little_memory(make_pod: MakePod) -> None:
    pod = make_pod()
    pod.want(*(model(f"m{n}", {1: folder_of(pod.root, "one", 2.0)}) for n in range(3)))
    pod.until_ready("m2", 1)
    used = {item.pid: item.memory_info().rss / 2**20 for item in (psutil.Process(pod.agent.pid), pod.worker())}
    assert used[pod.agent.pid] < 30
    assert used[pod.worker().pid] < 90


def test_a_wrong_command_line_ends_at_once(tmp_path: Path) -> None:
    pod = Pod(tmp_path, flags=("--cache-size=much",))
    pod.start_agent()
    assert pod.agent.wait(20) == 2
    assert "argument --cache-size: 'much' is no amount of bytes" in pod.log
