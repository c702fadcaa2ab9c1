"""What an API server says comes back as it is meant: objects, or errors that name what is wrong."""

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.cluster import Cluster
from kubernetes.aio.config import incluster_config
from tests.operator.cluster.harness import Requests

from argosy.api.crd.crds import DEFINITIONS, crd
from argosy.cluster.client import access as accessing
from argosy.cluster.client import kinds
from argosy.cluster.client.access import CredentialsError, configured
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.discovery import crd_problems, lacks, offered
from argosy.cluster.client.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnreachableError,
    of_status,
    translated,
)
from argosy.cluster.client.kinds import Kind


async def test_what_the_api_server_offers(connection: Connection, cluster: Cluster) -> None:
    newer = "policy/v1" in cluster.kubectl("api-versions").split()
    assert (await offered(connection)).pdb_version == ("policy/v1" if newer else "policy/v1beta1")


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_errors_are_distinguished_and_requests_have_a_count(
    connection: Connection, cluster: Cluster, namespace: str, requests: Requests
) -> None:
    kind, one = kinds.CONFIG_MAP, (namespace, "one")
    body = configmap(namespace, "one")
    made = await connection.create(kind, body, manager="test")
    with pytest.raises(ConflictError, match="already exists"):
        await connection.create(kind, body, manager="test")
    with pytest.raises(ConflictError, match="UID"):
        await connection.delete(kind, one, "another")
    with pytest.raises(NotFoundError, match="two"):
        await connection.get(kind, (namespace, "two"))
    with pytest.raises(InvalidError):
        await connection.create(kind, configmap(namespace, "Not a name"), manager="test")
    with pytest.raises(TooLargeError):
        await connection.create(kind, {**body, "data": {"a": "x" * 4_000_000}}, manager="test")
    assert (await connection.get(kind, one, metadata_only=True)).keys() >= {"metadata"}
    await connection.delete(kind, one, made["metadata"]["uid"])
    statuses = {("create", "configmaps", 201), ("create", "configmaps", 409), ("get", "configmaps", 404)}
    assert statuses | {("delete", "configmaps", 409), ("create", "configmaps", 413)} <= set(requests.seen)

    async with Connection.open(cluster.user_kubeconfig("nobody")) as weak:
        with pytest.raises(ForbiddenError, match="cannot get resource") as raised:
            await weak.get(kind, one)
        assert not raised.value.namespace_ends


async def test_many_objects_come_in_pages(connection: Connection, namespace: str, requests: Requests) -> None:
    bodies = [configmap(namespace, f"c{n}") for n in range(260)]
    await asyncio.gather(*(connection.create(kinds.CONFIG_MAP, body, manager="test") for body in bodies))
    pages = connection.pages(kinds.CONFIG_MAP, namespace)
    names = [item["metadata"]["name"] async for page in pages for item in page["items"]]
    assert set(names) >= {body["metadata"]["name"] for body in bodies}
    assert len([item for item in requests.seen if item[0] == "list"]) == 2


async def test_an_empty_collection_is_a_list_without_items(connection: Connection, namespace: str) -> None:
    for metadata_only in (False, True):
        pages = connection.pages(kinds.SERVICE, namespace, metadata_only=metadata_only)
        assert [page["items"] async for page in pages] == [[]]


async def test_no_one_answers(tmp_path: Path, requests: Requests) -> None:
    kubeconfig = kubeconfig_of(tmp_path, {"server": "http://127.0.0.1:9"}, {})
    async with Connection.open(kubeconfig, on_request=requests) as connection:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9 does not answer"):
            await nodes(connection)
        with pytest.raises(UnreachableError):
            async for _ in connection.watch(kinds.NODE, "", {}):
                pass
    assert requests.seen == [("list", "nodes", 0), ("watch", "nodes", 0)]


async def test_a_context_and_a_plugin_of_a_kubeconfig(cluster: Cluster, tmp_path: Path) -> None:
    credential = {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"}
    reported = json.dumps({**credential, "status": {"token": cluster.token}})
    program = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": sys.executable,
        "args": ["-c", f"print({reported!r})"],
    }
    location = {"server": cluster.server, "certificate-authority": str(cluster.plane.authority.certificate)}
    async with Connection.open(kubeconfig_of(tmp_path, location, {"exec": program}), "there") as connection:
        await nodes(connection)
    with pytest.raises(CredentialsError, match="--kubeconfig"):
        async with Connection.open(tmp_path / "kubeconfig", "elsewhere"):
            pass
    with pytest.raises(CredentialsError, match="missing gives no way"):
        await configured(tmp_path / "missing")


