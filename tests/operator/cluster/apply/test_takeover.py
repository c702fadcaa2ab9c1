"""Objects of an earlier operator are taken over: only differences are written; a real API server."""

import json
from dataclasses import replace

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.apply.standing import versions
from tests.operator.cluster.harness import Declared, Requests, declare, model_body, until, watching

from argosy.api import parse_body
from argosy.cluster.apply.lookup import MANY
from argosy.cluster.client.connection import Connection
from argosy.planning.history import ControllerRevision
from argosy.render.workloads import controller_revision, controller_revision_name

MORE_RIGHTS = json.dumps(
    [{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}}]
)
DRIFTS = {
    "deployments": ("scale", "deployment/pool-0", "--replicas=3"),
    "roles": ("patch", "role/pool-0", "--type=json", "-p", MORE_RIGHTS),
    "configmaps": ("patch", "configmap/pool-0", "-p", '{"data":{"repository.json":"{}"}}'),
    "services": ("patch", "service/embedder", "-p", '{"spec":{"selector":{"serves.argosy.dev/embedder":"no"}}}'),
    "networkpolicies": ("patch", "networkpolicy/pool", "--type=merge", "-p", '{"metadata":{"ownerReferences":null}}'),
    "poddisruptionbudgets": ("label", "poddisruptionbudget/pool", "argosy.dev/pool-", "--overwrite"),
}  # fmt: skip
ADDITIONS = (
    ("label", "service/embedder", "team=search"),
    ("annotate", "deployment/pool-0", "seen=yes"),
    ("patch", "configmap/pool-0", "-p", '{"data":{"theirs":"yes"}}'),
    ("patch", "deployment/pool-0", "-p", '{"spec":{"minReadySeconds":5}}'),
)


@pytest.fixture
def sized(cluster: Cluster, declared: Declared) -> Declared:
    """Return a pool whose Pods request amounts that the API server writes in another way."""
    body = json.loads(declared.pool.model_dump_json(by_alias=True, exclude_none=True))
    limits = {"cpu": "1000m", "memory": "1024Mi", "example.com/fast": "0.5k"}
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": "2048Mi", "medium": ""}}
    containers = [{"name": "server", "resources": {"limits": limits, "requests": {"cpu": "500m"}}, "env": []}]
    body["spec"] = {"runtime": {"podTemplate": {"spec": {"containers": containers, "volumes": [volume]}}}}
    pool, problems = parse_body(body)
    assert not problems
    return replace(declared, pool=pool)  # type: ignore[arg-type]


async def test_what_stands_as_it_should_is_not_written_again(
    connection: Connection, cluster: Cluster, sized: Declared, requests: Requests, namespace: str
) -> None:
    revision = controller_revision(
        sized.pool, sized.models[0], ControllerRevision(controller_revision_name(sized.models[0]), 1)
    )
    objects = (*sized.objects("pool-0", "pool-1", gpus=(0,)), revision)
    async with watching(connection, namespace) as watched:
        await sized.apply(watched, objects)
    before = versions(cluster, namespace)
    async with watching(connection, namespace) as watched:
        assert watched.cache.pools() == {sized.key}
        requests.seen.clear()
        assert await sized.apply(watched, objects) == ()
        assert requests.changes() == []
        await watched.until_idle()
        requests.seen.clear()
        assert await sized.apply(watched, objects) == ()
        assert requests.seen == []
        assert versions(cluster, namespace) == before


async def test_only_what_differs_is_written(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    objects = declared.objects("pool-0")
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, objects)
    for edit in (*ADDITIONS, *DRIFTS.values()):
        cluster.kubectl("-n", namespace, *edit)
    async with watching(connection, namespace) as watched:
        requests.seen.clear()
        assert await declared.apply(watched, objects) == ()
        assert sorted(requests.changes()) == sorted(("patch", kind, 200) for kind in DRIFTS)
    live = cluster.read("deployment", "pool-0", "-n", namespace)["spec"]
    assert (live["replicas"], live["minReadySeconds"]) == (1, 5)


@pytest.mark.parametrize("edit", ADDITIONS)
async def test_what_others_added_is_no_difference(
    connection: Connection,
    cluster: Cluster,
    declared: Declared,
    requests: Requests,
    namespace: str,
    edit: tuple[str, ...],
) -> None:
    objects = declared.objects("pool-0")
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, objects)
    cluster.kubectl("-n", namespace, *edit)
    async with watching(connection, namespace) as watched:
        requests.seen.clear()
        assert await declared.apply(watched, objects) == ()
        assert requests.changes() == []


async def test_a_field_that_is_desired_no_more_goes(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    objects = declared.objects("pool-0")
    former = [{**item, "metadata": {**item["metadata"], "annotations": {"former": "yes"}}} for item in objects[:1]]
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, (*former, *objects[1:]))
    async with watching(connection, namespace) as watched:
        requests.seen.clear()
        await declared.apply(watched, objects)
        assert len(requests.changes()) == 1
    kind, name = objects[0]["kind"], objects[0]["metadata"]["name"]
    assert "annotations" not in cluster.read(kind, name, "-n", namespace)["metadata"]


async def test_many_objects_are_read_in_one_list_and_stay_watched(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    more = [declare(cluster, model_body(namespace, f"model-{number}")) for number in range(MANY)]
    declared = replace(declared, models=(*declared.models, *more))
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects())
    async with watching(connection, namespace) as watched:
        requests.seen.clear()
        await declared.apply(watched, declared.objects())
        assert requests.changes() == []
        seen = [verb for verb, what, _ in requests.seen if what == "services"]
        assert seen == ["list"]
        await watched.until_idle()
        edit = '{"spec":{"selector":{"serves.argosy.dev/model-3":"no"}}}'
        cluster.kubectl("-n", namespace, "patch", "service/model-3", "-p", edit)
        await until("an edit is noticed", lambda: declared.key in watched.changes)
        requests.seen.clear()
        await declared.apply(watched, declared.objects())
        assert requests.changes() == [("patch", "services", 200)]
