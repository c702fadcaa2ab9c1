"""A model that no server has: its requests wait at the pool's activator, and are answered once one has it.

The tests build on one another, in their order. While they go on, a second model goes to zero by itself.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from tests.peers.otlp import OtlpReceiver, receiving

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster
from e2e.cluster.node.network import NODE_ADDRESS
from e2e.declared.resources import pool, version_model
from e2e.deployed import release

pytestmark = pytest.mark.timeout(600)

MODEL, OTHER = "inferencemodel/sleeper", "inferencemodel/dozer"
TRACE, PARENT = f"{1:032x}", f"{2:016x}"
"""The trace that a client has begun, and its span."""
ASK_GRPC = """
import sys
import numpy as np
from tritonclient.grpc import InferenceServerClient, InferInput

asked = InferInput("X", [1], "INT32")
asked.set_data_from_numpy(np.array([0], np.int32))
with InferenceServerClient(sys.argv[1]) as client:
    print(client.infer("sleeper", [asked]).as_numpy("VERSION")[0])
"""


def sleeper(storage: str, **spec: Any) -> dict[str, Any]:
    """Return a model that may be scaled to zero."""
    return version_model("sleeper", "sleepy", storage, minReplicas=0, maxReplicas=2, **spec)


@pytest.fixture(scope="module")
def traces(cluster: Cluster) -> Iterator[OtlpReceiver]:
    """Yield a receiver of traces that Pods reach."""
    with receiving(NODE_ADDRESS) as receiver:
        yield receiver


@pytest.fixture(scope="module", autouse=True)
def declared(namespace: Namespace, client: Client, storage: str, traces: OtlpReceiver) -> None:
    idle = {"minReplicas": 0, "maxReplicas": 2, "scaling": {"idleTimeout": "5s"}}
    traced = pool("sleepy", tracing={"endpoint": traces.url, "rate": 0})
    namespace.apply(traced, sleeper(storage), pool("dozy"), version_model("dozer", "dozy", storage, **idle))
    namespace.until("an activator", lambda: bool(addresses(namespace, "sleeper")))
    namespace.until("the other's", lambda: bool(addresses(namespace, "dozer")))


def addresses(namespace: Namespace, model: str = "sleeper") -> list[str]:
    """Return the Pods of a model's Service, by name."""
    endpoints = namespace.read("endpoints", f"--field-selector=metadata.name={model}")["items"]
    subsets = [subset for item in endpoints for subset in item.get("subsets") or ()]
    return sorted(address["targetRef"]["name"] for subset in subsets for address in subset.get("addresses") or ())


def queued(namespace: Namespace) -> int:
    """Return how many requests wait, as the operator reads it."""
    maps = namespace.read("configmaps", "-l", "argosy.dev/activator=sleepy")["items"]
    texts = [text for config in maps for key, text in config.get("data", {}).items() if key.endswith(".held.json")]
    return sum(json.loads(text)["held"].get("sleeper", 0) for text in texts)


@contextmanager
def asking(namespace: Namespace, client: Client) -> Iterator[list[Future[Any]]]:
    """Send one request by each protocol, which wait while the block runs."""
    with ThreadPoolExecutor(2) as workers:
        address = client.url(MODEL).partition("://")[2].partition(":")[0]
        grpc = ("python", "-c", ASK_GRPC, f"{address}:8001")
        first = workers.submit(lambda: [int(client.run(*grpc, timeout_s=120))])
        # Its program takes a while to start, and the other one would have woken the model by then.
        namespace.until("one that waits", lambda: queued(namespace) == 1)
        requests = [first, workers.submit(client.version, MODEL, {"traceparent": f"00-{TRACE}-{PARENT}-01"})]
        namespace.until("two that wait", lambda: queued(namespace) == 2)
        yield requests


def test_a_model_at_zero_is_led_to_the_activator_and_no_server_runs(namespace: Namespace, client: Client) -> None:
    assert namespace.server_pods("sleepy") == []
    namespace.until("both of its Pods", lambda: len(addresses(namespace)) == 2)
    assert all("activator" in address for address in addresses(namespace))
    assert client.get(f"{client.url(MODEL)}/ready").status == 200
    refused = client.get(f"{client.url(MODEL)}/stats")
    assert (refused.status, "runs nowhere now" in refused.text) == (503, True)


