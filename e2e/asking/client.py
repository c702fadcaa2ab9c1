"""A Pod that asks: from its own network, through the Services, as an application does."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from e2e.asking.namespace import Namespace
from e2e.asking.replies import Replies, Reply

LOAD, OPEN_LOAD = (Path(__file__).with_name(name) for name in ("load.py", "openload.py"))
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: client, namespace: {namespace}}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsNonRoot: true, seccompProfile: {{type: RuntimeDefault}}}}
  containers:
  - name: main
    image: {image}
    imagePullPolicy: {pull_policy}
    command: [python, -c, "import signal; signal.pause()"]
"""
# kube-proxy refuses connections to a Service until it has heard of a Pod that is ready. After an outage of the API
# server the node controller marks every Pod of the node not ready, until the kubelet, which asks again after a minute
# at most, tells otherwise.
ASK = """
import sys, time, urllib.error, urllib.request
PATIENCE = float(sys.argv[4])
end = time.monotonic() + 90
while True:
    try:
        headers = {"Authorization": f"Bearer {sys.argv[3]}"} if sys.argv[3] else {}
        request = urllib.request.Request(sys.argv[1], sys.argv[2].encode() or None, headers)
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        answer = error
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > end:
            raise
        time.sleep(0.1)
        continue
    break
print(answer.status)
print(answer.read().decode())
"""
LOAD_S, WORKERS = 90, 4
ANSWER_S = 60.0
"""How long a request waits for its answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    text: str

    def json(self) -> Any:
        """Return its body as JSON."""
        return json.loads(self.text)

    def events(self) -> list[Any]:
        """Return its body as server-sent events of JSON."""
        return [json.loads(line.removeprefix("data: ")) for line in self.text.splitlines() if line.startswith("data: ")]


@dataclass(slots=True)
class Load:
    """Requests that are being sent; what came of them once the block is left."""

    sent: int = 0
    failed: list[Any] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)

    def answers(self) -> list[Any]:
        """Return the answers, each once, in the order of their first arrival."""
        return [
            value
            for number, (_, value) in enumerate(self.changes)
            if value not in [v for _, v in self.changes[:number]]
        ]


class Client:
    """The Pod, started and ready."""

    def __init__(self, namespace: Namespace, image: str, pull_policy: str) -> None:
        self._namespace = namespace
        namespace.access.apply(POD.format(namespace=namespace.name, image=image, pull_policy=pull_policy))
        namespace("wait", "--for=condition=Ready", "pod/client", "--timeout=60s", timeout_s=70)

    def url(self, resource: str, address: str = "") -> str:
        """Return `status.url` of a resource with an address in place of its name: there may be no DNS.

        `address` is the Service's by default.
        """
        parts = urlsplit(self._namespace.status(resource)["url"])
        service, namespace, kind = str(parts.hostname).split(".")
        assert (namespace, kind) == (self._namespace.name, "svc")
        address = address or self._namespace.read("service", service)["spec"]["clusterIP"]
        return urlunsplit(parts._replace(netloc=f"{address}:{parts.port}"))

    def get(self, url: str, body: str = "", key: str = "", patience_s: float = ANSWER_S) -> Answer:
        """Return the answer to one request; with a body it is a POST, with a key it is authorized by it. Waits for a
        Service's first Pod.
        """
        words = (ASK, url, body, key, str(patience_s))
        printed = self._namespace("exec", "client", "--", "python", "-c", *words, timeout_s=2 * patience_s)
        status, _, text = printed.partition("\n")
        return Answer(int(status), text)

    def version(self, resource: str) -> list[int]:
        """Return the current outputs of a model of `e2e/models/version`, or of an ensemble of them."""
        inputs = [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]
        answer = self.get(f"{self.url(resource)}/infer", json.dumps({"inputs": inputs}))
        assert answer.status == 200, answer
        return [output["data"][0] for output in answer.json()["outputs"]]

    @contextmanager
    def load(self, resource: str, seconds: float = LOAD_S, workers: int = WORKERS, address: str = "") -> Iterator[Load]:
        """Send requests while the block runs, at most for so long; to the Service, or to a server's `address`. They
        need no API server.
        """
        self.version(resource)
        with self._load("infer", self.url(resource, address), seconds, workers) as load:
            yield load

    @contextmanager
    def streams(
        self, resource: str, model: str, seconds: float = LOAD_S, workers: int = WORKERS, key: str = ""
    ) -> Iterator[Load]:
        """Stream completions of a model, or of an adapter of it, through its Service while the block runs."""
        url = f"{self.openai(resource)}/completions#{model}"
        with self._load("stream", url, seconds, workers, key) as load:
            yield load

    def openai(self, resource: str) -> str:
        """Return the address of OpenAI's API of the servers that have a resource."""
        return f"{self.url(resource).partition('/v2/')[0]}/v1"

    @contextmanager
    def open_load(self, resource: str, seconds: float, rate: float) -> Iterator[Replies]:
        """Send `rate` requests per second while the block runs, at most for so long, answered or not."""
        self.version(resource)
        replies = Replies()
        with self._running(OPEN_LOAD, self.url(resource), str(rate), str(seconds)) as result:
            yield replies
        replies.replies = [Reply(sent, ended, tuple(values), error) for sent, ended, values, error in result["replies"]]

    @contextmanager
    def _load(self, kind: str, url: str, seconds: float, workers: int, key: str = "") -> Iterator[Load]:
        load = Load()
        with self._running(LOAD, kind, url, str(seconds), str(workers), key=key) as result:
            yield load
        load.sent, load.failed, load.changes = result["sent"], result["failed"], result["changes"]

    @contextmanager
    def _running(self, program: Path, *words: str, key: str = "") -> Iterator[dict[str, Any]]:
        """Run a program in the Pod while the block runs; afterwards its result is in what is yielded."""
        folder = f"/tmp/load-{secrets.token_hex(4)}"
        self._run("sh", "-c", f"mkdir {folder} && cat > {folder}/program.py", stdin=program.read_text())
        command = f'setsid python {folder}/program.py "$@" {folder} > {folder}/log 2>&1 < /dev/null &'
        self._run("env", f"OPENAI_API_KEY={key}", "sh", "-c", command, "sh", *words)
        self._wait_for(f"{folder}/began", 30)
        result: dict[str, Any] = {}
        try:
            yield result
        finally:
            self._run("touch", f"{folder}/stop")
            self._wait_for(f"{folder}/result.json", 60)
        result |= json.loads(self._run("cat", f"{folder}/result.json"))

    def _wait_for(self, path: str, timeout_s: float) -> None:
        """Wait for a file in the Pod, by one command that waits there."""
        self._run("timeout", str(timeout_s), "sh", "-c", 'until [ -e "$1" ]; do sleep 0.1; done', "sh", path)

    def _run(self, *words: str, stdin: str | None = None) -> str:
        return self._namespace("exec", *(("-i",) if stdin else ()), "client", "--", *words, stdin=stdin)
