"""What is known of a cluster is what is so, over broken watches, missing rights and other people's deeds."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from e2e.cluster import Cluster
from e2e.cluster.standins.fake import FakeKubelets, fake_nodes
from e2e.cluster.standins.gpus import Gpus
from tests.operator.cluster.harness import (
    Declared,
    Requests,
    Watched,
    declare,
    model_body,
    pool_body,
    until,
    watching,
)  # fmt: skip

from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.client import kinds
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ForbiddenError
from argosy.cluster.client.kinds import Kind
from argosy_agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.documents import STATE_KEY, AgentState, state_text

LOADED = RenderedRepository("pool-0", (RenderedModel("embedder", "name: 'embedder'", {1: VersionSource("s3://m")}),))
READY = LoadedModel("embedder", 1, LoadState.READY)


async def write_state(connection: Connection, namespace: str, state: AgentState) -> None:
    key = (namespace, "pool-0-state")
    await connection.merge(kinds.CONFIG_MAP, key, {"data": {STATE_KEY: state_text(state)}}, manager="argosy-agent")


async def test_a_server_is_derived_from_its_objects_pod_and_agent(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    (node,) = fake_nodes(cluster, 1, Gpus(2), prefix=f"n{namespace}-")
    async with watching(connection, namespace) as watched:
        objects = declared.objects("pool-0", gpus=(0, 1), node=node)
        await declared.apply(watched, objects)
        with FakeKubelets(cluster, [node]):
            await until("a Pod whose server is ready", lambda: any(p.server_ready for p in view(watched).pods))
            (pod,) = view(watched).pods
            assert (pod.server, pod.routes, pod.settled, pod.terminating) == ("pool-0", frozenset(), False, False)
            assert view(watched).reports[0].ready is False

            await write_state(connection, namespace, AgentState("another-pod", True, True, (READY,), LOADED))
            await watched.until_idle()
            assert view(watched).reports[0].models == ()
            assert view(watched).repositories == ()

            await write_state(connection, namespace, AgentState(pod.uid, True, True, (READY,), LOADED))
            await until("the agent's report", lambda: view(watched).reports[0].ready)
            (report,) = view(watched).reports
            assert (report.name, report.models, report.settled, report.error) == ("pool-0", (READY,), True, "")
            assert view(watched).repositories == (LOADED,)
            (server,) = view(watched).current
            assert (server.name, server.node, server.gpus, server.placed) == (
                "pool-0", node, (0, 1), {"embedder": (0, 1)},
            )  # fmt: skip
            assert list(view(watched).templates) == ["pool-0"]
            assert watched.cache.foreign_gpus() == {}

            await watched.applier.route(pod, namespace, Routes(frozenset({"embedder", "x" * 200})), True)
            await until("routes", lambda: view(watched).pods[0].routes == {"embedder", "x" * 200})
            assert view(watched).pods[0].settled
            one = frozenset({"embedder"})
            await watched.applier.route(view(watched).pods[0], namespace, Routes(one, one), True)
            await until("ejection", lambda: view(watched).pods[0].ejected == one)
            assert view(watched).pods[0].routes == one
            await watched.applier.route(view(watched).pods[0], namespace, Routes(one), True)
            labels = cluster.read("pod", pod.name, "-n", namespace)["metadata"]["labels"]
            assert [key for key in labels if key.startswith("serves.")] == ["serves.argosy.dev/embedder"]
            await until("the Pod is ready", lambda: view(watched).pods[0].ready)

            cluster.kubectl("-n", namespace, "patch", "configmap/pool-0-state", "-p", '{"data":{"state.json":"{"}}')
            await until("a state that cannot be read", lambda: "cannot be read" in view(watched).reports[0].error)
            assert view(watched).reports[0].ready is False


def view(watched: Watched) -> Any:
    (key,) = watched.cache.pools()
    return watched.cache.pool(key)


async def test_routes_never_reach_another_pod_of_the_name(
    connection: Connection, cluster: Cluster, namespace: str
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": "mine",
            "labels": {
                "app.kubernetes.io/managed-by": "argosy",
                "app.kubernetes.io/part-of": "argosy",
                "argosy.dev/pool": "pool",
                "argosy.dev/server": "pool-0",
            },
        },
        "spec": {"containers": [{"name": "server", "image": "none"}]},
    }
    cluster.apply(json.dumps(pod))
    async with watching(connection, namespace) as watched:
        (before,) = watched.cache.pool(PoolKey.of(namespace, "pool")).pods
        cluster.kubectl("-n", namespace, "delete", "pod/mine", "--force", "--grace-period=0")
        await watched.applier.route(before, namespace, Routes(frozenset({"embedder"})), True)
        assert cluster.read("pods", "-n", namespace)["items"] == []
        cluster.apply(json.dumps(pod))
        await watched.applier.route(before, namespace, Routes(frozenset({"embedder"})), True)
        (item,) = cluster.read("pods", "-n", namespace)["items"]
        await watched.applier.route(before, namespace, Routes(before.routes), True)
        (item,) = cluster.read("pods", "-n", namespace)["items"]
        assert not [key for key in item["metadata"]["labels"] if key.startswith("serves.")]
        assert not [item for item in item["status"].get("conditions", ()) if item["type"] == "argosy.dev/settled"]


def refusal_of_a_pod(cluster: Cluster, namespace: str) -> str:
    """Return why a Pod is refused. A ReplicaSet keeps the first reason, which is another until the quota is in use."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": "tried"},
        "spec": {"containers": [{"name": "server", "image": "none"}]},
    }
    return cluster.kubectl_process("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod)).stderr


@pytest.mark.timeout(400)
async def test_why_a_server_does_not_run_is_reported_in_words(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    cluster.kubectl("-n", namespace, "create", "quota", "none", "--hard=pods=0")
    await until("the quota holds", lambda: "exceeded quota" in refusal_of_a_pod(cluster, namespace))
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0", node="nowhere"))
        await until("a quota", lambda: "exceeded quota" in view(watched).reports[0].error, 120)
        cluster.kubectl("-n", namespace, "delete", "quota", "none")
        # Its controller backs off after each refusal, up to minutes; a new one has not waited yet.
        cluster.kubectl("-n", namespace, "delete", "replicasets", "--all")
        await until("no node", lambda: "no node takes the Pod: Unschedulable" in view(watched).reports[0].error, 120)


async def test_names_of_any_length(connection: Connection, cluster: Cluster, namespace: str) -> None:
    long = ".".join(["p" * 60] * 4) + ".abcdefghi"
    pool = declare(cluster, pool_body(namespace, long))
    assert len(long) == 253
    declared = Declared(pool, (declare(cluster, model_body(namespace, long, long)),))
    async with watching(connection, namespace) as watched:
        assert await declared.apply(watched, declared.objects(f"{long}-0")) == ()
    async with watching(connection, namespace) as watched:
        assert watched.cache.pools() == {declared.key}
        assert [server.name for server in view(watched).current] == [f"{long}-0"]
        assert await declared.apply(watched, ()) == ()
        await until("no pool", lambda: not watched.cache.pools())


GFD = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
}


async def test_nodes_change_when_facts_do(
    connection: Connection, cluster: Cluster, namespace: str, requests: Requests
) -> None:
    good, bad = f"good-{namespace}", f"bad-{namespace}"
    for name, labels in ((good, GFD), (bad, {})):
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        await connection.create(kinds.NODE, body, manager="test")
        await connection.merge(
            kinds.NODE.status,
            ("", name),
            {"status": {"capacity": {"nvidia.com/gpu": "4", "pods": "10"}}},
            manager="test",
        )
    async with watching(connection, namespace) as watched:
        result = {node.name: node for node in watched.cache.nodes()}
        assert len(result[good].gpus) == 4
        assert (result[bad].gpus, result[bad].schedulable) == ((), False)
        assert "nvidia.com/gpu.memory" in watched.cache.errors[f"nodes/{bad}"]

        await watched.until_idle()
        requests.seen.clear()
        heartbeat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2030-01-01T00:00:00Z"}
        for second in range(3):
            heartbeat["lastHeartbeatTime"] = f"2030-01-01T00:00:0{second}Z"
            await connection.merge(kinds.NODE.status, ("", good), {"status": {"conditions": [heartbeat]}}, manager="t")
        cluster.kubectl("label", "node", good, "zone=a")
        await until("the label", lambda: any(node.labels.get("zone") == "a" for node in watched.cache.nodes()))
        assert watched.changes == [None]

        cluster.kubectl("label", "node", bad, "nvidia.com/gpu.memory=1000")
        await until("it can be used", lambda: any(node.name == bad and node.gpus for node in watched.cache.nodes()))
        assert f"nodes/{bad}" not in watched.cache.errors
        cluster.kubectl("delete", "node", good, bad)
        await until("gone", lambda: not {good, bad} & {node.name for node in watched.cache.nodes()})


async def test_gpus_of_others_are_identified_by_pod(connection: Connection, cluster: Cluster, namespace: str) -> None:
    (node,) = fake_nodes(cluster, 1, Gpus(8), prefix=f"g{namespace}-")
    asks = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": f"train-{namespace}"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "a", "image": "none", **asks}, {"name": "b", "image": "none", **asks}],
        },
    }
    labels = {"app.kubernetes.io/managed-by": "argosy", "app.kubernetes.io/part-of": "argosy"}
    placeholder = {"namespace": namespace, "name": "hold", "labels": {**labels, "argosy.dev/placeholder": "pool"}}
    async with watching(connection, namespace) as watched:
        assert node not in watched.cache.foreign_gpus()
        cluster.apply(json.dumps({**pod, "metadata": placeholder}))
        cluster.apply(json.dumps(pod))
        await until("used", lambda: watched.cache.foreign_gpus().get(node) == {f"default/train-{namespace}": 4})
        await connection.merge(
            kinds.POD.status, ("default", f"train-{namespace}"), {"status": {"phase": "Succeeded"}}, manager="t"
        )
        await until("free again", lambda: node not in watched.cache.foreign_gpus())
    cluster.kubectl("delete", "pod", f"train-{namespace}", "--force", "--grace-period=0")


