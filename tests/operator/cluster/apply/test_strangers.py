"""What is not ours is neither changed nor deleted; a real API server."""

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.apply.standing import owned_by_another, versions
from tests.operator.cluster.harness import (
    Declared,
    named,
    objects_of,
    until,
    watching,
)  # fmt: skip

from argosy.cluster.apply.applier import _is_another
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import (
    ApiError,
    ConflictError,
    InvalidError,
    NotFoundError,
)


async def test_what_is_not_ours_is_refused_and_untouched(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    cluster.kubectl("-n", namespace, "create", "service", "clusterip", "embedder", "--tcp=80")
    cluster.apply(owned_by_another(namespace, "pool-0"))
    before = versions(cluster, namespace)
    async with watching(connection, namespace) as watched:
        objects = declared.objects("pool-0", "pool-1")
        refusals = await declared.apply(watched, objects)
        assert [(refusal.resource, refusal.object) for refusal in refusals] == [
            (f"ServingPool {namespace}/pool", f"ConfigMap {namespace}/pool-0"),
            (f"InferenceModel {namespace}/embedder", f"Service {namespace}/embedder"),
        ]
        assert "belongs to Widget theirs" in refusals[0].message
        assert "no label app.kubernetes.io/managed-by=argosy" in refusals[1].message
        after = versions(cluster, namespace)
        assert {name: after[name] for name in before} == before
        # A server does not start on what is somebody else's; the others do.
        assert "Deployment pool-0" not in after
        assert "Deployment pool-1" in after
        assert await declared.apply(watched, objects) == refusals

        cluster.kubectl("-n", namespace, "delete", "service/embedder", "configmap/pool-0")
        await until("the way is free", lambda: watched.cache.indexer("ConfigMap").get((namespace, "pool-0")) is None)
        assert await declared.apply(watched, objects) == ()
        assert objects_of(cluster, namespace) == named(objects)

        await declared.apply(watched, ())
        await until("nothing of ours", lambda: not objects_of(cluster, namespace))


async def test_a_stranger_with_our_labels_is_not_deleted(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    cluster.apply(owned_by_another(namespace, "theirs"))
    async with watching(connection, namespace) as watched:
        assert await declared.apply(watched, ()) == ()
    assert "ConfigMap theirs" in versions(cluster, namespace)


async def test_an_object_recreated_behind_our_back(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0"))
        await watched.until_idle()
    # Nothing is watched any more: the cache is outdated.
    cluster.kubectl("-n", namespace, "delete", "service/embedder", "role/pool-0")
    cluster.kubectl("-n", namespace, "create", "service", "clusterip", "embedder", "--tcp=80")
    changed = [{**item, "metadata": {**item["metadata"], "annotations": {"new": "yes"}}}
               for item in declared.objects("pool-0") if item["kind"] in ("Service", "Role")]  # fmt: skip
    (refusal,) = await declared.apply(watched, changed, *(f"{item.replace(' ', f' {namespace}/')}" for item in named(
        declared.objects("pool-0"))))  # fmt: skip
    assert refusal.object == f"Service {namespace}/embedder"
    assert cluster.read("service", "embedder", "-n", namespace)["spec"]["ports"][0]["port"] == 80
    assert cluster.read("role", "pool-0", "-n", namespace)["metadata"]["annotations"] == {"new": "yes"}


@pytest.mark.parametrize(
    ("error", "another"),
    [
        (NotFoundError(404, "NotFound", "pods"), True),
        (ConflictError(409, "Conflict", "Precondition failed: UID in precondition: 1, UID in object meta: 2"), True),
        (InvalidError(422, "Invalid", "metadata.uid: Invalid value: field is immutable"), True),
        (InvalidError(422, "Invalid", 'InferenceModel.argosy.dev "guide" is invalid: spec.a: Required value'), False),
        (
            InvalidError(422, "Invalid", 'spec.template: {"controller-uid":"1", Name:"POD_UID"}: field is immutable'),
            False,
        ),
        (ConflictError(409, "Conflict", "the object has been modified"), False),
    ],
)
def test_another_object_is_identified_by_its_uid(error: ApiError, another: bool) -> None:
    assert _is_another(error) is another
