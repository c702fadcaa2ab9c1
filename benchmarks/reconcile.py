"""`python -m benchmarks.reconcile`: the operator against a real API server, with 50 nodes of 8 GPUs that are played.

Prints JSON:

event_to_applied_p99_s  from an InferenceModel's new version to the ConfigMap of the server that is to load it, at 300
                        models, 99th percentile (and the median) of edits one after another
converge_1000_s         from the first of 1000 InferenceModels, applied at once, to the last one's Ready
operator_cpu_s          what the operator's process computed meanwhile
rounds                  how often it reconciled the pool meanwhile
operator_rss_mb         its largest resident memory, over the whole run
steady_requests         requests to the API server in a minute of rest, watches and leases apart

It needs root, for the operator runs as in a Pod: with a service account instead of a kubeconfig.
Nodes, Pods and agents are played by loops in this process, which share the machine with the
operator and the API server; so the times are upper bounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from e2e.cluster import Cluster
from e2e.cluster.background import Background
from e2e.cluster.client import custom
from e2e.cluster.standins.fake import FakeKubelets, fake_nodes
from e2e.cluster.standins.gpus import Gpus
from e2e.cluster.state import free_ports
from e2e.cluster.waiting import wait_for
from e2e.parts.agents import FakeAgents
from kubernetes import watch

from argosy_agent.contract import RenderedRepository

ROOT = Path(__file__).resolve().parents[1]
GROUP, VERSION, MODELS = "argosy.dev", "v1alpha1", "inferencemodels"
NODES, GPUS = 50, 8
WAIT_S = 600.0
REST_S = 60.0


def model(name: str, version: int = 1) -> dict[str, Any]:
    """Return a model that takes a quarter of an 80 GiB GPU."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "InferenceModel",
        "metadata": {"name": name},
        "spec": {
            "poolRef": {"name": "fleet"},
            "modelFormat": {"name": "onnx"},
            "version": version,
            "storageUri": f"s3://models/{name}/{version}",
            "footprint": {"gpuMemory": "15Gi"},
            "inputs": [{"name": "x", "dataType": "TYPE_FP32", "dims": [16]}],
            "outputs": [{"name": "y", "dataType": "TYPE_FP32", "dims": [16]}],
        },
    }


POOL = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "ServingPool",
    "metadata": {"name": "fleet"},
    "spec": {"maxGpusPerServer": GPUS},
}


ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
AS_A_POD = f'mkdir -p {ACCOUNT} && mount --bind "$0" {ACCOUNT} && exec "$@"'
"""Run a command with a folder in the place of a Pod's service account, which only this command sees."""


class Operator:
    """The operator's process, as in a Pod: its memory, its CPU time, its metrics."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        (self._port,) = free_ports(1)
        account = folder / "account"
        account.mkdir()
        (account / "token").write_text(cluster.token)
        (account / "ca.crt").write_bytes(cluster.plane.authority.certificate.read_bytes())
        server = urlsplit(cluster.server)
        with (folder / "operator.log").open("wb") as output:
            self._child = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", AS_A_POD, str(account),
                 sys.executable, "-m", "argosy.cli", "operator", "--host=127.0.0.1", f"--port={self._port}"],
                env={**os.environ, "KUBERNETES_SERVICE_HOST": str(server.hostname),
                     "KUBERNETES_SERVICE_PORT": str(server.port)},
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._process = psutil.Process(self._child.pid)
        self.rss_most = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    @property
    def cpu_s(self) -> float:
        """CPU seconds so far."""
        times = self._process.cpu_times()
        return times.user + times.system

    def alive(self) -> bool:
        """Return True while the operator runs. Raises RuntimeError where it has ended: nothing is measured then."""
        if self._child.poll() is not None:
            raise RuntimeError(f"the operator ended with code {self._child.returncode}")
        return True

    def requests(self) -> float:
        """Return the requests to the API server so far, without watches and leases."""
        requests = self._measured("argosy_api_requests_total{")
        return sum(value for name, value in requests.items() if 'verb="watch"' not in name and "leases" not in name)

    def rounds(self) -> float:
        """Return the rounds so far, of all pools."""
        return sum(self._measured("argosy_reconcile_total").values())

    def _measured(self, prefix: str) -> dict[str, float]:
        """Return the operator's own metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if line.startswith(prefix))
        return {name: float(value) for name, _, value in pairs}

    def stop(self) -> None:
        """End it."""
        self._stopping.set()
        self._thread.join()
        self._child.terminate()
        self._child.wait(30)

    def _sample(self) -> None:
        while not self._stopping.wait(0.5):
            self.rss_most = max(self.rss_most, self._process.memory_info().rss)


class Bench:
    """One cluster with its operator, and the questions that are put to it."""

    def __init__(self, cluster: Cluster, operator: Operator, heard: "Heard", seen: "Seen") -> None:
        self._api, self.operator, self._heard, self._seen = custom(cluster), operator, heard, seen

    def create(self, names: list[str]) -> None:
        """Create models, eight at a time."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self._create(MODELS, model(name)), names))

    def create_pool(self) -> None:
        """Create the pool."""
        self._create("servingpools", POOL)

    def bump(self, name: str, version: int) -> float:
        """Give a model a new version. Seconds until its server's ConfigMap has it."""
        arrived = self._heard.expect(name, version)
        spec = {"spec": {"version": version, "storageUri": f"s3://models/{name}/{version}"}}
        began = time.monotonic()
        self._api.patch_namespaced_custom_object(GROUP, VERSION, "default", MODELS, name, spec)
        if not arrived.wait(WAIT_S):
            raise TimeoutError(f"version {version} of {name} did not arrive")
        return self._heard.at(name, version) - began

    def wait_ready(self, count: int) -> None:
        """Wait until there are so many models, all Ready at their newest spec."""
        wait_for(f"{count} models Ready", lambda: self.operator.alive() and self._seen.ready() == count, WAIT_S)

    def delete_all(self) -> None:
        """Delete every model, and wait until the pool is empty."""
        self._api.delete_collection_namespaced_custom_object(GROUP, VERSION, "default", MODELS)
        wait_for("no model left", lambda: self._seen.count() == 0, WAIT_S)

    def _create(self, plural: str, body: dict[str, Any]) -> None:
        self._api.create_namespaced_custom_object(GROUP, VERSION, "default", plural, body)


