"""One replica leads at a time, on a real Lease."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.harness import Requests

from argosy.cluster.client import kinds
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ConflictError, NotFoundError
from argosy.cluster.client.kinds import Key, Kind
from argosy.cluster.leader.elector import Elector

Contender = Callable[..., Elector]
LONG_S = 60
"""Longer than a busy machine keeps a renewal waiting."""


@pytest.fixture
def contender(connection: Connection, namespace: str) -> Contender:
    return lambda name, duration_s=3: Elector(connection, namespace, "operator", name, duration_s, renew_s=0.5)


def lease(cluster: Cluster, namespace: str) -> dict[str, object]:
    result: dict[str, object] = cluster.read("lease", "operator", "-n", namespace)["spec"]
    return result


async def test_the_next_takes_over_when_the_leader_ends(contender: Contender, cluster: Cluster, namespace: str) -> None:
    first, second = contender("one", 6), contender("two", 6)
    await first.acquire()
    assert first.is_leader
    spec = lease(cluster, namespace)
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("one", 6, 0)
    holding, waiting = asyncio.create_task(first.renew()), asyncio.create_task(second.acquire())
    await asyncio.sleep(7)  # longer than the lease lasts without renewal
    assert not waiting.done()
    assert first.is_leader
    assert lease(cluster, namespace)["acquireTime"] == spec["acquireTime"]

    holding.cancel()
    await first.release()
    assert not first.is_leader
    async with asyncio.timeout(60):
        await waiting
    assert second.is_leader
    spec = lease(cluster, namespace)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("two", 1)
    assert datetime.fromisoformat(str(spec["renewTime"])).tzinfo is not None
    await second.release()
    assert lease(cluster, namespace).get("holderIdentity", "") == ""


async def test_a_leader_that_is_silent_is_followed(contender: Contender, cluster: Cluster, namespace: str) -> None:
    first, second = contender("one"), contender("two")
    await first.acquire()
    await second.acquire()
    assert lease(cluster, namespace)["holderIdentity"] == "two"
    async with asyncio.timeout(60):
        await first.renew()
    assert not first.is_leader
    await first.release()
    assert lease(cluster, namespace)["holderIdentity"] == "two"


async def test_of_many_at_once_one_leads(contender: Contender) -> None:
    many = [contender(str(number), LONG_S) for number in range(5)]
    tasks = [asyncio.create_task(item.acquire()) for item in many]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(1)
    assert sum(item.is_leader for item in many) == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_leadership_is_lost_with_the_api_server_and_won_again(
    contender: Contender, cluster: Cluster, namespace: str
) -> None:
    first = contender("one")
    await first.acquire()
    cluster.stop_apiserver()
    try:
        async with asyncio.timeout(60):
            await first.renew()
        assert not first.is_leader
        again = asyncio.create_task(first.acquire())
        await asyncio.sleep(0.5)
        assert not again.done()
    finally:
        cluster.start_apiserver()
    async with asyncio.timeout(60):
        await again
    assert lease(cluster, namespace)["holderIdentity"] == "one"


async def test_a_label_on_the_lease_costs_no_one_the_lead(
    contender: Contender, connection: Connection, cluster: Cluster, namespace: str
) -> None:
    first = contender("one", LONG_S)
    await first.acquire()
    holding = asyncio.create_task(first.renew())
    await asyncio.to_thread(cluster.kubectl, "-n", namespace, "label", "lease/operator", "seen=yes")
    labelled = lease(cluster, namespace)["renewTime"]
    # The first renewal after the label meets a conflict, and the next one is written.
    async with asyncio.timeout(60):
        key = (namespace, "operator")
        while (await connection.get(kinds.LEASE, key))["spec"]["renewTime"] == labelled:  # noqa: ASYNC110  (no event)
            await asyncio.sleep(0.1)
    assert not holding.done()
    assert first.is_leader
    holding.cancel()


async def test_one_that_waits_asks_nothing_while_the_leader_lives(
    contender: Contender, connection: Connection, namespace: str, requests: Requests
) -> None:
    first, second = contender("one", LONG_S), contender("two", LONG_S)
    await first.acquire()
    holding, waiting = asyncio.create_task(first.renew()), asyncio.create_task(second.acquire())
    await asyncio.sleep(1)
    requests.seen.clear()
    await asyncio.sleep(2)
    assert {verb for verb, _, _ in requests.seen} == {"update"}
    for task in (holding, waiting):
        task.cancel()
    await asyncio.gather(holding, waiting, return_exceptions=True)
    body = await connection.get(kinds.LEASE, (namespace, "operator"))
    assert body["spec"]["holderIdentity"] == "one"


class Disputed(Connection):
    """A Lease that others write all the time, behind an API server that says no more of it."""

    def __init__(self) -> None:
        self.urgent: list[bool] = []

    async def get(self, kind: Kind, key: Key, *, metadata_only: bool = False, urgent: bool = False) -> dict[str, Any]:
        self.urgent.append(urgent)
        if len(self.urgent) == 1:
            raise NotFoundError(404, "NotFound", "none yet")
        await asyncio.sleep(60)
        return {}

    async def create(self, kind: Kind, body: Mapping[str, Any], *, manager: str) -> dict[str, Any]:
        return {**body, "metadata": {"resourceVersion": "1"}}

    async def update(self, kind: Kind, body: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        await asyncio.sleep(0.3)
        raise ConflictError(409, "Conflict", "changed")


async def test_a_dispute_takes_no_longer_than_the_lease() -> None:
    disputed = Disputed()
    leader = Elector(disputed, "n", "operator", "one", duration_s=1, renew_s=0.1)
    await leader.acquire()
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(10):
        await leader.renew()
    assert not leader.is_leader
    assert asyncio.get_running_loop().time() - began < 0.9  # others wait for a second
    assert disputed.urgent == [True, True]
