"""Where the operator's measurements come from: the servers themselves, or a Prometheus; what is wrong there is told."""

import pytest

from e2e import prometheus
from e2e.builds import Images
from e2e.client import Client
from e2e.namespace import Namespace
from e2e.resources import Body, pool, version_model

pytestmark = pytest.mark.timeout(600)

MODEL = "inferencemodel/seen"


def monitored(url: str, **login: str) -> Body:
    return pool("measured", monitoring={"prometheus": {"url": url, **login}})


def measured(namespace: Namespace) -> None:
    """Until a decision was made on numbers."""
    unknown = ("", "NoSignals")
    namespace.until("signals", lambda: namespace.status(MODEL).get("scaling", {}).get("reason", "") not in unknown, 120)


def unmeasured(namespace: Namespace) -> str:
    """Until it is told that nothing is known, and why."""
    return namespace.says(MODEL, "Scaling", "Unknown", "NoSignals", 180)


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(pool("measured"), version_model("seen", "measured", storage, maxReplicas=2))
    namespace.ready()


def test_without_a_prometheus_servers_are_asked_themselves(namespace: Namespace, client: Client) -> None:
    assert client.version(MODEL) == [1]
    measured(namespace)


def test_a_prometheus_is_asked_where_one_is_named_and_what_it_lacks_is_told(
    namespace: Namespace, images: Images
) -> None:
    namespace.apply(monitored("http://127.0.0.1:9"))
    assert "http://127.0.0.1:9 cannot be reached" in unmeasured(namespace)
    url = prometheus.start(namespace, images.runtime)
    namespace.apply(monitored(url))
    measured(namespace)


def test_a_secret_that_the_operator_may_not_read_is_told_with_the_way_out(namespace: Namespace) -> None:
    namespace("create", "secret", "generic", "login", "--from-literal=token=x")
    url = namespace.json("get", "servingpool", "measured")["spec"]["monitoring"]["prometheus"]["url"]
    namespace.apply(monitored(url, secretName="login"))
    assert "add 'login' to the chart's value rbac.secretNames" in unmeasured(namespace)
    namespace.apply(monitored(url))
    measured(namespace)
