"""Replicas and instances follow the load that there really is, and the status says why.

The tests build on one another, in their order: loads go on from one to the next, and while nothing is heard of a dead
Prometheus, models of another pool compete.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from e2e.asking.client import Client, Load
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.cluster.node.node import NAME as NODE
from e2e.cluster.standins.gpus import Gpus, offer_gpus
from e2e.declared.resources import Body, pool, version_model
from e2e.deployed import prometheus, release
from e2e.deployed.builds import Images
from e2e.parts import podprocesses

pytestmark = pytest.mark.timeout(900)

STAGE, CROWD, LOW, HIGH, SEPARATE = (f"inferencemodel/{name}" for name in ("stage", "crowd", "low", "high", "separate"))
ALONE = {"footprint": {"gpus": 1}, "instanceGroups": [{"kind": "KIND_MODEL", "count": 1}]}
"""A GPU for each replica. KIND_MODEL leaves it to the model which device it uses, here none."""
BUSY_S = 0.1
"""How long an execution takes: a replica with one instance answers ten requests a second."""
SOON = {"scaleDown": {"stabilizationWindow": "10s"}}


def scaled(name: str, pool: str, storage: str, **spec: Any) -> Body:
    """Return a model of which an instance is busy for a while with each request."""
    slo = {"latency": {"p99": "350ms"}}
    return version_model(name, pool, storage, work_s=BUSY_S, **{"slo": slo, "scaling": SOON} | spec)


def scaling(namespace: Namespace, model: str) -> dict[str, Any]:
    status: dict[str, Any] = namespace.status(model).get("scaling", {})
    return status


def bottleneck(namespace: Namespace, model: str) -> dict[str, Any]:
    status: dict[str, Any] = namespace.status(model).get("bottleneck") or {}
    return status


def reasons(namespace: Namespace, model: str) -> set[str]:
    """Return the reasons of a model's Events."""
    name = model.partition("/")[2]
    items = namespace.read("events", f"--field-selector=involvedObject.name={name}")["items"]
    return {event["reason"] for event in items}


