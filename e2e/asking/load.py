"""Runs in the client Pod, apart from its caller: `python load.py KIND URL SECONDS WORKERS FOLDER`.

Every worker sends one request after another, each on a connection of its own, for at most SECONDS or until FOLDER/stop
exists. KIND is what a request is:

- `infer`: one of V2 to the model at URL, such as `e2e/models/version`; its answer is the values of the output tensors
- `stream`: a streamed completion of OpenAI's API at URL, `…/v1/completions#MODEL`, with the API key of the environment
  variable OPENAI_API_KEY; its answer is the number of tokens. A stream fails if it ends early: without its last event,
  with an error, or with fewer tokens than requested.

Then FOLDER/result.json has `sent`, `failed` (second and message of each, the first hundred), and `changes`, the answers
in the order of their arrival, each with the second at which it first came. FOLDER/began exists once a first request has
ended.
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

BODY = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]}).encode()
PAUSE_S = 0.02
TIMEOUT_S = 60.0
"""A server that comes again on cores that others use, too, may take half a minute."""
STREAM_TIMEOUT_S = 300.0
"""An engine that is restarted meanwhile, on cores that others use too, takes minutes."""
TOKENS = 48

Answer = list[list[int]]


def infer(url: str) -> Answer:
    """Return the values of the answer's tensors."""
    with urllib.request.urlopen(f"{url}/infer", BODY, timeout=TIMEOUT_S) as answer:
        return [output["data"] for output in json.load(answer)["outputs"]]


def stream(url: str) -> Answer:
    """Return the number of tokens of one stream. Raises ValueError where it ends early."""
    address, _, model = url.partition("#")
    body = {"model": model, "prompt": "What is a list?", "max_tokens": TOKENS, "ignore_eos": True, "stream": True}
    body["stream_options"] = {"include_usage": True}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=STREAM_TIMEOUT_S) as answer:
        events = [line[6:].decode().strip() for line in answer if line.startswith(b"data: ")]
    if events[-1:] != ["[DONE]"] or '"error"' in events[-2]:
        raise ValueError(f"the stream ended after {len(events)} events with {events[-2:]}")
    tokens = int(json.loads(events[-2])["usage"]["completion_tokens"])
    if tokens != TOKENS:
        raise ValueError(f"{tokens} tokens of {TOKENS}")
    return [[tokens]]


KINDS: dict[str, Callable[[str], Answer]] = {"infer": infer, "stream": stream}


class Load:
    """The requests of all workers, and their results."""

    def __init__(self, ask: Callable[[str], Answer], url: str, folder: Path, seconds: float) -> None:
        self.ask, self.url, self.folder = ask, url, folder
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.lock = threading.Lock()
        self.sent = 0
        self.failed: list[tuple[float, str]] = []
        self.answers: list[tuple[float, Answer]] = []

    def work(self) -> None:
        """Run one worker."""
        while time.monotonic() < self.end and not (self.folder / "stop").exists():
            try:
                answer = self.ask(self.url)
            except urllib.error.HTTPError as error:
                self.note(None, f"{error.code}: {error.read()[:300]!r}")
            except (OSError, ValueError) as error:
                self.note(None, f"{type(error).__name__}: {error}")
            else:
                self.note(answer, "")
            time.sleep(PAUSE_S)

    def note(self, answer: Answer | None, error: str) -> None:
        """Record the end of one request."""
        at = round(time.monotonic() - self.began, 2)
        with self.lock:
            self.sent += 1
            if answer is None:
                self.failed.append((at, error))
            elif not self.answers or self.answers[-1][1] != answer:
                self.answers.append((at, answer))
        (self.folder / "began").touch()


def main() -> None:
    """Send requests until the time is over."""
    kind, url, seconds, workers, folder = sys.argv[1:]
    load = Load(KINDS[kind], url, Path(folder), float(seconds))
    threads = [threading.Thread(target=load.work) for _ in range(int(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    temporary = load.folder / "result.new"
    temporary.write_text(json.dumps({"sent": load.sent, "failed": load.failed[:100], "changes": load.answers[:100]}))
    temporary.rename(load.folder / "result.json")


if __name__ == "__main__":
    main()
