"""The operator measures servers directly or by a Prometheus, and the status reports errors of either.

A Prometheus that answers is in `test_autoscaling.py`.
"""

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.declared.resources import Body, pool, version_model

pytestmark = pytest.mark.timeout(600)

DIRECT, DEAF, LOCKED = ("asked", "deaf", "locked")
"""Pools, each with a model of its name."""
HOT = "hot"
"""A model with three replicas, each of which answers ten requests a second."""
NOWHERE = "http://127.0.0.1:9"


def monitored(name: str, **login: str) -> Body:
    return pool(name, monitoring={"prometheus": {"url": NOWHERE, **login}})


def model(name: str) -> str:
    return f"inferencemodel/{name}"


def measured(namespace: Namespace, name: str) -> None:
    """Wait until a decision was made on numbers."""
    reasons = ("Steady", "AtMinimum")
    namespace.until("signals", lambda: namespace.condition(model(name), "Scaling").get("reason") in reasons)


def reports_error(namespace: Namespace, name: str, words: str) -> None:
    """Wait until the status reports why nothing is known."""

    def so() -> bool:
        condition = namespace.condition(model(name), "Scaling")
        return condition.get("reason") == "NoSignals" and words in condition.get("message", "")

    namespace.until(words, so)


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, storage: str) -> None:
    namespace("create", "secret", "generic", "login", "--from-literal=token=x")
    models = (version_model(name, name, storage, maxReplicas=2) for name in (DIRECT, DEAF, LOCKED))
    slo = {"latency": {"p99": "350ms"}}
    hot = version_model(HOT, DIRECT, storage, work_s=0.1, replicas=3, instances=1, slo=slo)
    namespace.apply(pool(DIRECT), monitored(DEAF), monitored(LOCKED, secretName="login"), *models, hot)
    namespace.ready()


def test_without_a_prometheus_servers_are_queried_themselves(namespace: Namespace, client: Client) -> None:
    assert client.version(model(DIRECT)) == [1]
    measured(namespace, DIRECT)


def test_where_a_prometheus_is_named_no_one_else_is_queried(namespace: Namespace) -> None:
    reports_error(namespace, DEAF, f"Prometheus {NOWHERE} cannot be reached: Connection refused")


def test_an_unreadable_secret_is_reported_with_the_way_out(namespace: Namespace) -> None:
    reports_error(namespace, LOCKED, "add 'login' to the chart's value rbac.secretNames")


def test_from_when_no_prometheus_is_named_any_more_servers_are_queried(namespace: Namespace) -> None:
    namespace("patch", "servingpool", DEAF, "--type=merge", "-p", '{"spec": {"monitoring": null}}')
    measured(namespace, DEAF)


def test_a_server_with_too_long_a_queue_is_ejected_until_it_is_empty(namespace: Namespace, client: Client) -> None:
    pod = namespace.server_pods(DIRECT)[0]["metadata"]["name"]
    address = namespace.read("pod", pod)["status"]["podIP"]

    def led_to() -> set[str]:
        slices = namespace.read("endpointslices", "-l", f"kubernetes.io/service-name={HOT}")["items"]
        return {address for item in slices for end in item["endpoints"] or () for address in end["addresses"]}

    assert len(led_to()) == 3
    with client.load(model(HOT), 120, workers=20, address=address) as load:
        namespace.until("it is sent nothing", lambda: address not in led_to(), 60)
        assert len(led_to()) == 2
        assert client.version(model(HOT)) == [1]
        message = namespace.condition(model(HOT), "Scaling")["message"]
        assert "sent nothing until what waits there is worked off" in message
        assert namespace.status(model(HOT))["availableReplicas"] == 3
    assert load.failed == []
    namespace.until("it is sent requests again", lambda: address in led_to(), 60)
