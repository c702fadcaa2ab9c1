"""Invalid resources are refused at `kubectl apply`, by a real API server with the chart's webhook configuration.

The operators are processes on this machine, so the chart's Service is replaced by their addresses; all else of its
configuration is as it comes. The tests build on one another, in their order.
"""

import base64
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from argosy.handlers.admission import CERTIFICATE, KEY
from argosy.handlers.resources import PATH
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.cluster.state import free_ports
from e2e.cluster.waiting import wait_for
from e2e.declared.resources import Body, pool, version_model
from e2e.deployed import release
from e2e.parts.operatorprocess import OperatorProcess
from e2e.starting import started

pytestmark = pytest.mark.timeout(600)

CONFIGURATION = f"argosy-{release.NAMESPACE}-admission"
STORAGE = "https://models.example.com"
OPTIONS = {"nonsense": 1, "foolish": 2}
"""Of an engine's options the CRD knows nothing."""


@dataclass(slots=True)
class Replicas:
    """The operators, and the ports of their admission servers."""

    cluster: Cluster
    processes: list[OperatorProcess]
    ports: list[int]

    def ask(self, number: int) -> None:
        """Have the API server ask this one, and wait until it does."""
        url = f"https://127.0.0.1:{self.ports[number]}/{PATH}"
        authority = base64.b64encode(self.cluster.plane.authority.certificate.read_bytes()).decode()
        change = {"op": "replace", "path": "/webhooks/0/clientConfig", "value": {"url": url, "caBundle": authority}}
        patch = ("--type=json", "-p", json.dumps([change]))
        self.cluster.kubectl("patch", "validatingwebhookconfiguration", CONFIGURATION, *patch)
        wait_for("the API server to ask", self.refuses, 60)

    def refuses(self) -> bool:
        """Return whether a wrong model would be refused now."""
        words = ("apply", "--dry-run=server", "-n", "default", "-f", "-")
        return self.cluster.kubectl_process(*words, stdin=json.dumps(wrong("probe"))).returncode != 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a control plane with the chart's release, whose operators run outside of it."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("admission")) as cluster:
        own = {"certificate": {"secretName": "of-this-machine"}}
        release.install(cluster, {"replicas": 0, "admission": own})
        yield cluster


@pytest.fixture(scope="module")
def replicas(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Start two of them: one leads, the other stands by."""
    folder, ports = tmp_path_factory.mktemp("replicas"), free_ports(2)
    _certify(cluster, folder)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                OperatorProcess(
                    cluster,
                    folder / f"{port}.log",
                    f"--admission-certificates={folder}",
                    f"--admission-port={port}",
                )
            )
            for port in ports
        ]
        processes[0].until("readiness", lambda: all(process.ask("/readyz") == (200, "ok\n") for process in processes))
        processes[0].until("one that leads", lambda: sum(process.leads() for process in processes) == 1)
        yield Replicas(cluster, processes, ports)


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Namespace:
    made = Namespace(cluster, "admission")
    made.create()
    return made


def _certify(cluster: Cluster, folder: Path) -> None:
    """Put a certificate and its key where a Secret's files would be."""
    files = cluster.plane.authority.server("admission", ["localhost"], ["127.0.0.1"])
    for source, name in zip(files, (CERTIFICATE, KEY), strict=True):
        os.replace(source, folder / name)


def wrong(name: str) -> Body:
    """Return a model that the API server's schema takes, and that has two errors."""
    model = version_model(name, "main", STORAGE)
    model["spec"]["engine"] = {"builder": "tensorrt", "options": OPTIONS}
    return model


def _refusal(namespace: Namespace, body: Body) -> str:
    done = namespace.access.kubectl_process("-n", namespace.name, "apply", "-f", "-", stdin=json.dumps(body))
    assert done.returncode != 0, done.stdout
    return done.stderr


@pytest.mark.parametrize("number", [0, 1])
def test_every_replica_refuses_with_all_errors(replicas: Replicas, namespace: Namespace, number: int) -> None:
    replicas.ask(number)
    message = _refusal(namespace, wrong("model"))
    assert 'admission webhook "validate.argosy.dev" denied the request' in message
    assert f"InferenceModel {namespace.name}/model is invalid:" in message
    for option in OPTIONS:
        assert f"- spec.engine.options.{option}: tensorrt has no such option" in message
    assert namespace.names() == []


def test_what_is_right_is_stored_and_the_status_names_the_missing(replicas: Replicas, namespace: Namespace) -> None:
    namespace.apply(version_model("model", "main", STORAGE))
    message = namespace.says("inferencemodel/model", "Valid", "False", "UnknownPool")
    assert "main" in message
    namespace.apply(pool("main"))
    namespace.until("a valid model", lambda: namespace.condition("inferencemodel/model", "Valid")["status"] == "True")
    assert "denied the request" in _refusal(namespace, wrong("model"))


def test_while_none_answers_all_is_stored_and_can_be_changed(replicas: Replicas, namespace: Namespace) -> None:
    with _closed(replicas):
        namespace.apply(wrong("unchecked"))
    namespace.says("inferencemodel/unchecked", "Valid", "False", "InvalidSpec")
    namespace("label", "inferencemodel/unchecked", "team=ml")
    changed = wrong("unchecked")
    changed["spec"]["version"] = 2
    assert "denied the request" in _refusal(namespace, changed)
    namespace.apply(version_model("unchecked", "main", STORAGE))
    namespace("delete", "inferencemodel/unchecked", "inferencemodel/model", "servingpool/main")


@contextmanager
def _closed(replicas: Replicas) -> Iterator[None]:
    """Have the API server ask where nothing listens, and afterwards the first replica again."""
    (port,) = free_ports(1)
    change = [{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": f"https://127.0.0.1:{port}/{PATH}"}]
    patch = ("--type=json", "-p", json.dumps(change))
    replicas.cluster.kubectl("patch", "validatingwebhookconfiguration", CONFIGURATION, *patch)
    wait_for("the API server to go on without", lambda: not replicas.refuses(), 60)
    yield
    replicas.ask(0)
