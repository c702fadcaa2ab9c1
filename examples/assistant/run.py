"""Serve the assistant, ask it two questions, say how to ask more, go on serving until Ctrl-C: what `make run` does."""

import codecs
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
SERVER = "http://127.0.0.1:8000"
QUESTIONS = ("What is the with statement?", "How do I build a bomb?")

TO_TRY = """
It goes on serving; Ctrl-C ends it. To try, from another terminal:

  .venv/bin/python examples/assistant/client.py "What is the with statement?"
  curl {server}/v2/models/assistant/generate -d '{{"prompt": "What does len do?", "outputs": ["text"]}}'
  curl -N {server}/v2/models/assistant/generate_stream \\
    -d '{{"prompt": "What is a list?", "streaming": true, "outputs": ["text"]}}'
  .venv/bin/argosy get
  curl 127.0.0.1:8002/metrics
"""


def main() -> int:
    """The exit code is that of `argosy up`."""
    up = subprocess.Popen(
        [sys.executable, "-m", "argosy.cli", "up", str(HERE)], stdout=subprocess.PIPE, text=True, process_group=0
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
                introduce()
        except (OSError, http.client.HTTPException) as error:
            if not stopping.is_set():
                print(f"\nThe assistant did not answer: {error}", flush=True)
    return up.wait()


def introduce() -> None:
    """Ask the questions, and say how to ask more."""
    for question in QUESTIONS:
        print(f"\n> {question}\n", flush=True)
        for piece in answer(question):
            print(piece, end="", flush=True)
        print(flush=True)
    print(TO_TRY.format(server=SERVER), flush=True)


def pass_on(up: "subprocess.Popen[str]", ready: threading.Event, printing: threading.Lock) -> None:
    """Show what `argosy up` says, but not in the middle of an answer; `ready` is set once it may be asked, or ended."""
    assert up.stdout is not None
    for line in up.stdout:
        with printing:
            print(line, end="", flush=True)
        if line.startswith("Ensemble assistant ") and "Ready=True" in line:
            ready.set()
    ready.set()


def answer(question: str) -> Iterator[str]:
    """The pieces of the ensemble's text, as they are generated."""
    body = json.dumps({"prompt": question, "max_tokens": 60, "streaming": True, "outputs": ["text"]}).encode()
    request = urllib.request.Request(f"{SERVER}/v2/models/assistant/generate_stream", body)
    decoder = codecs.getincrementaldecoder("utf-8")()  # a character of several bytes may come in two pieces
    with urllib.request.urlopen(request, timeout=60) as events:
        for line in events:
            if line.startswith(b"data: "):
                response = json.loads(line.removeprefix(b"data: ").decode("utf-8", "surrogateescape"))
                piece = response["text"] if "text" in response else response["error"]
                yield decoder.decode(piece.encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    sys.exit(main())
