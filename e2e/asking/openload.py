"""Runs in the client Pod, apart from its caller: `python openload.py URL RATE SECONDS FOLDER`.

Sends RATE requests of V2 per second to the model at URL, whether or not earlier ones are answered, each on a connection
of its own, for at most SECONDS or until FOLDER/stop exists. Where this process gets no processor for a while, the
requests of that time are sent at once afterwards.

Then FOLDER/result.json has `replies`: of each request the Unix times at which it was sent and ended, the values of its
answer's tensors, and the error where it failed. FOLDER/began exists once a first request has ended.
"""

import http.client
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

BODY = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]}).encode()
TIMEOUT_S = 60.0

Reply = tuple[float, float, list[int], str]


class OpenLoad:
    """Requests at a constant rate, and what came of them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.replies: list[Reply] = []

    def run(self, rate: float, seconds: float) -> None:
        """Send requests until the time is over, and wait for their answers."""
        began, threads = time.monotonic(), []
        for number in range(int(rate * seconds)):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            if (self.folder / "stop").exists():
                break
            threads.append(threading.Thread(target=self.send))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def send(self) -> None:
        """Send one request, and record its answer."""
        sent, values, error = time.time(), list[int](), ""
        try:
            with urllib.request.urlopen(f"{self.url}/infer", BODY, timeout=TIMEOUT_S) as answer:
                values = [output["data"][0] for output in json.load(answer)["outputs"]]
        except urllib.error.HTTPError as refusal:
            error = f"{refusal.code}: {refusal.read()[:300]!r}"
        except (OSError, ValueError, http.client.HTTPException) as failure:
            error = f"{type(failure).__name__}: {failure}"
        self.replies.append((sent, time.time(), values, error))
        (self.folder / "began").touch()


def main() -> None:
    """Send requests, and write what came of them."""
    url, rate, seconds, folder = sys.argv[1:]
    load = OpenLoad(url, Path(folder))
    load.run(float(rate), float(seconds))
    temporary = load.folder / "result.new"
    temporary.write_text(json.dumps({"replies": load.replies}))
    temporary.rename(load.folder / "result.json")


if __name__ == "__main__":
    main()
