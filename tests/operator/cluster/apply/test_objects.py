"""Objects are kept as desired, whatever others do to them; a real API server."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.harness import (
    Declared,
    Requests,
    Watched,
    declare,
    model_body,
    named,
    objects_of,
    until,
    watching,
)  # fmt: skip

from argosy.cluster.apply.lookup import MANY
from argosy.cluster.client.connection import NOTHING, Connection
from argosy.cluster.client.errors import (
    ForbiddenError,
    UnreachableError,
)
from argosy.cluster.client.kinds import Kind


async def test_a_pool_is_made_retained_and_taken_down(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        objects = declared.objects("pool-0", "pool-1")
        assert await declared.apply(watched, objects) == ()
        assert objects_of(cluster, namespace) == named(objects)
        await watched.until_idle()

        requests.seen.clear()
        assert await declared.apply(watched, declared.objects("pool-0", "pool-1")) == ()
        assert requests.seen == []

        fewer = declared.objects("pool-0")
        await declared.apply(watched, fewer, f"Deployment {namespace}/pool-1")
        assert objects_of(cluster, namespace) == named(fewer) | {"Deployment pool-1"}
        assert {verb for verb, _, _ in requests.writes()} == {"delete"}

        await declared.apply(watched, ())
        await until("nothing of ours", lambda: not objects_of(cluster, namespace))
        await until("no pool known", lambda: declared.key not in watched.cache.pools())


MORE_RIGHTS = json.dumps(
    [{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}}]
)
EDITS = {
    "scaled": ("scale", "deployment/pool-0", "--replicas=3"),
    "template": ("set", "image", "deployment/pool-0", "server=evil:1"),
    "rights": ("patch", "role/pool-0", "--type=json", "-p", MORE_RIGHTS),
    "repository": ("patch", "configmap/pool-0", "-p", '{"data":{"repository.json":"{}"}}'),
    "selector": ("patch", "service/embedder", "-p", '{"spec":{"selector":{"serves.argosy.dev/embedder":"no"}}}'),
    "port": ("patch", "service/embedder", "-p", '{"spec":{"ports":[{"name":"ssh","port":22,"protocol":"TCP"}]}}'),
    "label": ("label", "configmap/pool-0", "app.kubernetes.io/managed-by-"),
    "owner": ("patch", "networkpolicy/pool", "--type=merge", "-p", '{"metadata":{"ownerReferences":null}}'),
    "deleted": ("delete", "poddisruptionbudget/pool"),
}  # fmt: skip


async def test_hand_edits_are_corrected(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        objects = declared.objects("pool-0")
        await declared.apply(watched, objects)
        for edit in EDITS.values():
            await watched.until_idle()
            cluster.kubectl("-n", namespace, *edit)
            await until(f"{edit} noticed", lambda: declared.key in watched.changes)
            assert await declared.apply(watched, objects) == ()
        live = {body["kind"]: body for body in (cluster.read(name, "-n", namespace) for name in KINDS)}
        assert live["Deployment"]["spec"]["replicas"] == 1
        assert live["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"] == "argosy-runtime:1"
        assert len(live["Role"]["rules"]) == 2
        assert '"server": "pool-0"' in live["ConfigMap"]["data"]["repository.json"]
        service = cluster.read("service", "embedder", "-n", namespace)["spec"]
        assert service["selector"] == {"serves.argosy.dev/embedder": "true"}
        policy = cluster.read("networkpolicy", "pool", "-n", namespace)
        assert policy["metadata"]["ownerReferences"][0]["uid"] == declared.pool.metadata.uid
        assert objects_of(cluster, namespace) == named(objects)


KINDS = "deployment/pool-0", "role/pool-0", "configmap/pool-0"


async def test_what_others_add_is_left_alone(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        objects = declared.objects("pool-0")
        await declared.apply(watched, objects)
        cluster.kubectl("-n", namespace, "label", "service/embedder", "team=search")
        cluster.kubectl("-n", namespace, "annotate", "service/embedder", "seen=yes")
        await watched.until_idle()
        requests.seen.clear()
        await declared.apply(watched, objects)
        assert requests.seen == []
        assert cluster.read("service", "embedder", "-n", namespace)["metadata"]["labels"]["team"] == "search"


class WithoutLists(Connection):
    """A connection that may not list objects' metadata."""

    async def pages(
        self, kind: Kind, namespace: str = "", selectors: Mapping[str, str] = NOTHING, *, metadata_only: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        if metadata_only:
            raise ForbiddenError(403, "Forbidden", "no lists")
        async with aclosing(super().pages(kind, namespace, selectors)) as pages:
            async for page in pages:
                yield page


@pytest.mark.parametrize(("how", "lists", "gets"), [(Connection, 1, 0), (WithoutLists, 0, MANY + 2)])
async def test_many_new_objects_are_looked_for_in_one_list(
    cluster: Cluster,
    declared: Declared,
    namespace: str,
    requests: Requests,
    how: type[Connection],
    lists: int,
    gets: int,
) -> None:
    more = [declare(cluster, model_body(namespace, f"model-{number}")) for number in range(MANY)]
    declared = replace(declared, models=(*declared.models, *more))
    cluster.kubectl("-n", namespace, "create", "service", "clusterip", "model-3", "--tcp=80")
    async with how.open(cluster.kubeconfig, on_request=requests) as connection, watching(connection) as watched:
        requests.seen.clear()
        (refusal,) = await declared.apply(watched, declared.objects())
        assert refusal.object == f"Service {namespace}/model-3"
        seen = [(verb, what) for verb, what, _ in requests.seen if what == "services"]
        assert (seen.count(("list", "services")), seen.count(("get", "services"))) == (lists, gets)
    assert cluster.read("service", "model-3", "-n", namespace)["spec"]["ports"][0]["port"] == 80


async def test_the_api_server_is_away_for_a_while(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0"))
        cluster.stop_apiserver()
        try:
            with pytest.raises(UnreachableError, match="does not answer"):
                await declared.apply(watched, declared.objects("pool-0", "pool-1"))
            await until("that it is away is known", lambda: "services/" + namespace in watched.cache.errors)
        finally:
            cluster.start_apiserver()
        await declared.apply(watched, declared.objects("pool-0", "pool-1"))
        assert objects_of(cluster, namespace) == named(declared.objects("pool-0", "pool-1"))
        await watches_again(cluster, watched, declared)
        await until("no error any more", lambda: not watched.cache.errors, 120)


async def watches_again(cluster: Cluster, watched: Watched, declared: Declared) -> None:
    await watched.until_idle()
    cluster.kubectl("-n", declared.pool.namespace, "delete", "deployment/pool-1")
    await until("a deletion is seen", lambda: declared.key in watched.changes)
