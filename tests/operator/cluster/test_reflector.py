"""A reflector recovers from any error of its watch. Against a stand-in on loopback, without an API server."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.operator.controller.standin import StandIn, kubeconfig, standing_in, status
from tests.waiting import until

from argosy.cluster.cache.watches import reflector as module
from argosy.cluster.cache.watches.reflectors import Reflectors
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ForbiddenError
from argosy.cluster.client.kinds import CONFIG_MAP, Key, key_of


@dataclass(slots=True)
class FakeStore:
    """A `ReflectorStore` that has the reflector's objects by namespace and name."""

    objects: dict[Key, Mapping[str, Any]] = field(default_factory=dict)

    def update(self, body: Mapping[str, Any]) -> None:
        """Store an object; one labelled `bad` cannot be read."""
        if "bad" in body["metadata"].get("labels", {}):
            raise OverflowError("cannot convert float infinity to integer")
        self.objects[key_of(body)] = body

    def delete(self, body: Mapping[str, Any]) -> None:
        """Remove an object."""
        self.objects.pop(key_of(body), None)

    def retain(self, namespace: str, keys: Collection[Key]) -> None:
        """Remove the other objects of the namespace, of all namespaces where it is empty."""
        for key in [key for key in self.objects if key not in keys and namespace in ("", key[0])]:
            del self.objects[key]

    def names(self) -> set[str]:
        """Return the objects' names."""
        return {name for _, name in self.objects}


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    async with standing_in() as result:
        for name in ("one", "two"):
            result.put("configmaps", {"metadata": {"namespace": "n", "name": name, "uid": name}})
        yield result


@asynccontextmanager
async def reflecting(server: StandIn, folder: Path) -> AsyncIterator[tuple[FakeStore, Reflectors]]:
    store = FakeStore()
    async with Connection.open(kubeconfig(server, folder)) as connection:
        reflectors = Reflectors(connection)
        reflectors.add(CONFIG_MAP, store, required=True)
        running = asyncio.create_task(reflectors.run())
        try:
            yield store, reflectors
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_list_then_events(server: StandIn, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as (store, reflectors):
        await reflectors.synced()
        assert store.names() == {"one", "two"}
        await until(lambda: server.watched("configmaps") == 1)
        server.put("configmaps", {"metadata": {"namespace": "n", "name": "three", "uid": "three"}})
        server.delete("configmaps", "one")
        await until(lambda: store.names() == {"two", "three"})
        assert server.accepted("GET", "configmaps") == ["application/json"]


async def test_a_version_that_is_no_longer_retained_is_listed_again(server: StandIn, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as (store, reflectors):
        await reflectors.synced()
        await until(lambda: server.watched("configmaps") == 1)
        server.delete("configmaps", "one", untold=True)
        server.fail("configmaps", 410)
        await until(lambda: store.names() == {"two"})
        assert reflectors.errors == {}


async def test_a_watch_that_breaks_goes_on_where_it_was(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.05)
    async with reflecting(server, tmp_path) as (store, reflectors):
        await reflectors.synced()
        await until(lambda: server.watched("configmaps") == 1)
        server.fail("configmaps", 500)
        await until(lambda: server.watched("configmaps") == 0)
        await until(lambda: server.watched("configmaps") == 1)
        server.delete("configmaps", "one")
        await until(lambda: store.names() == {"two"})
        assert len(server.accepted("GET", "configmaps")) == 1


async def test_what_may_not_be_read_is_requested_again(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORBIDDEN_S", 0.05)
    server.refused["/configmaps"] = status(403, "configmaps is forbidden")
    async with reflecting(server, tmp_path) as (store, reflectors):
        with pytest.raises(ForbiddenError):
            await reflectors.synced()
        assert reflectors.errors["configmaps"].startswith("may not list and watch configmaps: grant it")
        server.refused.clear()
        await until(lambda: store.names() == {"one", "two"})
        await until(lambda: reflectors.errors == {})


def made(name: str, **labels: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"namespace": "n", "name": name, "uid": name, "labels": labels}}


async def test_an_object_that_cannot_be_read_is_named_and_the_others_go_on(server: StandIn, tmp_path: Path) -> None:
    server.put("configmaps", made("listed", bad=""))
    async with reflecting(server, tmp_path) as (store, reflectors):
        await reflectors.synced()
        assert store.names() == {"one", "two"}
        assert reflectors.errors["configmaps"] == (
            "configmaps n/listed cannot be read: OverflowError: cannot convert float infinity to integer; correct or "
            "delete it"
        )
        await until(lambda: server.watched("configmaps") == 1)
        server.put("configmaps", made("one", bad=""))
        server.put("configmaps", made("three"))
        await until(lambda: store.names() == {"one", "two", "three"})
        assert reflectors.errors["configmaps"].endswith("(1 more)")
        server.delete("configmaps", "listed")
        server.put("configmaps", made("one"))
        await until(lambda: reflectors.errors == {})