class Outdated(Connection):
    """A connection whose first watches of Services begin at a version that the API server no longer has."""

    outdated = True

    async def watch(self, kind: Kind, namespace: str, params: Mapping[str, str]) -> AsyncGenerator[dict[str, Any]]:
        if kind == kinds.SERVICE and self.outdated:
            self.outdated = False
            await self.delete(kind, (namespace, "embedder"), self.uid)
            params = {**params, "resourceVersion": "1"}
        async with aclosing(super().watch(kind, namespace, params)) as events:
            async for event in events:
                yield event

    uid = ""


async def test_a_watch_that_is_too_old_lists_again(
    cluster: Cluster, declared: Declared, namespace: str, requests: Requests, connection: Connection
) -> None:
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0"))
    uid = cluster.read("service", "embedder", "-n", namespace)["metadata"]["uid"]
    # It keeps what happened since it began, and so no longer what happened before.
    cluster.stop_apiserver()
    cluster.start_apiserver()
    requests.seen.clear()
    async with Outdated.open(cluster.kubeconfig, on_request=requests) as outdated:
        assert isinstance(outdated, Outdated)
        outdated.uid = uid
        async with watching(outdated, namespace) as watched:
            indexer = watched.cache.indexer("Service")
            await until("the deletion is known", lambda: indexer.get((namespace, "embedder")) is None)
            await until("it is reported", lambda: declared.key in watched.changes)
    assert [status for verb, what, status in requests.seen if (verb, what) == ("list", "services")] == [200, 200]


