"""A Pod that asks: from its own network, through the Services, as an application does."""

import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from e2e.asking.loop import REFUSED_S
from e2e.asking.namespace import Namespace
from e2e.asking.replies import Replies, Reply
from e2e.asking.session import Session

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
LOAD_S, WORKERS = 90, 4
ENDS_S = 90.0
"""How long its last requests may take, which wait for their answers."""
Headers = Mapping[str, str]
NO_HEADERS: Headers = MappingProxyType({})
ANSWER_S = 120.0
"""How long a request waits for its answer, also from a model that starts first, on cores that others use, too."""


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
    """The Pod, started and ready: `with Client(namespace, image, pull_policy) as client: …`."""

    def __init__(self, namespace: Namespace, image: str, pull_policy: str) -> None:
        self._namespace = namespace
        self._session: Session | None = None
        self._lock = threading.Lock()
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

    def get(
        self, url: str, body: str = "", key: str = "", patience_s: float = ANSWER_S, headers: Headers = NO_HEADERS
    ) -> Answer:
        """Return the answer to one request; with a body it is a POST, with a key it is authorized by it. Waits for a
        Service's first Pod.
        """
        sent = {**headers, **({"Authorization": f"Bearer {key}"} if key else {})}
        answer = self._in_pod().request(
            2 * patience_s + REFUSED_S, url=url, body=body, headers=sent, patience_s=patience_s
        )
        return Answer(answer["status"], answer["text"])

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60.0) -> str:
        """Return the output of a command in the Pod. Raises AssertionError where it fails."""
        answer = self._in_pod().request(timeout_s, command=command, stdin=stdin)
        assert answer["code"] == 0, f"{command} ended with {answer['code']}: {answer['text']}"
        return str(answer["text"])

    def _in_pod(self) -> Session:
        """Return a session that takes requests."""
        with self._lock:
            if self._session is None or not self._session.alive:
                self.close()
                self._session = Session(self._namespace, "client")
            return self._session

    def close(self) -> None:
        """End what runs of it on this machine."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self, resource: str, headers: Headers = NO_HEADERS, **parameters: int | bool) -> list[int]:
        """Return the current outputs of a model of `e2e/models/version`, or of an ensemble of them."""
        inputs = [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]
        body = {"inputs": inputs, "parameters": parameters}
        answer = self.get(f"{self.url(resource)}/infer", json.dumps(body), headers=headers)
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
        command = f'mkdir {folder}; cat > {folder}/program.py; setsid python {folder}/program.py "$@" {folder}'
        detached = f"{command} > {folder}/log 2>&1 < /dev/null &"
        self.run("env", f"OPENAI_API_KEY={key}", "sh", "-c", detached, "sh", *words, stdin=program.read_text())
        self._wait_for(f"{folder}/began", 30)
        result: dict[str, Any] = {}
        try:
            yield result
        finally:
            self.run("touch", f"{folder}/stop")
            self._wait_for(f"{folder}/result.json", ENDS_S)
        result |= json.loads(self.run("cat", f"{folder}/result.json"))

    def _wait_for(self, path: str, timeout_s: float) -> None:
        """Wait for a file in the Pod, by one command that waits there."""
        words = ("timeout", str(timeout_s), "sh", "-c", 'until [ -e "$1" ]; do sleep 0.1; done', "sh", path)
        self.run(*words, timeout_s=2 * timeout_s)
