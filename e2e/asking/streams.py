"""Runs in the client Pod, as `load.py` does: `python streams.py URL SECONDS WORKERS FOLDER`.

Every worker streams one completion after another from the model that URL names (`…/v1/completions#model`). A stream
counts as failed where it ends early: without its last event, with an error, or with fewer tokens than requested.
FOLDER has the same files as those of `load.py`; an answer is the number of tokens of a stream.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

PAUSE_S = 0.05
TIMEOUT_S = 60.0
TOKENS = 48


def ask(url: str) -> int:
    """Return the number of tokens of one stream."""
    address, _, model = url.partition("#")
    body = {"model": model, "prompt": "What is a list?", "max_tokens": TOKENS, "ignore_eos": True, "stream": True}
    body["stream_options"] = {"include_usage": True}
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        events = [line[6:].decode().strip() for line in answer if line.startswith(b"data: ")]
    if not events or events[-1] != "[DONE]":
        raise ValueError(f"the stream broke off after {events[-1:]}")
    usage = json.loads(events[-2])["usage"]
    if usage["completion_tokens"] != TOKENS:
        raise ValueError(f"{usage['completion_tokens']} tokens of {TOKENS}")
    return TOKENS


class Load:
    """What all workers have seen."""

    def __init__(self, url: str, folder: Path, seconds: float) -> None:
        self.url, self.folder = url, folder
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.lock = threading.Lock()
        self.sent = 0
        self.failed: list[tuple[float, str]] = []

    def work(self) -> None:
        """Run one worker."""
        while time.monotonic() < self.end and not (self.folder / "stop").exists():
            error = ""
            try:
                ask(self.url)
            except urllib.error.HTTPError as refusal:
                error = f"{refusal.code}: {refusal.read()[:300]!r}"
            except (OSError, ValueError) as failure:
                error = f"{type(failure).__name__}: {failure}"
            with self.lock:
                self.sent += 1
                if error:
                    self.failed.append((round(time.monotonic() - self.began, 2), error))
            (self.folder / "began").touch()
            time.sleep(PAUSE_S)


def main() -> None:
    """Stream until it is enough."""
    url, seconds, workers, folder = sys.argv[1:]
    load = Load(url, Path(folder), float(seconds))
    threads = [threading.Thread(target=load.work) for _ in range(int(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    temporary = load.folder / "result.new"
    temporary.write_text(json.dumps({"sent": load.sent, "failed": load.failed[:100], "changes": []}))
    temporary.rename(load.folder / "result.json")


if __name__ == "__main__":
    main()
