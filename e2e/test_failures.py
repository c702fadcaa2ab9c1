"""What dies comes back, and what is served goes on being served meanwhile.

The tests build on one another, in their order.
"""

import json
import time
from collections.abc import Callable

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import MANAGED, Namespace
from e2e.cluster import Cluster
from e2e.declared.resources import pool, version_model
from e2e.deployed import release
from e2e.parts import podprocesses

pytestmark = pytest.mark.timeout(600)

POOL, MODEL = "tough", "inferencemodel/answers"
ROUTE = "serves.argosy.dev/answers"
OUTAGE_S = 65.0
"""Longer than a lease, a watch's patience and the node controller's grace."""


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(pool(POOL), version_model("answers", POOL, storage))
    namespace.ready()


def _is_served(namespace: Namespace, client: Client, version: int) -> None:
    """Assert that the full chain works: a new version is declared, loaded, and answers."""
    namespace.ready()
    assert client.version(MODEL) == [version]


def test_another_replica_takes_over_when_the_one_that_leads_is_gone(
    namespace: Namespace, client: Client, storage: str, cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    before = release.leader(cluster)
    assert before
    with client.load(MODEL) as load:
        cluster.kubectl("delete", "pod", before, "-n", release.NAMESPACE, "--grace-period=0", "--force")
        began = time.monotonic()
        namespace.until("another leader", lambda: release.leader(cluster) not in ("", before), 60)
        record_property("takeover_s", round(time.monotonic() - began, 1))
        namespace.apply(version_model("answers", POOL, storage, 2))
        _is_served(namespace, client, 2)
    assert load.failed == []


def test_an_operator_that_dies_is_started_again(
    namespace: Namespace, client: Client, storage: str, cluster: Cluster
) -> None:
    pod = cluster.read("pod", release.leader(cluster), "-n", release.NAMESPACE)
    podprocesses.kill(pod, "argosy operator")
    namespace.apply(version_model("answers", POOL, storage, 3))
    _is_served(namespace, client, 3)


def test_an_agent_that_dies_is_not_noticed_by_requests(namespace: Namespace, client: Client, storage: str) -> None:
    (pod,) = namespace.server_pods(POOL)
    with client.load(MODEL) as load:
        podprocesses.kill(pod, "argosy_agent.run")
        namespace.apply(version_model("answers", POOL, storage, 4))
        _is_served(namespace, client, 4)
    assert load.failed == []
    (after,) = namespace.server_pods(POOL)
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert [container["restartCount"] for container in after["status"]["containerStatuses"]] == [0, 0]


def test_a_server_that_dies_comes_back_with_its_models(namespace: Namespace, client: Client) -> None:
    (pod,) = namespace.server_pods(POOL)
    podprocesses.kill(pod, "argosy_runtime.server")

    def restarted() -> bool:
        (now,) = namespace.server_pods(POOL)
        counts = {container["name"]: container["restartCount"] for container in now["status"]["containerStatuses"]}
        return counts == {"server": 1, "agent": 0}

    namespace.until("the server's container again", restarted)
    _is_served(namespace, client, 4)


def test_a_pod_that_is_deleted_is_replaced(namespace: Namespace, client: Client) -> None:
    (pod,) = namespace.server_pods(POOL)
    namespace("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    namespace.until("another Pod", lambda: namespace.server_uids(POOL) - {pod["metadata"]["uid"]} != set())
    _is_served(namespace, client, 4)


def test_what_people_change_by_hand_is_put_right(namespace: Namespace) -> None:
    (pod,) = namespace.server_pods(POOL)
    server = pod["metadata"]["labels"]["argosy.dev/server"]
    before = namespace.read("configmap", server)["data"]
    namespace("patch", "configmap", server, "--type=merge", "-p", '{"data": {"repository.json": "{}"}}')
    namespace.until("the ConfigMap", lambda: namespace.read("configmap", server)["data"] == before)

    namespace("label", "pod", pod["metadata"]["name"], f"{ROUTE}-")
    namespace.until("the Pod's label", lambda: ROUTE in namespace.server_pods(POOL)[0]["metadata"]["labels"])

    def selector() -> dict[str, str]:
        selected: dict[str, str] = namespace.read("service", "answers")["spec"]["selector"]
        return selected

    desired = selector()
    other = json.dumps({"spec": {"selector": {ROUTE: "no"}}})
    namespace("patch", "service", "answers", "--type=merge", "-p", other)
    namespace.until("the Service", lambda: selector() == desired)


def test_what_people_delete_is_made_again(namespace: Namespace, client: Client) -> None:
    own = {name for name in namespace.own() if not name.startswith("pod/")}
    # Deployments go last: a Pod that starts in between would have the token of an account that is deleted next.
    kinds = "configmap,serviceaccount,role,rolebinding,networkpolicy,poddisruptionbudget,service,deployment"
    namespace("delete", kinds, "-l", MANAGED)
    namespace.until("everything again", lambda: own <= set(namespace.own()))
    _is_served(namespace, client, 4)


def test_requests_need_no_api_server(namespace: Namespace, client: Client, storage: str, cluster: Cluster) -> None:
    with client.load(MODEL, seconds=OUTAGE_S - 5) as load:
        cluster.stop_apiserver()
        time.sleep(OUTAGE_S)
        cluster.start_apiserver()
    assert load.failed == []
    assert load.sent > 100
    namespace.apply(version_model("answers", POOL, storage, 5))
    _is_served(namespace, client, 5)
    cluster.kubectl(
        "rollout", "status", f"deployment/{release.NAME}", "-n", release.NAMESPACE, "--timeout=120s", timeout_s=130
    )
