"""A refused request is reported on its resource, and no object of others is changed."""

import json
from collections.abc import Iterator

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.cluster.node.node import NAME as NODE
from e2e.cluster.standins.gpus import Gpus, offer_gpus
from e2e.declared.resources import pool, version_model
from e2e.deployed import release

pytestmark = pytest.mark.timeout(600)

LONG = "n" * 253
FOREIGN = """
apiVersion: v1
kind: Service
metadata: {name: taken, labels: {of: somebody}}
spec: {ports: [{port: 80, protocol: TCP}], selector: {of: somebody}}
"""


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, storage: str) -> None:
    namespace.apply(pool("one"), version_model("good", "one", storage))
    namespace.ready()


def test_a_service_of_somebody_else_is_left_alone(namespace: Namespace, client: Client, storage: str) -> None:
    namespace("apply", "-f", "-", stdin=FOREIGN)
    before = namespace.read("service", "taken")
    namespace.apply(version_model("taken", "one", storage))
    message = namespace.says("inferencemodel/taken", "Ready", "False", "NotApplied")
    assert message.startswith(f"Service {namespace.name}/taken: exists and is not Argosy's")
    assert namespace.read("service", "taken") == before
    assert client.version("inferencemodel/good") == [1]

    namespace("delete", "service", "taken")
    namespace.ready("inferencemodel/taken")
    assert client.version("inferencemodel/taken") == [1]


def test_a_name_that_another_pool_uses_is_refused(namespace: Namespace, client: Client, storage: str) -> None:
    ensemble = {
        "apiVersion": "argosy.dev/v1alpha1",
        "kind": "Ensemble",
        "metadata": {"name": "good"},
        "spec": {
            "poolRef": {"name": "two"},
            "inputs": [{"name": "X", "dataType": "TYPE_INT32", "dims": [1]}],
            "outputs": [{"name": "VERSION", "dataType": "TYPE_INT32", "dims": [1]}],
            "steps": [{"model": "other", "inputs": {"X": "X"}, "outputs": {"VERSION": "VERSION"}}],
        },
    }
    namespace.apply(pool("two"), version_model("other", "two", storage), ensemble)
    namespace.ready("inferencemodel/other")
    message = namespace.says("ensemble/good", "Valid", "False", "NameConflict")
    assert "InferenceModel" in message
    assert client.version("inferencemodel/good") == [1]
    namespace("delete", "ensemble/good", "inferencemodel/other", "servingpool/two")


def test_names_of_253_characters_are_served(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(pool(LONG), version_model(LONG, LONG, storage))
    namespace.ready(f"inferencemodel/{LONG}", f"servingpool/{LONG}")
    assert client.version(f"inferencemodel/{LONG}") == [1]
    namespace("delete", f"inferencemodel/{LONG}", f"servingpool/{LONG}")


@pytest.fixture
def one_gpu(cluster: Cluster) -> Iterator[None]:
    """Give the node one GPU, on paper."""
    offer_gpus(cluster, NODE, Gpus(1))
    yield
    offer_gpus(cluster, NODE, Gpus(0))


def test_a_model_that_fits_nowhere_says_why(namespace: Namespace, client: Client, storage: str, one_gpu: None) -> None:
    wants = {"footprint": {"gpuMemory": "70Gi"}, "parallelism": {"tensor": 2}}
    namespace.apply(pool("gpus", memoryHeadroom="5%"), version_model("large", "gpus", storage, **wants))
    message = namespace.says("inferencemodel/large", "Placed", "False", "TooFewGpusOnANode")
    assert "large needs 2 GPUs of 70 GiB on one node" in message
    assert f"node {NODE} has the most that large, 1" in message
    assert namespace.condition("inferencemodel/large", "Ready")["message"] == message
    assert client.version("inferencemodel/good") == [1]
    namespace("delete", "inferencemodel/large", "servingpool/gpus")


@pytest.fixture
def without_network_policies(cluster: Cluster) -> Iterator[None]:
    """Take the right to write NetworkPolicies from the operator."""
    role = cluster.read("clusterrole", "-l", "app.kubernetes.io/part-of=argosy")["items"]
    (full,) = [item for item in role if any("networkpolicies" in rule["resources"] for rule in item["rules"])]
    fewer = [rule for rule in full["rules"] if "networkpolicies" not in rule["resources"]]
    reading = {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["get", "list", "watch"]}
    name = full["metadata"]["name"]
    cluster.kubectl("patch", "clusterrole", name, "--type=merge", "-p", json.dumps({"rules": [*fewer, reading]}))
    yield
    cluster.kubectl("patch", "clusterrole", name, "--type=merge", "-p", json.dumps({"rules": full["rules"]}))


def test_a_right_that_is_missing_is_reported_and_used_once_it_is_set(
    namespace: Namespace, client: Client, storage: str, without_network_policies: None, cluster: Cluster
) -> None:
    namespace.apply(pool("three"), version_model("third", "three", storage))
    message = namespace.says("servingpool/three", "Ready", "False", "NotApplied")
    assert f"NetworkPolicy {namespace.name}/three" in message
    assert "networkpolicies" in message
    namespace.ready("inferencemodel/third")
    assert client.version("inferencemodel/good") == [1]
    assert release.leader(cluster)


def test_the_pool_is_complete_once_the_right_is_there(namespace: Namespace) -> None:
    namespace.ready("servingpool/three")
    assert namespace.read("networkpolicy", "three")["spec"]
