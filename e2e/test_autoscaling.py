"""Replicas and instances follow the load that there really is, and the status says why.

The tests of the first namespace build on one another, in their order.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e import podprocesses, prometheus, release
from e2e.builds import Images
from e2e.client import Client
from e2e.cluster import Cluster
from e2e.cluster.gpus import Gpus, offer_gpus
from e2e.cluster.node import NAME as NODE
from e2e.namespace import Namespace
from e2e.resources import Body, pool, version_model

pytestmark = pytest.mark.timeout(900)

STAGE, CROWD, LOW, HIGH = (f"inferencemodel/{name}" for name in ("stage", "crowd", "low", "high"))
BUSY_S = 0.1
"""How long an execution takes: a replica with one instance answers ten requests a second."""
SOON = {"scaleDown": {"stabilizationWindow": "20s"}}


def scaled(name: str, pool: str, storage: str, **spec: Any) -> Body:
    """A model of which an instance is busy for a while with each request."""
    slo = {"latency": {"p99": "350ms"}}
    return version_model(name, pool, storage, work_s=BUSY_S, **{"slo": slo, "scaling": SOON} | spec)


def scaling(namespace: Namespace, model: str) -> dict[str, Any]:
    found: dict[str, Any] = namespace.status(model).get("scaling", {})
    return found


def events(namespace: Namespace, model: str) -> list[tuple[str, str]]:
    """Reasons and messages of a model's Events."""
    name = model.partition("/")[2]
    items = namespace.json("get", "events", f"--field-selector=involvedObject.name={name}")["items"]
    return [(each["reason"], each["message"]) for each in items]


@pytest.fixture(scope="module")
def measured(namespace: Namespace, images: Images) -> str:
    """A Prometheus that scrapes the servers; its URL."""
    return prometheus.start(namespace, images.runtime)


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, client: Client, storage: str, measured: str) -> None:
    namespace.apply(
        pool("scaled", monitoring={"prometheus": {"url": measured}}),
        scaled("stage", "scaled", storage, instances=1),
        scaled("crowd", "scaled", storage, instances=1, maxReplicas=3),
    )
    namespace.ready()


def test_a_starved_stage_is_told_by_name_and_cured_by_instances(
    namespace: Namespace, client: Client, storage: str, record_property: Callable[[str, object], None]
) -> None:
    with client.load(STAGE, 200, workers=8) as load:
        namespace.until(
            "the bottleneck", lambda: namespace.status(STAGE).get("bottleneck", {}).get("kind") == "StarvedStage", 60
        )
        found = namespace.status(STAGE)["bottleneck"]
        assert found["stage"] == "stage"
        (pod,) = namespace.server_uids("scaled")
        namespace.apply(scaled("stage", "scaled", storage))
        namespace.until("more instances", lambda: scaling(namespace, STAGE).get("instances", 1) > 1, 60)
        namespace.until("no bottleneck", lambda: "bottleneck" not in namespace.status(STAGE), 120)
    assert load.failed == []
    assert namespace.server_uids("scaled") == {pod}
    told = scaling(namespace, STAGE)
    record_property("stage", told)
    assert told["history"][0]["instances"] > told["history"][0]["formerInstances"]
    assert {"StarvedStage", "BottleneckEnded"} <= {reason for reason, _ in events(namespace, STAGE)}


def test_a_flash_crowd_adds_replicas(namespace: Namespace, client: Client) -> None:
    with client.load(CROWD, 200, workers=10) as load:
        namespace.until("replicas", lambda: namespace.status(CROWD).get("availableReplicas", 0) > 1, 120)
        namespace.ready(CROWD)
    assert load.failed == []
    told = scaling(namespace, CROWD)
    assert told["history"][0]["reason"] in ("ScaledUp", "AtMaximum")
    assert told["history"][0]["replicas"] > 1
    assert "ScaledUp" in {reason for reason, _ in events(namespace, CROWD)}


