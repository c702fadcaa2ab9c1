"""One `kubectl exec` for all requests of a client Pod: one for each would take much of the machine."""

import itertools
import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any, Self

from e2e.asking.namespace import Namespace

LOOP = Path(__file__).with_name("loop.py")
ENDS_S = 10.0
_ENDED: dict[str, Any] = {"error": "the session ended before its answer"}


class Session:
    """A running `loop.py` in a Pod. Requests may come from several threads at once."""

    def __init__(self, namespace: Namespace, pod: str) -> None:
        words = ("exec", "-i", pod, "--", "python", "-u", "-c", LOOP.read_text())
        self._process: subprocess.Popen[str] = namespace.start(*words)
        self._numbers, self._lock = itertools.count(), threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        """Return whether it takes requests. An API server that ends takes its sessions along."""
        return not self._ended and self._process.poll() is None

    def request(self, timeout_s: float, **words: Any) -> dict[str, Any]:
        """Return the answer to a request of `loop.py`. Raises AssertionError where it has none."""
        number, answer = next(self._numbers), queue.SimpleQueue[dict[str, Any]]()
        with self._lock:
            assert not self._ended, _ENDED["error"]
            self._waiting[number] = answer
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"id": number, **words}) + "\n")
            self._process.stdin.flush()
        try:
            received = answer.get(timeout=timeout_s)
        except queue.Empty:
            raise AssertionError(f"{words}: no answer within {timeout_s:.0f} s") from None
        assert "error" not in received, received["error"]
        return received

    def _read(self) -> None:
        """Hand out answers until the process ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            self._waiting.pop(answer["id"]).put(answer)
        with self._lock:
            self._ended = True
        for left in self._waiting.values():
            left.put(_ENDED)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(ENDS_S)
        self._reader.join(ENDS_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
