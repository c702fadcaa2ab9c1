"""`suspend` frees what a pool holds and keeps everything else."""

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.declared.resources import pool, version_model

pytestmark = pytest.mark.timeout(600)

MODEL = "inferencemodel/answers"


def test_a_pool_is_suspended_and_resumed(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(pool("sleepy"), version_model("answers", "sleepy", storage))
    namespace.ready()
    url = client.url(MODEL)

    namespace.apply(pool("sleepy", suspend=True))
    namespace.until("no Pod of the pool", lambda: not namespace.server_pods("sleepy"))
    namespace.says("servingpool/sleepy", "Ready", "False", "Suspended")
    namespace.says(MODEL, "Ready", "False", "Suspended")
    assert client.url(MODEL) == url

    namespace.apply(pool("sleepy"))
    namespace.ready()
    assert client.url(MODEL) == url
    assert client.version(MODEL) == [1]
