"""Runs in the client Pod, for as long as its standard input is open: `python -c LOOP`, a request per line.

A line is a JSON object, and so is its answer, with the same `id`. What it has says what is requested:

- `url`, `body`, `headers`, `patience_s`: an HTTP request, with a body a POST; the answer has `status` and `text`
- `command`, `stdin`: a command; the answer has `code` and `text`, its output

Requests run alongside each other.
"""

import json
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

# kube-proxy refuses connections to a Service until it has heard of a Pod that is ready. After an outage of the API
# server the node controller marks every Pod of the node not ready, until the kubelet, which asks again after a minute
# at most, reports otherwise.
REFUSED_S = 90.0
PAUSE_S = 0.1
_writing = threading.Lock()


def ask(url: str, body: str, headers: dict[str, str], patience_s: float) -> dict[str, object]:
    """Return the answer to an HTTP request. Waits for a Service's first Pod."""
    end = time.monotonic() + REFUSED_S
    request = urllib.request.Request(url, body.encode() or None, headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=patience_s) as answer:
                return {"status": answer.status, "text": answer.read().decode()}
        except urllib.error.HTTPError as error:
            with error:
                return {"status": error.code, "text": error.read().decode()}
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > end:
                raise
        time.sleep(PAUSE_S)


def run(command: list[str], stdin: str) -> dict[str, object]:
    """Return exit status and output of a command."""
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return {"code": done.returncode, "text": done.stdout}


def reply(line: str) -> None:
    """Do what a line requests, and write its answer."""
    words = json.loads(line)
    number = words.pop("id")
    try:
        answer = run(**words) if "command" in words else ask(**words)
    except Exception:  # the requester gets it, whatever it is
        answer = {"error": traceback.format_exc()}
    with _writing:
        print(json.dumps({"id": number, **answer}), flush=True)


def main() -> None:
    """Serve until there are no more lines."""
    for line in sys.stdin:
        threading.Thread(target=reply, args=(line,), daemon=True).start()


if __name__ == "__main__":
    main()