class Seen(Background):
    """Which models are Ready, by a watch: lists of a thousand over and over would keep the API server busy."""

    def __init__(self, cluster: Cluster) -> None:
        self._api = custom(cluster)
        self._ready: dict[str, bool] = {}
        super().__init__(self._follow)

    def count(self) -> int:
        """Return the number of models."""
        return len(self._ready)

    def ready(self) -> int:
        """Return the number of models that are Ready at their newest spec."""
        return sum(list(self._ready.values()))

    def _follow(self) -> None:
        version = "0"
        while not self.stopping.is_set():
            events = watch.Watch().stream(
                self._api.list_namespaced_custom_object, GROUP, VERSION, "default", MODELS,
                resource_version=version, timeout_seconds=2,
            )  # fmt: skip
            for event in events:
                body = event["object"]
                version = body["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    self._ready.pop(body["metadata"]["name"], None)
                else:
                    self._ready[body["metadata"]["name"]] = _is_ready(body)


class Heard:
    """When which version of which model reached an agent. Times are of the steady clock."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, int], threading.Event] = {}
        self._times: dict[tuple[str, int], float] = {}

    def repository(self, _: str, repository: RenderedRepository) -> None:
        """Record that a repository reached an agent."""
        now = time.monotonic()
        for key in [(model.name, version) for model in repository.models for version in model.versions]:
            self._times.setdefault(key, now)
            if key in self._events:
                self._events[key].set()

    def expect(self, name: str, version: int) -> threading.Event:
        """Return an event that is set when this version has reached an agent."""
        return self._events.setdefault((name, version), threading.Event())

    def at(self, name: str, version: int) -> float:
        """Return the time at which this version reached an agent."""
        return self._times[name, version]


def _is_ready(body: dict[str, Any]) -> bool:
    status = body.get("status", {})
    if status.get("observedGeneration") != body["metadata"]["generation"]:
        return False
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))


@contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    """Yield a control plane, its played nodes and agents, and an operator."""
    heard = Heard()
    with Cluster.control_plane(folder / "cluster") as cluster:
        for crd in sorted((ROOT / "crds").glob("*.yaml")):
            cluster.apply(crd.read_text())
        names = fake_nodes(cluster, NODES, Gpus(count=GPUS))
        with FakeKubelets(cluster, names), FakeAgents(cluster, heard.repository), Seen(cluster) as seen:
            operator = Operator(cluster, folder)
            try:
                yield Bench(cluster, operator, heard, seen)
            finally:
                operator.stop()


def measure(running: Bench, models: int, edits: int, burst: int) -> dict[str, float]:
    """Return all figures. Prints its progress on stderr."""
    names = [f"model-{number}" for number in range(models)]
    report_progress(f"rss {running.operator.rss_most / 1e6:.0f} MB; {models} models")
    running.create_pool()
    running.create(names)
    running.wait_ready(models)
    report_progress(f"{edits} edits")
    waits = [running.bump(names[edit % models], 2 + edit // models) for edit in range(edits)]
    running.wait_ready(models)
    report_progress(
        f"median {statistics.median(waits):.3f} s; rss {running.operator.rss_most / 1e6:.0f} MB; a minute of rest"
    )
    time.sleep(REST_S / 4)
    before = running.operator.requests()
    time.sleep(REST_S)
    steady = running.operator.requests() - before
    report_progress(f"{steady:.0f} requests; {burst} models at once")
    running.delete_all()
    cpu, rounds, began = running.operator.cpu_s, running.operator.rounds(), time.monotonic()
    running.create([f"burst-{number}" for number in range(burst)])
    report_progress(f"created in {time.monotonic() - began:.0f} s")
    running.wait_ready(burst)
    return {
        "models": models,
        "event_to_applied_p50_s": round(statistics.median(waits), 3),
        "event_to_applied_p99_s": round(statistics.quantiles(waits, n=100)[98], 3),
        f"converge_{burst}_s": round(time.monotonic() - began, 1),
        "operator_cpu_s": round(running.operator.cpu_s - cpu, 1),
        "rounds": running.operator.rounds() - rounds,
        "operator_rss_mb": round(running.operator.rss_most / 1e6),
        "steady_requests": steady,
    }


def report_progress(words: str) -> None:
    """Print progress for people."""
    print(words, file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=300, help="models while edits are timed (300)")
    parser.add_argument("--edits", type=int, default=200, help="edits that are timed (200)")
    parser.add_argument("--burst", type=int, default=1000, help="models that are applied at once (1000)")
    parser.add_argument("--folder", type=Path, help="where logs are kept; default: a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with bench(folder) as running:
            print(json.dumps(measure(running, options.models, options.edits, options.burst), indent=1))


if __name__ == "__main__":
    main()
