"""Containers of Pods that have no node: the processes that they name, on addresses of this machine's loopback.

Of an activator's Pod the activator, of a server's the server and the agent, each with the token of its Pod's account.
Nothing leads to them by a Service: `service` does as kube-proxy does, by labels and readiness.
"""

import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml
from e2e.cluster import Cluster
from e2e.cluster.background import Background
from tests.acceptance.running import environment

LOOPBACK = "127.9.{}.{}"
Body = Mapping[str, Any]


def addresses() -> Iterator[str]:
    """Yield Pods' addresses, each once: all of them are this machine's."""
    for number in range(1, 1 << 16):
        yield LOOPBACK.format(number >> 8, number & 255)


class Containers(Background):
    """A thread that starts and ends them as Pods of a namespace come and go: `with Containers(…) as running:`."""

    def __init__(self, cluster: Cluster, namespace: str, root: Path) -> None:
        self._cluster, self._namespace, self._root = cluster, namespace, root
        self._running: dict[str, list[subprocess.Popen[bytes]]] = {}
        super().__init__(self._run)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for uid in list(self._running):
            self._end(uid)

    def pods(self, label: str) -> list[Body]:
        """Return the Pods with this label that are not being deleted."""
        result = self._cluster.read("pods", "-n", self._namespace, "-l", label)["items"]
        return [pod for pod in result if "deletionTimestamp" not in pod["metadata"]]

    def service(self, model: str) -> list[str]:
        """Return the addresses of a model's Service: those of Pods with its label whose containers answer."""
        led = [pod["status"].get("podIP", "") for pod in self.pods(f"serves.argosy.dev/{model}")]
        return [item for item in led if item and _answers(item)]

    def logs(self) -> str:
        """Return the logs of all containers."""
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self._root.glob("*.log")))

    def _run(self) -> None:
        while not self.stopping.wait(0.3):
            there = {pod["metadata"]["uid"]: pod for pod in self.pods("app.kubernetes.io/managed-by=argosy")}
            for uid in self._running.keys() - there.keys():
                self._end(uid)
            for uid, pod in there.items():
                if uid not in self._running and pod["status"].get("podIP"):
                    self._initialize(pod)
                    self._running[uid] = [self._start(pod, container) for container in pod["spec"]["containers"]]

    def _initialize(self, pod: Body) -> None:
        """Run the containers that come before the others: those that make a control token."""
        folder = self._root / pod["metadata"]["uid"]
        folder.mkdir(exist_ok=True)
        for container in pod["spec"].get("initContainers", ()):
            *command, _ = container["command"]
            words = [sys.executable, *command[1:], str(folder / "control-token")]
            subprocess.run(words, env=self._environment(), check=True)

    def _start(self, pod: Body, container: Body) -> subprocess.Popen[bytes]:
        uid, address = pod["metadata"]["uid"], pod["status"]["podIP"]
        folder = self._root / uid
        (folder / "repository").mkdir(parents=True, exist_ok=True)
        provided = [item.replace("$(POD_UID)", uid) for item in container["args"]]
        token = f"--control-token-file={folder / 'control-token'}"
        match container["name"]:
            case "activator":
                words = [*provided, f"--host={address}", f"--credentials={self._credentials(pod, folder)}"]
            case "server":
                flags = {f"--{port}-address={address}" for port in ("http", "grpc", "metrics")}
                own = [f"--model-repository={folder / 'repository'}", token]
                words = [*_without(provided, "--model-repository", "--control-token-file"), *own, *flags]
            case _:
                own = [f"--server=http://{address}:8000", f"--folder={folder}", f"--cache={folder / 'cache'}", token]
                words = [*_without(provided, "--server", "--folder", "--cache", "--control-token-file"), *own]
                words.append(f"--credentials={self._credentials(pod, folder)}")
        command = [sys.executable, *container["command"][1:], *words]
        with (self._root / f"{container['name']}-{uid}.log").open("wb") as log:
            return subprocess.Popen(command, env=self._environment(), stdout=log, stderr=subprocess.STDOUT)

    def _environment(self) -> dict[str, str]:
        location = urlsplit(self._config("default")["clusters"][0]["cluster"]["server"])
        return {
            **environment(),
            "KUBERNETES_SERVICE_HOST": str(location.hostname),
            "KUBERNETES_SERVICE_PORT": str(location.port),
        }

    def _credentials(self, pod: Body, folder: Path) -> Path:
        """Write the token and the authority as a Pod of this account has them; return their folder."""
        config, location = self._config(pod["spec"]["serviceAccountName"]), folder / "account"
        location.mkdir(exist_ok=True)
        authority = config["clusters"][0]["cluster"]
        data = authority.get("certificate-authority-data")
        (location / "token").write_text(config["users"][0]["user"]["token"])
        (location / "ca.crt").write_bytes(
            b64decode(data) if data else Path(authority["certificate-authority"]).read_bytes()
        )
        return location

    def _config(self, account: str) -> Any:
        return yaml.safe_load(self._cluster.service_account_kubeconfig(self._namespace, account).read_text())

    def _end(self, uid: str) -> None:
        processes = self._running.pop(uid)
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _without(flags: list[str], *names: str) -> list[str]:
    return [flag for flag in flags if flag.partition("=")[0] not in names]


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"http://{address}:8000/v2/health/ready", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False
