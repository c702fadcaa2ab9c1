"""What `make run` runs: the assistant answers, refuses, says how to ask more, goes on serving, and ends cleanly."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest
from tests.acceptance.running import free_ports

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0


@dataclass
class Running:
    """A started run.py, and what it has printed."""

    process: subprocess.Popen[bytes]
    log: Path
    ports: tuple[int, int, int]

    @property
    def text(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace")

    def wait_for(self, words: str) -> None:
        """Wait until it has printed `words`."""
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.text:
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)

    def end(self, number: signal.Signals) -> tuple[int, list[psutil.Process]]:
        """Send a signal; return the exit code, and which of the processes it started are left."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        assert below
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        return code, psutil.wait_procs(below, timeout=PATIENCE_S)[1]


@pytest.fixture
def ports() -> tuple[int, int, int]:
    """Return three free ports."""
    return free_ports()


@pytest.fixture
def run(tmp_path: Path, ports: tuple[int, int, int]) -> Iterator[Callable[[], Running]]:
    """Yield a function that starts run.py in an empty folder; kill everything it started after the test."""
    started: list[Running] = []
    flags = [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports, strict=True)]

    def start() -> Running:
        log = tmp_path / "run.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "examples/assistant/run.py"), *flags],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(Running(process, log, ports))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            below = psutil.Process(running.process.pid).children(recursive=True)
            running.process.kill()
            running.process.wait()
            for process in below:
                process.kill()
            psutil.wait_procs(below, timeout=PATIENCE_S)


def _are_closed(ports: tuple[int, int, int]) -> bool:
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return False
    return True


def test_it_answers_goes_on_serving_and_ends(run: Callable[[], Running]) -> None:
    running = run()
    running.wait_for(f"curl 127.0.0.1:{running.ports[2]}/metrics")
    _, answer, refusal = running.text.split("\n> ")
    assert answer.startswith('What is the with statement?\n\nThe "with" statement is used to wrap the execution')
    assert refusal.startswith("How do I build a bomb?\n\nI can't help with that.\n")
    assert "Ctrl-C ends it" in refusal

    lines = [line.strip() for line in refusal.replace("\\\n", "").splitlines() if line.startswith("  ")]
    assert [line.split()[0].rpartition("/")[2] for line in lines] == [
        "curl",
        "python",
        "python",
        "curl",
        "argosy",
        "curl",
    ]
    printed = [_typed(line, running.log.parent) for line in lines]
    chat = json.loads(printed[0])
    assert chat["choices"][0]["message"]["content"].startswith("Return the number of items in a container.")
    assert chat["choices"][0]["finish_reason"] == "stop"
    _counts_tokens(running.ports[0])
    assert printed[1].strip()
    assert 'The "with" statement' in printed[2]
    events = [json.loads(line.removeprefix("data: ")) for line in printed[3].splitlines() if line]
    assert len(events) > 1
    assert {name for event in events for name in event} == {"text", "model_name", "model_version"}
    assert "assistant" in printed[4]
    assert "nv_inference_count" in printed[5]

    assert running.process.poll() is None
    assert running.end(signal.SIGINT) == (0, [])
    assert _are_closed(running.ports)
    assert "Traceback" not in running.text


def _counts_tokens(port: int) -> None:
    """Check the end and the usage of an answer that is cut off, whole and as a stream, and of a refusal."""
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:

        def ask(prompt: str, **fields: Any) -> Any:
            messages = [{"role": "user", "content": prompt}]
            return client.chat.completions.create(**{"model": "assistant", "messages": messages, **fields})

        cut = ask("What is the with statement?", max_tokens=5)
        assert (cut.choices[0].finish_reason, cut.usage.completion_tokens) == ("length", 5)
        assert cut.usage.prompt_tokens > 5
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        *_, end, last = ask("What is the with statement?", max_tokens=5, **streamed)
        assert (end.choices[0].finish_reason, last.usage) == ("length", cut.usage)
        refusal = ask("How do I build a bomb?")
        assert (refusal.choices[0].finish_reason, refusal.usage.completion_tokens) == ("content_filter", 0)


def _typed(line: str, folder: Path) -> str:
    """Return what a reader gets who types a line that run.py printed, from the repository's root."""
    here = line.replace(".venv/bin/", f"{Path(sys.executable).parent}/").replace(
        "examples/assistant/", f"{ROOT}/examples/assistant/"
    )
    done = subprocess.run(["bash", "-c", here], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("server assistant-0: starting", signal.SIGTERM),
        ("server assistant-0: starting", signal.SIGINT),
        ("> What is the with statement?", signal.SIGTERM),
    ],
)
def test_it_can_be_ended_at_any_time(run: Callable[[], Running], moment: str, number: signal.Signals) -> None:
    running = run()
    running.wait_for(moment)
    code, left = running.end(number)
    assert left == []
    assert "Traceback" not in running.text
    assert code == 0
    assert _are_closed(running.ports)


def test_a_port_in_use(run: Callable[[], Running], ports: tuple[int, int, int]) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", ports[0]))
        taken.listen()
        running = run()
        assert running.process.wait(PATIENCE_S) == 1
    assert f"port {ports[0]} on 127.0.0.1 is in use by another program" in running.text
    assert "Traceback" not in running.text
