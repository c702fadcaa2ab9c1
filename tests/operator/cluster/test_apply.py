"""Objects stand as they should, whatever anybody does to them; a real API server."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.scene import (
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

from argosy.cluster.apply.applier import _is_another
from argosy.cluster.apply.lookup import MANY
from argosy.cluster.client.connection import NOTHING, Connection
from argosy.cluster.client.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from argosy.cluster.client.kinds import Kind


async def test_a_pool_is_made_kept_and_taken_down(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        objects = declared.objects("pool-0", "pool-1")
        assert await declared.apply(watched, objects) == ()
        assert objects_of(cluster, namespace) == named(objects)
        await watched.quiet()

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


async def test_what_another_operator_left_is_taken_over_without_a_change(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0"))
    before = versions(cluster, namespace)
    async with watching(connection, namespace) as watched:
        assert watched.cache.pools() == {declared.key}
        assert await declared.apply(watched, declared.objects("pool-0")) == ()
        await watched.quiet()
        assert versions(cluster, namespace) == before


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
            await watched.quiet()
            cluster.kubectl("-n", namespace, *edit)
            await until(f"{edit} noticed", lambda: declared.key in watched.changes)
            assert await declared.apply(watched, objects) == ()
        live = {each["kind"]: each for each in cluster.json("get", *KINDS, "-n", namespace)["items"]}
        assert live["Deployment"]["spec"]["replicas"] == 1
        assert live["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"] == "argosy-runtime:1"
        assert len(live["Role"]["rules"]) == 2
        assert '"server": "pool-0"' in live["ConfigMap"]["data"]["repository.json"]
        service = cluster.json("get", "service", "embedder", "-n", namespace)["spec"]
        assert service["selector"] == {"serves.argosy.dev/embedder": "true"}
        policy = cluster.json("get", "networkpolicy", "pool", "-n", namespace)
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
        await watched.quiet()
        requests.seen.clear()
        await declared.apply(watched, objects)
        assert requests.seen == []
        assert cluster.json("get", "service", "embedder", "-n", namespace)["metadata"]["labels"]["team"] == "search"


async def test_what_is_not_ours_is_refused_and_untouched(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    cluster.kubectl("-n", namespace, "create", "service", "clusterip", "embedder", "--tcp=80")
    cluster.apply(owned_by_another(namespace, "pool-0"))
    before = versions(cluster, namespace)
    async with watching(connection, namespace) as watched:
        objects = declared.objects("pool-0", "pool-1")
        refusals = await declared.apply(watched, objects)
        assert [(each.resource, each.object) for each in refusals] == [
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
    assert cluster.json("get", "service", "model-3", "-n", namespace)["spec"]["ports"][0]["port"] == 80


def webhook(namespace: str) -> str:
    """An admission webhook for the Services of namespaces with the label `checked`, which nobody answers."""
    return json.dumps(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [
                {
                    "name": "checks.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:1/"},
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["services"]}
                    ],
                    "namespaceSelector": {"matchLabels": {"checked": namespace}},
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "timeoutSeconds": 1,
                }
            ],
        }
    )


async def test_a_webhook_that_does_not_answer_is_a_refusal(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    cluster.kubectl("label", "namespace", namespace, f"checked={namespace}")
    cluster.apply(webhook(namespace))
    try:
        await until("the webhook is asked", lambda: "checks.example.com" in refusal_of_a_service(cluster, namespace))
        async with watching(connection, namespace) as watched:
            objects = declared.objects("pool-0")
            refusals = await declared.apply(watched, objects)
            assert [each.object for each in refusals] == [
                f"Service {namespace}/{name}" for name in ("embedder", "pool-pool")
            ]
            assert refusals[0].message.startswith("waits for an admission webhook of the cluster that does not answer")
            assert "checks.example.com" in refusals[0].message
            assert "Deployment pool-0" in objects_of(cluster, namespace)

            cluster.kubectl("delete", "validatingwebhookconfiguration", namespace)
            await until("nobody asks it", lambda: not refusal_of_a_service(cluster, namespace))
            assert await declared.apply(watched, objects) == ()
            assert objects_of(cluster, namespace) == named(objects)
    finally:
        cluster.kubectl("delete", "validatingwebhookconfiguration", namespace, "--ignore-not-found")


def refusal_of_a_service(cluster: Cluster, namespace: str) -> str:
    """Why a Service may not be made; empty where it may."""
    dry = ("create", "service", "clusterip", "asked", "--tcp=80", "--dry-run=server", "-n", namespace)
    return cluster.kubectl_process(*dry).stderr


async def test_a_stranger_with_our_labels_is_not_deleted(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    cluster.apply(owned_by_another(namespace, "theirs"))
    async with watching(connection, namespace) as watched:
        assert await declared.apply(watched, ()) == ()
    assert "ConfigMap theirs" in versions(cluster, namespace)


async def test_an_object_made_anew_behind_our_back(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0"))
        await watched.quiet()
    # Nobody watches any more: what is known is what was.
    cluster.kubectl("-n", namespace, "delete", "service/embedder", "role/pool-0")
    cluster.kubectl("-n", namespace, "create", "service", "clusterip", "embedder", "--tcp=80")
    changed = [{**each, "metadata": {**each["metadata"], "annotations": {"new": "yes"}}}
               for each in declared.objects("pool-0") if each["kind"] in ("Service", "Role")]  # fmt: skip
    (refusal,) = await declared.apply(watched, changed, *(f"{each.replace(' ', f' {namespace}/')}" for each in named(
        declared.objects("pool-0"))))  # fmt: skip
    assert refusal.object == f"Service {namespace}/embedder"
    assert cluster.json("get", "service", "embedder", "-n", namespace)["spec"]["ports"][0]["port"] == 80
    assert cluster.json("get", "role", "pool-0", "-n", namespace)["metadata"]["annotations"] == {"new": "yes"}


async def test_a_missing_right_is_a_refusal(cluster: Cluster, declared: Declared, namespace: str) -> None:
    cluster.kubectl("-n", namespace, "create", "serviceaccount", "weak")
    for role, verbs, what in (
        ("reads", "get,list,watch", KINDS_OF_POOLS),
        ("writes", "patch,create", "configmaps,serviceaccounts,networkpolicies.networking.k8s.io"),
    ):
        cluster.kubectl("create", "clusterrole", f"{role}-{namespace}", f"--verb={verbs}", f"--resource={what}")
        cluster.kubectl(
            "create", "clusterrolebinding", f"{role}-{namespace}", f"--clusterrole={role}-{namespace}",
            f"--serviceaccount={namespace}:weak",
        )  # fmt: skip
    async with (
        Connection.open(cluster.service_account_kubeconfig(namespace, "weak")) as connection,
        watching(connection, namespace) as watched,
    ):
        refusals = {each.object: each.message for each in await declared.apply(watched, declared.objects("pool-0"))}
        assert set(refusals) == {
            f"{kind} {namespace}/{name}"
            for kind, name in (
                ("Service", "embedder"), ("Service", "pool-pool"), ("Role", "pool-0"),
                ("RoleBinding", "pool-0"), ("PodDisruptionBudget", "pool"),
            )
        }  # fmt: skip
        said = refusals[f"Service {namespace}/embedder"]
        assert f"may not patch services in namespace {namespace}" in said
        assert objects_of(cluster, namespace) == {
            "ServiceAccount pool-0", "ConfigMap pool-0", "ConfigMap pool-0-state", "NetworkPolicy pool",
        }  # fmt: skip


KINDS_OF_POOLS = (
    "nodes,pods,configmaps,services,serviceaccounts,deployments.apps,roles.rbac.authorization.k8s.io,"
    "rolebindings.rbac.authorization.k8s.io,networkpolicies.networking.k8s.io,poddisruptionbudgets.policy,"
    "controllerrevisions.apps,jobs.batch,inferencemodels.argosy.dev,ensembles.argosy.dev,servingpools.argosy.dev"
)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.parametrize("size", [1_100_000, 3_500_000], ids=["for a ConfigMap", "for a request"])
async def test_an_object_that_is_too_large_is_a_refusal(
    connection: Connection, declared: Declared, namespace: str, size: int
) -> None:
    async with watching(connection, namespace) as watched:
        objects = [
            {**each, "data": {"repository.json": "x" * size}} if each["metadata"]["name"] == "pool-0" else each
            for each in declared.objects("pool-0")
            if each["kind"] == "ConfigMap"
        ]
        (refusal,) = await declared.apply(watched, objects)
        assert refusal.object == f"ConfigMap {namespace}/pool-0"
        assert any(words in refusal.message.lower() for words in ("too long", "larger than"))


async def test_a_namespace_on_its_way_out_is_no_error(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    cluster.apply(json.dumps(configmap(namespace, "held", finalizers=["example.com/hold"])))
    async with watching(connection, namespace) as watched:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")
        try:
            assert await declared.apply(watched, declared.objects("pool-0")) == ()
        finally:
            cluster.kubectl("-n", namespace, "patch", "configmap/held", "-p", '{"metadata":{"finalizers":null}}')
        assert "Deployment pool-0" not in versions(cluster, namespace)


async def test_the_api_server_is_away_for_a_while(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0"))
        cluster.stop_apiserver()
        try:
            with pytest.raises(UnreachableError, match="does not answer"):
                await declared.apply(watched, declared.objects("pool-0", "pool-1"))
            await until("that it is away is known", lambda: "services/" + namespace in watched.cache.troubles)
        finally:
            cluster.start_apiserver()
        await declared.apply(watched, declared.objects("pool-0", "pool-1"))
        assert objects_of(cluster, namespace) == named(declared.objects("pool-0", "pool-1"))
        await watches_again(cluster, watched, declared)
        await until("no trouble any more", lambda: not watched.cache.troubles, 120)


async def watches_again(cluster: Cluster, watched: Watched, declared: Declared) -> None:
    await watched.quiet()
    cluster.kubectl("-n", declared.pool.namespace, "delete", "deployment/pool-1")
    await until("a deletion is seen", lambda: declared.key in watched.changes)


async def test_a_role_is_there_before_it_is_bound(cluster: Cluster, declared: Declared, namespace: str) -> None:
    """Who may not bind any role has to have the rights of the one that he binds, so that one is looked at."""
    cluster.kubectl("-n", namespace, "create", "serviceaccount", "plain")
    role, verbs = f"all-{namespace}", "get,list,watch,create,patch,update,delete"
    cluster.kubectl("create", "clusterrole", role, f"--verb={verbs}", f"--resource={KINDS_OF_POOLS}")
    account = f"--serviceaccount={namespace}:plain"
    cluster.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", account)
    async with (
        Connection.open(cluster.service_account_kubeconfig(namespace, "plain")) as connection,
        watching(connection, namespace) as watched,
    ):
        assert await declared.apply(watched, declared.objects(*(f"pool-{number}" for number in range(8)))) == ()


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
def test_another_object_is_told_by_its_uid(error: ApiError, another: bool) -> None:
    assert _is_another(error) is another


def versions(cluster: Cluster, namespace: str) -> dict[str, str]:
    kinds = "serviceaccounts,roles,rolebindings,configmaps,services,networkpolicies,poddisruptionbudgets,deployments"
    found = cluster.json("get", kinds, "-n", namespace)["items"]
    # A Deployment's own controller writes into it for a while.
    return {
        f"{each['kind']} {each['metadata']['name']}": str(
            each["metadata"].get("generation", each["metadata"]["resourceVersion"])
        )
        for each in found
    }


def configmap(namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name, **metadata},
        "data": {"kept": "yes"},
    }


def owned_by_another(namespace: str, name: str) -> str:
    """A ConfigMap with our labels whose controller is somebody else's resource."""
    labels = {
        "app.kubernetes.io/managed-by": "argosy",
        "app.kubernetes.io/part-of": "argosy",
        "argosy.dev/pool": "pool",
    }
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "name": "theirs",
        "uid": "0d9b7a1e-0000-4000-8000-000000000000",
        "controller": True,
    }
    return json.dumps(configmap(namespace, name, labels=labels, ownerReferences=[owner]))