def test_an_operator_that_is_killed_forgets_nothing(namespace: Namespace, client: Client, cluster: Cluster) -> None:
    with client.load(CROWD, 300, workers=10) as load:
        namespace.until("replicas", lambda: scaling(namespace, CROWD).get("replicas", 0) > 1, 120)
        before = scaling(namespace, CROWD)
        pod = cluster.json("get", "pod", release.leader(cluster), "-n", release.NAMESPACE)
        podprocesses.kill(pod, "argosy operator")
        cluster.kubectl(
            "delete", "pod", pod["metadata"]["name"], "-n", release.NAMESPACE, "--grace-period=0", "--force"
        )
        gone = pod["metadata"]["name"]
        namespace.until("another leader", lambda: release.leader(cluster) not in ("", gone), 60)
        namespace.until("a decision of its own", lambda: scaling(namespace, CROWD)["reason"] != "NoSignals", 60)
        after = scaling(namespace, CROWD)
        assert after["replicas"] >= before["replicas"]
        assert [each["time"] for each in before["history"]] == [
            each["time"] for each in after["history"] if each["time"] <= before["history"][0]["time"]
        ][: len(before["history"])]
    assert load.failed == []


def test_without_prometheus_nothing_goes_down_and_the_status_says_so(
    namespace: Namespace, client: Client, images: Images
) -> None:
    with client.load(CROWD, 200, workers=10):
        namespace.until("replicas", lambda: namespace.status(CROWD).get("availableReplicas", 0) > 1, 120)
        prometheus.kill(namespace)
        replicas = scaling(namespace, CROWD)["replicas"]
    message = namespace.says(CROWD, "Scaling", "Unknown", "NoSignals", 120)
    assert "Prometheus" in message
    assert scaling(namespace, CROWD)["replicas"] == replicas  # the crowd is gone, and nobody could know
    prometheus.run(namespace, images.runtime)
    namespace.until("signals", lambda: scaling(namespace, CROWD)["reason"] != "NoSignals", 60)


def test_after_the_crowd_its_replicas_go(namespace: Namespace) -> None:
    namespace.until("one replica", lambda: namespace.status(CROWD).get("replicas") == 1, 240)
    namespace.until("one Pod", lambda: len(namespace.server_pods("scaled")) == 1, 120)
    assert "ScaledDown" in {reason for reason, _ in events(namespace, CROWD)}


def test_what_kubectl_shows_at_a_glance(namespace: Namespace) -> None:
    head, *rows = namespace("get", "argosy").splitlines()
    assert {"INSTANCES", "SCALING", "BOTTLENECK"} <= set(head.split())
    assert any(row.split()[0].endswith("crowd") for row in rows)


@pytest.fixture
def three_gpus(cluster: Cluster) -> Iterator[None]:
    """The node has them on paper, which is enough for a model that uses none."""
    offer_gpus(cluster, NODE, Gpus(3))
    yield
    offer_gpus(cluster, NODE, Gpus(0))


def test_two_models_compete_for_the_last_gpu(
    namespace: Namespace, client: Client, storage: str, three_gpus: None
) -> None:
    alone = {"footprint": {"gpus": 1}, "instances": 1, "maxReplicas": 3}
    namespace.apply(
        pool("contested", maxGpusPerServer=1),
        scaled("low", "contested", storage, **alone),
        scaled("high", "contested", storage, priority=10, **alone),
    )
    namespace.ready(LOW, HIGH)
    with client.load(LOW, 300, workers=10):
        namespace.until("the last GPU for the one", lambda: namespace.status(LOW).get("replicas") == 2, 120)
        with client.load(HIGH, 200, workers=10):
            namespace.until("the last GPU for the other", lambda: namespace.status(HIGH).get("replicas") == 2, 120)
            message = namespace.says(LOW, "Scaling", "False", "LimitedByCapacity", 120)
    assert namespace.status(LOW)["replicas"] == 1
    assert scaling(namespace, LOW)["limitedBy"], json.dumps(scaling(namespace, LOW))
    assert message
    namespace("delete", LOW, HIGH, "servingpool/contested")