def test_its_first_requests_wake_it_and_are_answered(namespace: Namespace, client: Client) -> None:
    with asking(namespace, client) as requests:
        assert client.version(OTHER) == [1]
        assert [request.result() for request in requests] == [[1], [1]]
    namespace.until("no request waits", lambda: queued(namespace) == 0)
    namespace.until("the server alone", lambda: not any("activator" in address for address in addresses(namespace)))
    assert client.version(MODEL) == [1]
    newest = namespace.status(MODEL)["scaling"]["history"][0]
    assert (newest["formerReplicas"], newest["replicas"]) == (0, 1)
    assert "waited for it" in newest["message"]


def test_a_request_that_waited_is_in_its_clients_trace(namespace: Namespace, traces: OtlpReceiver) -> None:
    def parents() -> dict[str, str]:
        """Return the parent of each span, by their names."""
        spans = [span for span in traces.spans if span.trace_id.hex() == TRACE]
        names = {span.span_id: span.name for span in spans} | {bytes.fromhex(PARENT): "client"}
        return {span.name: names.get(span.parent_span_id, "") for span in spans}

    expected = {"activator": "client", "InferRequest": "activator"}
    namespace.until("the spans of both", lambda: expected.items() <= parents().items())


def test_down_to_zero_and_back_without_a_failed_request(namespace: Namespace, client: Client, storage: str) -> None:
    with client.load(MODEL) as load:
        namespace.apply(sleeper(storage, replicas=0))
        namespace.until("requests wait", lambda: queued(namespace) > 0)
        namespace.apply(sleeper(storage, replicas=1))
        namespace.until("no request waits", lambda: queued(namespace) == 0)
    assert load.failed == []
    assert load.answers() == [[[1]]]


def test_a_server_that_goes_is_waited_for(namespace: Namespace, client: Client) -> None:
    namespace.until("the server", lambda: any("activator" not in address for address in addresses(namespace)))
    before = namespace.server_uids("sleepy")
    with client.load(MODEL) as load:
        namespace("delete", "pod", "-l", "argosy.dev/pool=sleepy", "--wait=false")
        namespace.until("another server", lambda: bool(namespace.server_uids("sleepy") - before))
        namespace.until("it serves", lambda: any("activator" not in address for address in addresses(namespace)))
    # Kubernetes takes the Pod out of the Service when it is deleted, and the activator comes in when that is seen.
    assert [words for _, words in load.failed if "Connection refused" not in words] == []
    assert load.answers() == [[[1]]]


def test_requests_wait_while_the_operators_and_the_activator_end(
    namespace: Namespace, client: Client, storage: str
) -> None:
    namespace.apply(sleeper(storage, replicas=0))
    namespace.until("no server", lambda: namespace.server_pods("sleepy") == [])
    with asking(namespace, client) as requests:
        former = addresses(namespace)
        namespace("delete", "pod", *former, "--wait=false")
        namespace.until("other activators", lambda: addresses(namespace) and not {*former} & {*addresses(namespace)})
        operators = ("-n", release.NAMESPACE, "-l", release.LABEL, "--force", "--grace-period=0")
        namespace.access.kubectl("delete", "pods", *operators)
        namespace.apply(sleeper(storage, replicas=1))
        assert [request.result() for request in requests] == [[1], [1]]


def test_it_goes_to_zero_by_itself_and_is_woken_again(namespace: Namespace, client: Client) -> None:
    namespace.until("no server", lambda: namespace.server_pods("dozy") == [])
    newest = namespace.status(OTHER)["scaling"]["history"][0]
    assert (newest["formerReplicas"], newest["replicas"]) == (1, 0)
    assert client.version(OTHER) == [1]


def test_what_may_not_go_to_zero_any_more_needs_no_activator(
    namespace: Namespace, client: Client, storage: str
) -> None:
    namespace.apply(version_model("sleeper", "sleepy", storage, minReplicas=1))
    pods = ("pods", "-l", "argosy.dev/activator=sleepy")
    # Its Pods may drain for as long as their grace period.
    namespace.until("no activator", lambda: not namespace.read(*pods)["items"], 240)
    assert client.version(MODEL) == [1]