async def test_a_forbidden_kind_blocks_no_other(cluster: Cluster, declared: Declared, namespace: str) -> None:
    readable = "nodes,pods,configmaps,services,serviceaccounts,deployments.apps,controllerrevisions.apps"
    name = grant(cluster, namespace, "partly", readable)
    async with (
        Connection.open(cluster.service_account_kubeconfig(namespace, name)) as connection,
        watching(connection, namespace) as watched,
    ):
        errors = watched.cache.errors
        refused = ("jobs", "networkpolicies", "poddisruptionbudgets", "rolebindings", "roles")
        assert sorted(key for key, words in errors.items() if "may not" in words) == [
            f"{kind}/{namespace}" for kind in refused
        ]
        words = errors[f"roles/{namespace}"]
        assert words.startswith(f"may not list and watch roles in namespace {namespace}: grant")
        cluster.kubectl("create", "configmap", "seen", "-n", namespace)
        cluster.kubectl("label", "configmap", "seen", "-n", namespace, *LABELS)
        await until("what may be read is", lambda: f"{namespace}/some" in watched.cache.pools())


@pytest.mark.parametrize(
    ("readable", "missing"),
    [
        ("pods,configmaps,controllerrevisions.apps", "nodes"),
        ("nodes,pods,controllerrevisions.apps", "configmaps"),
        ("nodes,pods,configmaps", "controllerrevisions"),
    ],
)
async def test_without_what_is_needed_nothing_is_decided(
    cluster: Cluster, declared: Declared, namespace: str, readable: str, missing: str
) -> None:
    name = grant(cluster, namespace, "blind", readable)
    async with Connection.open(cluster.service_account_kubeconfig(namespace, name)) as connection:
        with pytest.raises(ForbiddenError, match=missing):
            async with watching(connection, namespace):
                pass


LABELS = ("app.kubernetes.io/managed-by=argosy", "app.kubernetes.io/part-of=argosy", "argosy.dev/pool=some")


def grant(cluster: Cluster, namespace: str, name: str, resources: str) -> str:
    """Create a service account that may read these resources."""
    role = f"{name}-{namespace}"
    cluster.kubectl("-n", namespace, "create", "serviceaccount", name)
    cluster.kubectl("create", "clusterrole", role, "--verb=get,list,watch", f"--resource={resources}")
    cluster.kubectl(
        "create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount={namespace}:{name}"
    )
    return name
