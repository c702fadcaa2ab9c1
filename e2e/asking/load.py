"""Runs in the client Pod, apart from who started it: `python load.py URL SECONDS WORKERS FOLDER`.

Every worker asks the model at URL one request after another, each on a connection of its own, for at most SECONDS or
until FOLDER/stop exists. Then FOLDER/result.json has `sent`, `failed` (second and words of each, the first hundred),
and `changes`, the answers in the order of their arrival, each with the second at which it first came. FOLDER/began
exists once a first request has ended.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

BODY = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]}).encode()
PAUSE_S = 0.02
TIMEOUT_S = 30.0


def ask(url: str) -> list[list[int]]:
    """Return the values of the answer's tensors."""
    with urllib.request.urlopen(f"{url}/infer", BODY, timeout=TIMEOUT_S) as answer:
        return [output["data"] for output in json.load(answer)["outputs"]]


class Load:
    """What all workers have seen."""

    def __init__(self, url: str, folder: Path, seconds: float) -> None:
        self.url, self.folder = url, folder
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.lock = threading.Lock()
        self.sent = 0
        self.failed: list[tuple[float, str]] = []
        self.answers: list[tuple[float, list[list[int]]]] = []

    def work(self) -> None:
        """Run one worker."""
        while time.monotonic() < self.end and not (self.folder / "stop").exists():
            try:
                answer = ask(self.url)
            except (OSError, ValueError, urllib.error.HTTPError) as error:
                self.note(None, f"{type(error).__name__}: {error}")
            else:
                self.note(answer, "")
            time.sleep(PAUSE_S)

    def note(self, answer: list[list[int]] | None, error: str) -> None:
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
    """Ask until it is enough."""
    url, seconds, workers, folder = sys.argv[1:]
    load = Load(url, Path(folder), float(seconds))
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
