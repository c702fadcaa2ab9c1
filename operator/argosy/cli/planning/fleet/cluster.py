"""The resources, nodes and servers of a cluster, read with the rights of the user's kubeconfig. Nothing is written."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from argosy.cli.planning.fleet.files import FleetError
from argosy.cli.planning.fleet.observed import observed_snapshot
from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.client.access import CredentialsError
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.discovery import crd_problems, offered
from argosy.cluster.client.errors import ApiError
from argosy.cluster.client.kinds import CONTROLLER_REVISION
from argosy.controller.resources.feed import ResourceFeed
from argosy.controller.resources.parsed_body import ParsedBody, parsed_body
from argosy.controller.resources.store import Store
from argosy.render.workloads import LatestRevisions, managed_selector
from argosy.snapshot import FleetSnapshot

_LISTS_S = 120.0
"""Seconds for all lists. A cluster of some thousand Pods takes a few."""


def cluster_snapshot(kubeconfig: Path | None, context: str | None, namespaces: Sequence[str]) -> FleetSnapshot:
    """Return what a cluster has now, in these namespaces or, without any, in all. Raises FleetError."""
    try:
        return asyncio.run(_read(kubeconfig, context, namespaces))
    except CredentialsError as error:
        raise FleetError([str(error)]) from error
    except ApiError as error:
        raise FleetError([f"the cluster cannot be read: {error}"]) from error
    except TimeoutError as error:
        raise FleetError([f"the cluster did not answer all lists within {_LISTS_S:g} s"]) from error


async def _read(kubeconfig: Path | None, context: str | None, namespaces: Sequence[str]) -> FleetSnapshot:
    async with Connection.open(kubeconfig, context) as connection, asyncio.timeout(_LISTS_S):
        if problems := await crd_problems(connection):
            raise FleetError(problems)
        return await listed_snapshot(connection, namespaces)


async def listed_snapshot(connection: Connection, namespaces: Sequence[str]) -> FleetSnapshot:
    """Return the fleet once every list is complete. Raises ApiError."""
    store = Store()
    await _restore(connection, namespaces, store)

    def seen(parsed: ParsedBody) -> None:
        store.put(parsed)

    cache = ClusterCache(connection, await offered(connection), namespaces, lambda _: None)
    feed = ResourceFeed(connection, namespaces, seen, lambda *_: None)
    watches = [asyncio.create_task(cache.run()), asyncio.create_task(feed.run())]
    try:
        await asyncio.gather(cache.synced(), feed.synced())
        return observed_snapshot(store, cache)
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _restore(connection: Connection, namespaces: Sequence[str], store: Store) -> None:
    """Read the revisions that the operator recorded, of which some serve while a newer one is tried."""
    latest = LatestRevisions()
    for namespace in namespaces or ("",):
        async for page in connection.pages(CONTROLLER_REVISION, namespace, {"labelSelector": managed_selector()}):
            latest.add(page["items"])
    for body in latest.bodies():
        store.restore(parsed_body(body))
    for uid, revisions in latest.of_rollouts().items():
        store.record(uid, revisions)
