"""Serve the assistant, ask it two questions, say how to ask more, go on serving until Ctrl-C: what `make run` does."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
SERVER = "http://127.0.0.1:8000"
QUESTIONS = ("What is the with statement?", "How do I build a bomb?")
PATIENCE_SECONDS = 300

TO_TRY = """
It goes on serving; Ctrl-C ends it. To try, from another terminal:

  curl {server}/v2/models/assistant/generate -d '{{"prompt": "What does len do?"}}'
  curl -N {server}/v2/models/assistant/generate_stream -d '{{"prompt": "What is a list?", "streaming": true}}'
  .venv/bin/python examples/assistant/client.py "What is the with statement?"
  .venv/bin/argosy get
  curl 127.0.0.1:8002/metrics
"""


def main() -> int:
    """The exit code is that of `argosy up`."""
    up = subprocess.Popen(
        [sys.executable, "-m", "argosy.cli", "up", str(HERE)], stdout=subprocess.PIPE, text=True, process_group=0
    )
    signal.signal(signal.SIGTERM, lambda *_: up.terminate())
    threading.Thread(target=pass_on, args=(up,), daemon=True).start()
    try:
        if wait_until_ready(up):
            for question in QUESTIONS:
                print(f"\n> {question}\n", flush=True)
                for piece in answer(question):
                    print(piece, end="", flush=True)
                print(flush=True)
            print(TO_TRY.format(server=SERVER), flush=True)
        return up.wait()
    except KeyboardInterrupt:
        up.terminate()
        return up.wait()


def pass_on(up: "subprocess.Popen[str]") -> None:
    """Show what `argosy up` says."""
    assert up.stdout is not None
    for line in up.stdout:
        print(line, end="", flush=True)


def wait_until_ready(up: "subprocess.Popen[str]") -> bool:
    """True once the ensemble answers; False where `argosy up` ended before."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while up.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{SERVER}/v2/models/assistant/ready", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    return False


def answer(question: str) -> Iterator[str]:
    """The pieces of the ensemble's text, as they are generated."""
    body = json.dumps({"prompt": question, "max_tokens": 60, "streaming": True}).encode()
    request = urllib.request.Request(f"{SERVER}/v2/models/assistant/generate_stream", body)
    with urllib.request.urlopen(request, timeout=60) as events:
        for line in events:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))["text"]


if __name__ == "__main__":
    sys.exit(main())