async def test_a_token_that_was_replaced_is_read_again(
    cluster: Cluster, tmp_path: Path, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.crt").write_bytes(cluster.plane.authority.certificate.read_bytes())
    (tmp_path / "token").write_text("outdated")
    host, _, port = cluster.server.removeprefix("https://").rpartition(":")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    async with Connection.open(on_request=requests) as connection:
        with pytest.raises(ApiError, match="Unauthorized"):
            await nodes(connection)
        monkeypatch.setattr(accessing, "RENEW_S", 0.0)
        (tmp_path / "token").write_text(cluster.token)
        await nodes(connection)
        assert [status for _, _, status in requests.seen] == [401, 200]
        (tmp_path / "token").unlink()
        await nodes(connection)  # with the one that was
        assert (await connection.access()).authorization == f"bearer {cluster.token}"
    with pytest.raises(CredentialsError, match="no service account that can be used"):
        await configured()


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_lines_of_any_length(cluster: Cluster, connection: Connection, namespace: str) -> None:
    large = {**configmap(namespace, "large"), "data": {"a": "é\n" * 340_000}}
    made = await connection.create(kinds.CONFIG_MAP, large, manager="test")
    before = str(int(made["metadata"]["resourceVersion"]) - 1)
    watched = connection.watch(kinds.CONFIG_MAP, namespace, {"resourceVersion": before})
    async with aclosing(watched) as events:
        async for event in events:
            if event["object"]["metadata"]["name"] == "large":
                assert event["object"]["data"] == large["data"]
                break


def configmap(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}}


async def nodes(connection: Connection) -> None:
    """Ask for them."""
    async for _ in connection.pages(kinds.NODE):
        pass


def kubeconfig_of(folder: Path, location: dict[str, str], user: dict[str, Any]) -> Path:
    path = folder / "kubeconfig"
    named = {
        "clusters": [{"name": "c", "cluster": location}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "there", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "there", **named}))
    return path


async def test_crds_that_are_old_or_missing(connection: Connection, cluster: Cluster) -> None:
    assert await crd_problems(connection) == []
    old = crd(DEFINITIONS[0])
    del schema_of(old)["properties"]["spec"]["properties"]["batching"]
    schema_of(old)["properties"]["spec"]["properties"]["priority"] = {"type": "boolean"}
    try:
        cluster.apply(json.dumps(old))
        (problem,) = await crd_problems(connection)
        assert "inferencemodels.argosy.dev is older" in problem
        assert "spec.batching" in problem
        assert problem.endswith("run: kubectl apply -f crds/")
        async with Connection.open(cluster.service_account_kubeconfig("default", "default")) as weak:
            assert await crd_problems(weak) == []  # it may not look; the API server serves the kinds
        cluster.kubectl("delete", "crd", "inferencemodels.argosy.dev")
        async with asyncio.timeout(30):
            while not (result := await crd_problems(connection)):  # noqa: ASYNC110 - the API server offers the kind a little longer
                await asyncio.sleep(0.1)
        (problem,) = result
        assert "inferencemodels.argosy.dev is missing" in problem
    finally:
        cluster.apply(json.dumps(crd(DEFINITIONS[0])))
        cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return result


def test_what_a_schema_lacks() -> None:
    ours = {"properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"properties": {"c": {}}}}}}
    assert list(lacks(ours, ours)) == []
    assert list(lacks({}, ours)) == ["a", "b"]
    assert list(lacks({"x-kubernetes-preserve-unknown-fields": True}, ours)) == []
    theirs = {"properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {}}, "newer": {}}}
    assert list(lacks(theirs, ours)) == ["a as string", "b[].c"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, InvalidError), (401, ApiError), (403, ForbiddenError), (404, NotFoundError), (409, ConflictError),
     (410, GoneError), (413, TooLargeError), (422, InvalidError), (429, UnreachableError), (500, UnreachableError),
     (503, UnreachableError)],
)  # fmt: skip
def test_every_status_has_its_error(status: int, kind: type[ApiError]) -> None:
    assert type(translated(status, "<html>no JSON</html>")) is kind
    assert type(of_status({"code": status, "message": "m"})) is kind
    assert str(translated(status, None)) == f"HTTP status {status}"


def test_etcds_own_limit_is_too_large() -> None:
    assert isinstance(of_status({"code": 500, "message": "etcdserver: request is too large"}), TooLargeError)


@pytest.mark.parametrize(
    ("kind", "path", "resource"),
    [
        (kinds.POD.status, "/api/v1/namespaces/a/pods/b/status", "pods/status"),
        (kinds.DEPLOYMENT, "/apis/apps/v1/namespaces/a/deployments/b", "deployments"),
    ],
)
def test_the_path_of_an_object_and_the_label_of_its_requests(kind: Kind, path: str, resource: str) -> None:
    assert (kind.path("b", "a"), kind.resource) == (path, resource)