class Loads:
    """Requests that go on until they are ended, also over several tests."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ends: dict[str, tuple[ExitStack, Load]] = {}

    def begin(self, model: str, workers: int) -> None:
        """Start so many workers, each of which sends one request after another."""
        end = ExitStack()
        self._ends[model] = end, end.enter_context(self._client.load(model, 300, workers))

    def end(self, model: str) -> Load:
        """End the load of a model and return its outcome."""
        end, load = self._ends.pop(model)
        end.close()
        return load

    def close(self) -> None:
        """End all."""
        for model in tuple(self._ends):
            self.end(model)


@pytest.fixture(scope="module", autouse=True)
def loads(namespace: Namespace, client: Client, images: Images, storage: str) -> Iterator[Loads]:
    """Yield loads on models that are served by servers which a Prometheus scrapes."""
    url = prometheus.start(namespace, images.runtime)
    namespace.apply(
        pool("scaled", monitoring={"prometheus": {"url": url}}),
        scaled("stage", "scaled", storage, instances=1),
        scaled("crowd", "scaled", storage, instances=1, maxReplicas=3),
    )
    namespace.ready()
    begun = Loads(client)
    yield begun
    begun.close()


def test_a_starved_stage_is_identified_by_name_and_gets_instances(
    namespace: Namespace, loads: Loads, storage: str, record_property: Callable[[str, object], None]
) -> None:
    loads.begin(STAGE, 5)
    namespace.until("the bottleneck", lambda: bottleneck(namespace, STAGE).get("kind") == "StarvedStage", 60)
    assert bottleneck(namespace, STAGE)["stage"] == "stage"
    (pod,) = namespace.server_uids("scaled")
    namespace.apply(scaled("stage", "scaled", storage))
    namespace.until("more instances", lambda: scaling(namespace, STAGE).get("instances", 1) > 1, 60)
    assert namespace.server_uids("scaled") == {pod}
    reported = scaling(namespace, STAGE)
    record_property("stage", reported)
    assert reported["history"][0]["instances"] > reported["history"][0]["formerInstances"]


def test_a_flash_crowd_adds_replicas(namespace: Namespace, loads: Loads) -> None:
    loads.begin(CROWD, 8)
    namespace.until("replicas", lambda: namespace.status(CROWD).get("availableReplicas", 0) > 1, 120)
    namespace.ready(CROWD)
    newest = scaling(namespace, CROWD)["history"][0]
    assert newest["reason"] in ("ScaledUp", "AtMaximum")
    assert newest["replicas"] > newest["formerReplicas"]
    assert "ScaledUp" in reasons(namespace, CROWD)


def test_an_operator_that_is_killed_forgets_nothing(namespace: Namespace, cluster: Cluster) -> None:
    before = scaling(namespace, CROWD)
    pod = cluster.read("pod", release.leader(cluster), "-n", release.NAMESPACE)
    gone = pod["metadata"]["name"]
    podprocesses.kill(pod, "argosy operator")
    cluster.kubectl("delete", "pod", gone, "-n", release.NAMESPACE, "--grace-period=0", "--force")
    namespace.until("another leader", lambda: release.leader(cluster) not in ("", gone), 60)
    namespace.until("what it decided", lambda: scaling(namespace, CROWD)["reason"] != "NoSignals", 60)
    after = scaling(namespace, CROWD)
    assert after["replicas"] >= before["replicas"]
    times = {change["time"] for change in before["history"]}
    assert [change for change in after["history"] if change["time"] in times] == before["history"]


@pytest.fixture(scope="module")
def blind(namespace: Namespace, loads: Loads) -> int:
    """Kill Prometheus, then end the load, which nothing can measure; return the replicas that there were."""
    prometheus.kill(namespace)
    assert loads.end(CROWD).failed == []
    replicas: int = scaling(namespace, CROWD)["replicas"]
    assert replicas > 1
    return replicas


@pytest.fixture
def three_gpus(cluster: Cluster) -> Iterator[None]:
    """Give the node three GPUs on paper, which is enough for a model that uses none."""
    offer_gpus(cluster, NODE, Gpus(3))
    yield
    offer_gpus(cluster, NODE, Gpus(0))


@pytest.mark.usefixtures("blind", "three_gpus")
def test_two_models_compete_for_the_last_gpu(namespace: Namespace, loads: Loads, storage: str) -> None:
    alone = {**ALONE, "maxReplicas": 3}
    namespace.apply(
        pool("contested", maxGpusPerServer=1),
        scaled("low", "contested", storage, **alone),
        scaled("high", "contested", storage, priority=10, **alone),
    )
    namespace.ready(LOW, HIGH)
    loads.begin(LOW, 5)
    namespace.until("the last GPU for the one", lambda: namespace.status(LOW).get("availableReplicas") == 2)
    loads.begin(HIGH, 5)
    namespace.until("the last GPU for the other", lambda: namespace.status(HIGH).get("availableReplicas") == 2)
    message = namespace.says(LOW, "Scaling", "False", "LimitedByCapacity")
    missing = scaling(namespace, LOW)["limitedBy"]
    assert missing.startswith("it gives way to high, whose priority is 10 and not 0: low needs 1 GPU")
    assert missing in message
    assert scaling(namespace, LOW)["replicas"] == namespace.status(LOW)["replicas"] == 1
    assert (loads.end(LOW).failed, loads.end(HIGH).failed) == ([], [])
    namespace("delete", LOW, HIGH, "servingpool/contested")


@pytest.mark.usefixtures("three_gpus")
def test_the_service_leads_to_the_variant_that_the_load_asks_for(
    namespace: Namespace, loads: Loads, storage: str
) -> None:
    variants = [{"name": "few", "maxConcurrency": 2}, {"name": "many"}]
    routed = {"variants": variants, "routing": {"placement": "Separate"}, **ALONE}
    namespace.apply(
        pool("regimes", maxGpusPerServer=1), version_model("separate", "regimes", storage, work_s=BUSY_S, **routed)
    )
    namespace.ready(SEPARATE)
    assert len(namespace.server_pods("regimes")) == 2
    loads.begin(SEPARATE, 8)
    namespace.until("the variant for many", lambda: _regime(namespace) == "many")
    namespace.until("its servers alone", lambda: _endpoints(namespace, "separate") == ["many"])
    assert loads.end(SEPARATE).failed == []
    namespace.until("the variant for few", lambda: _regime(namespace) == "few")
    namespace.until("its servers alone", lambda: _endpoints(namespace, "separate") == ["few"])
    namespace("delete", SEPARATE, "servingpool/regimes")


def _regime(namespace: Namespace) -> str:
    return str(namespace.status(SEPARATE)["regime"]["variant"])


def _endpoints(namespace: Namespace, service: str) -> list[str]:
    """Return the variants whose Services lead to the same Pods as a model's."""
    return [name for name in ("few", "many") if _pods(namespace, service) & _pods(namespace, f"{service}--{name}")]


def _pods(namespace: Namespace, service: str) -> set[str]:
    slices = namespace.read("endpointslices", f"--selector=kubernetes.io/service-name={service}")["items"]
    return {str(end["targetRef"]["name"]) for one in slices for end in one["endpoints"] or ()}


def test_without_prometheus_nothing_goes_down_and_the_status_says_so(namespace: Namespace, blind: int) -> None:
    message = namespace.says(CROWD, "Scaling", "Unknown", "NoSignals")
    assert "Prometheus http://" in message
    assert "cannot be reached" in message
    assert scaling(namespace, CROWD)["replicas"] == namespace.status(CROWD)["availableReplicas"] == blind


def test_after_the_crowd_its_replicas_go(namespace: Namespace, images: Images) -> None:
    prometheus.run(namespace, images.runtime)
    namespace.until("one replica", lambda: namespace.status(CROWD).get("replicas") == 1)
    namespace.until("one Pod", lambda: len(namespace.server_pods("scaled")) == 1)
    assert "ScaledDown" in reasons(namespace, CROWD)


def test_the_stage_is_cured(namespace: Namespace, loads: Loads) -> None:
    namespace.until("no bottleneck", lambda: not bottleneck(namespace, STAGE), 120)
    assert loads.end(STAGE).failed == []
    assert {"StarvedStage", "BottleneckEnded"} <= reasons(namespace, STAGE)


def test_what_kubectl_shows_at_a_glance(namespace: Namespace) -> None:
    (models,) = (table for table in namespace("get", "argosy").split("\n\n") if "inferencemodel" in table)
    head, *rows = models.splitlines()
    assert {"INSTANCES", "SCALING", "TOKENS/S", "BOTTLENECK"} <= set(head.split())
    assert any(row.split()[0].endswith("crowd") for row in rows)
