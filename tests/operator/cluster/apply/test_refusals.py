"""What a cluster does not take is told as a refusal, and the rest stands; a real API server."""

import json

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.apply.standing import KINDS_OF_POOLS, configmap, versions
from tests.operator.cluster.harness import (
    Declared,
    named,
    objects_of,
    until,
    watching,
)  # fmt: skip

from argosy.cluster.client.connection import Connection


def webhook(namespace: str) -> str:
    """Return an admission webhook, which never answers, for the Services of namespaces with the label `checked`."""
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
            assert [refusal.object for refusal in refusals] == [
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
    """Return why a Service may not be made; empty where it may."""
    dry = ("create", "service", "clusterip", "asked", "--tcp=80", "--dry-run=server", "-n", namespace)
    return cluster.kubectl_process(*dry).stderr


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
        refusals = {item.object: item.message for item in await declared.apply(watched, declared.objects("pool-0"))}
        assert set(refusals) == {
            f"{kind} {namespace}/{name}"
            for kind, name in (
                ("Service", "embedder"), ("Service", "pool-pool"), ("Role", "pool-0"),
                ("RoleBinding", "pool-0"), ("PodDisruptionBudget", "pool"),
            )
        }  # fmt: skip
        reported = refusals[f"Service {namespace}/embedder"]
        assert f"may not patch services in namespace {namespace}" in reported
        assert objects_of(cluster, namespace) == {
            "ServiceAccount pool-0", "ConfigMap pool-0", "ConfigMap pool-0-state", "NetworkPolicy pool",
        }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.parametrize("size", [1_100_000, 3_500_000], ids=["for a ConfigMap", "for a request"])
async def test_an_object_that_is_too_large_is_a_refusal(
    connection: Connection, declared: Declared, namespace: str, size: int
) -> None:
    async with watching(connection, namespace) as watched:
        objects = [
            {**item, "data": {"repository.json": "x" * size}} if item["metadata"]["name"] == "pool-0" else item
            for item in declared.objects("pool-0")
            if item["kind"] == "ConfigMap"
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
