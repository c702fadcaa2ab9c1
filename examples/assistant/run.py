"""Serve the assistant, ask it two questions, print how to ask more, go on serving until Ctrl-C: what `make run` does.

python examples/assistant/run.py --http-port 9000 --grpc-port 9001 --metrics-port 9002
"""

import argparse
import http.client
import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
QUESTIONS = ("What is the with statement?", "How do I build a bomb?")

TO_TRY = """
It goes on serving; Ctrl-C ends it. To try, from another terminal:

  curl 127.0.0.1:{http}/v1/chat/completions \\
    -d '{{"model": "assistant", "messages": [{{"role": "user", "content": "What does len do?"}}]}}'
  .venv/bin/python examples/assistant/chat.py --url http://127.0.0.1:{http}/v1 "What is a list?"
  .venv/bin/python examples/assistant/client.py --url localhost:{grpc} "What is the with statement?"
  curl -N 127.0.0.1:{http}/v2/models/assistant/generate_stream \\
    -d '{{"prompt": "What is a list?", "streaming": true, "outputs": ["text"]}}'
  .venv/bin/argosy get
  curl 127.0.0.1:{metrics}/metrics
"""


def main() -> int:
    """Run `argosy up` on this folder and return its exit code."""
    ports = read_ports()
    flags = [f"--{name}-port={port}" for name, port in ports.items()]
    up = subprocess.Popen(
        [sys.executable, "-m", "argosy.cli", "up", str(HERE), *flags],
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        up.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    ready = threading.Event()
    printing = threading.Lock()
    threading.Thread(target=pass_on, args=(up, ready, printing), daemon=True).start()
    ready.wait()
    if up.poll() is None and not stopping.is_set():
        try:
            with printing:
                introduce(ports)
        except (OSError, http.client.HTTPException) as error:
            if not stopping.is_set():
                print(f"\nThe assistant did not answer: {error}", flush=True)
    return up.wait()


def read_ports() -> dict[str, int]:
    """Return the ports that the command line gives, by name; the defaults are those of `argosy up`."""
    parser = argparse.ArgumentParser(description="Serve the assistant and ask it two questions.")
    for name, port in {"http": 8000, "grpc": 8001, "metrics": 8002}.items():
        parser.add_argument(f"--{name}-port", dest=name, type=int, default=port, metavar="PORT")
    return vars(parser.parse_args())


def introduce(ports: dict[str, int]) -> None:
    """Ask the questions, and print how to ask more."""
    for question in QUESTIONS:
        print(f"\n> {question}\n", flush=True)
        for piece in answer(question, ports["http"]):
            print(piece, end="", flush=True)
        print(flush=True)
    print(TO_TRY.format(**ports), flush=True)


def pass_on(up: "subprocess.Popen[str]", ready: threading.Event, printing: threading.Lock) -> None:
    """Show what `argosy up` says, but not in the middle of an answer; `ready` is set once it may be asked, or ended."""
    assert up.stdout is not None
    for line in up.stdout:
        with printing:
            print(line, end="", flush=True)
        if line.startswith("Ensemble assistant ") and "Ready=True" in line:
            ready.set()
    ready.set()


def answer(question: str, port: int) -> Iterator[str]:
    """Yield the pieces of a chat's answer, as they are generated."""
    chat = {"model": "assistant", "messages": [{"role": "user", "content": question}], "max_tokens": 60, "stream": True}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(chat).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as events:
        for line in events:
            if line.startswith(b"data: {"):
                chunk = json.loads(line.removeprefix(b"data: "))
                yield (
                    chunk["choices"][0]["delta"].get("content", "") if "choices" in chunk else chunk["error"]["message"]
                )


if __name__ == "__main__":
    sys.exit(main())
