"""More and fewer servers, sequences that stay with one of them, and a model that goes to another pool.

The tests build on one another, in their order.
"""

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.declared.resources import pool, version_model

pytestmark = pytest.mark.timeout(600)

MODEL = "inferencemodel/answers"
LENGTH = 12
"""Requests of a sequence, which by chance would all reach the same one of two servers once in 2,000 times."""


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(pool("first"), version_model("answers", "first", storage))
    namespace.ready()


def _servers(namespace: Namespace, resource: str) -> set[str]:
    return {placement["server"] for placement in namespace.status(resource).get("placement", ())}


def test_replicas_come_and_go_without_a_failed_request(namespace: Namespace, client: Client, storage: str) -> None:
    with client.load(MODEL) as load:
        namespace.apply(version_model("answers", "first", storage, minReplicas=2))
        namespace.until("two servers", lambda: namespace.status(MODEL).get("availableReplicas") == 2)
        assert len(_servers(namespace, MODEL)) == 2
        namespace.ready()
        namespace.until("both are endpoints", lambda: len(_addresses(namespace, "answers")) == 2)

        namespace.apply(version_model("answers", "first", storage, minReplicas=1))
        namespace.until("one Pod", lambda: len(namespace.server_pods("first")) == 1)
        namespace.ready()
    assert load.failed == []
    assert load.answers() == [[[1]]]


def _addresses(namespace: Namespace, service: str) -> list[str]:
    """Return the addresses of a Service; Kubernetes writes them a moment after a Pod is ready."""
    subsets = namespace.read("endpoints", service).get("subsets") or []
    return [address["ip"] for subset in subsets for address in subset.get("addresses") or []]


def test_a_pool_keeps_the_servers_that_it_is_ordered_to(namespace: Namespace) -> None:
    namespace.apply(pool("first", minServers=2))
    namespace.until("two Pods", lambda: len(namespace.server_pods("first")) == 2)
    namespace.ready()


def test_a_sequence_stays_with_its_server(namespace: Namespace, client: Client, storage: str) -> None:
    """A server refuses a request that continues a sequence which did not begin there. Each has a connection of its
    own.
    """
    resource = "inferencemodel/counts"
    namespace.apply(
        version_model("counts", "first", storage, minReplicas=2, sequence={"maxIdleMicroseconds": 60_000_000})
    )
    namespace.ready(resource)
    namespace.until("both are endpoints", lambda: len(_addresses(namespace, "counts")) == 2)
    ends = {"sequence_start": 0, "sequence_end": LENGTH - 1}
    for number in range(LENGTH):
        flags = {flag: True for flag, at in ends.items() if at == number}
        assert client.version(resource, sequence_id=7, **flags) == [1]
    namespace("delete", resource)


def test_a_pool_gives_up_the_servers_that_it_is_not_ordered_to(namespace: Namespace) -> None:
    namespace.apply(pool("first"))
    namespace.until("one Pod", lambda: len(namespace.server_pods("first")) == 1)
    namespace.ready()


def test_a_model_goes_to_another_pool(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(pool("second"), version_model("answers", "second", storage))
    namespace.until("the other pool's server", lambda: _servers(namespace, MODEL) == {"second-0"})
    namespace.ready()
    assert client.version(MODEL) == [1]
    namespace.until("no Pod of the first pool", lambda: not namespace.server_pods("first"))
