"""`suspend` frees what a pool holds and keeps everything else. Before that, its server caches answers."""

import pytest

from e2e.asking.client import Client
from e2e.asking.metrics import sample
from e2e.asking.namespace import Namespace
from e2e.declared.resources import pool, version_model

pytestmark = pytest.mark.timeout(600)

MODEL = "inferencemodel/answers"


CACHE = {"cache": {"size": "1Mi"}}


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, storage: str) -> None:
    """Declare a model whose answers its pool's servers cache."""
    cached = version_model("answers", "sleepy", storage, config={"response_cache": {"enable": True}})
    namespace.apply(pool("sleepy", **CACHE), cached)
    namespace.ready()


def test_a_request_that_comes_again_is_answered_from_the_response_cache(namespace: Namespace, client: Client) -> None:
    assert [client.version(MODEL) for _ in range(3)] == [[1]] * 3
    (pod,) = namespace.server_pods("sleepy")
    counts = (f"nv_cache_num_{what}_per_model" for what in ("misses", "hits"))
    assert [sample(pod["status"]["podIP"], name, model="answers") for name in counts] == [1, 2]


def test_a_pool_is_suspended_and_resumed(namespace: Namespace, client: Client) -> None:
    url = client.url(MODEL)

    namespace.apply(pool("sleepy", suspend=True, **CACHE))
    namespace.until("no Pod of the pool", lambda: not namespace.server_pods("sleepy"))
    namespace.says("servingpool/sleepy", "Ready", "False", "Suspended")
    namespace.says(MODEL, "Ready", "False", "Suspended")
    assert client.url(MODEL) == url

    namespace.apply(pool("sleepy", **CACHE))
    namespace.ready()
    assert client.url(MODEL) == url
    assert client.version(MODEL) == [1]
