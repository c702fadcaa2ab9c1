"""The agent's ConfigMaps on a real API server, with exactly the Role that an agent gets."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from e2e.cluster import Cluster
from tests.acceptance.running import wait_for
from tests.agent.running import Pod, folder_of, model, report_of

from argosy_agent.contract import LoadState, RenderedRepository
from argosy_agent.contract.documents import (
    DESIRED_KEY,
    STATE_KEY,
    AgentState,
    ConfigMapName,
    parse_state,
    repository_text,
)
from argosy_agent.publisher import PublishError
from argosy_agent.sources.configmaps import ConfigMapSink, ConfigMapSource
from argosy_agent.sources.kubernetes_api import ApiServer

NAMESPACE = "serving"
DESIRED, STATE = ConfigMapName(NAMESPACE, "pool-0"), ConfigMapName(NAMESPACE, "pool-0-state")
RIGHTS = """
apiVersion: v1
kind: Namespace
metadata: {name: serving}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: pool-0, namespace: serving}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: serving}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pool-0, namespace: serving}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [pool-0], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [pool-0-state], verbs: [get, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pool-0, namespace: serving}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pool-0}
subjects: [{kind: ServiceAccount, name: pool-0, namespace: serving}]
"""


@pytest.fixture(scope="module")
def cluster(control_plane: Cluster) -> Cluster:
    """Return an API server with the Role of an agent."""
    control_plane.apply(RIGHTS)
    return control_plane


@pytest.fixture(autouse=True)
def maps(cluster: Cluster) -> Iterator[None]:
    """Delete the agent's ConfigMaps before each test."""
    yield
    cluster.kubectl("delete", "configmap", "-n", NAMESPACE, "--all", "--ignore-not-found")


def credentials(cluster: Cluster, folder: Path, account: str = "pool-0") -> ApiServer:
    """Return an API server as a Pod of this service account reaches it."""
    config = yaml.safe_load(cluster.service_account_kubeconfig(NAMESPACE, account).read_text())
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(config["users"][0]["user"]["token"])
    authority = config["clusters"][0]["cluster"]
    if "certificate-authority-data" in authority:
        (folder / "ca.crt").write_bytes(base64.b64decode(authority["certificate-authority-data"]))
    else:
        (folder / "ca.crt").write_bytes(Path(authority["certificate-authority"]).read_bytes())
    return ApiServer(authority["server"], folder)


def write(cluster: Cluster, text: str) -> None:
    """Apply the desired ConfigMap as the operator does."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": DESIRED.name, "namespace": NAMESPACE}}
    cluster.apply(json.dumps({**body, "data": {DESIRED_KEY: text}}), server_side=True)


def create_state(cluster: Cluster) -> None:
    """Apply the empty state ConfigMap as the operator does."""
    labels = {"app.kubernetes.io/managed-by": "argosy"}
    metadata = {"name": STATE.name, "namespace": NAMESPACE, "labels": labels}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    cluster.apply(json.dumps(body), server_side=True)


async def until_logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    """Wait until something was logged."""
    await asyncio.to_thread(wait_for, lambda: words in caplog.text, lambda: caplog.text)


@asynccontextmanager
async def following(source: ConfigMapSource) -> AsyncIterator["asyncio.Queue[str]"]:
    """Yield a queue of the source's texts as they arrive."""
    texts: asyncio.Queue[str] = asyncio.Queue()

    async def follow() -> None:
        async for text in source.texts():
            texts.put_nowait(text)

    task = asyncio.create_task(follow())
    try:
        yield texts
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_every_text_arrives_and_a_deletion_takes_nothing_back(cluster: Cluster, tmp_path: Path) -> None:
    source = ConfigMapSource(credentials(cluster, tmp_path / "account"), DESIRED)
    async with following(source) as texts:
        await asyncio.sleep(0)
        for text in ("first", "second\u2028line\n", "grün"):
            await asyncio.to_thread(write, cluster, text)
            assert await texts.get() == text
        await asyncio.to_thread(cluster.kubectl, "delete", "configmap", "-n", NAMESPACE, DESIRED.name)
        await asyncio.to_thread(write, cluster, "fourth")
        assert await texts.get() == "fourth"
        assert texts.empty()


async def test_a_watch_that_ends_begins_again_with_what_is_there(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy_agent.sources.configmaps.WATCH_S", (1, 1))
    await asyncio.to_thread(write, cluster, "text")
    async with following(ConfigMapSource(credentials(cluster, tmp_path / "account"), DESIRED)) as texts:
        assert [await texts.get() for _ in range(3)] == ["text"] * 3


async def test_the_state_is_written_alongside_the_operators_fields(cluster: Cluster, tmp_path: Path) -> None:
    sink = ConfigMapSink(credentials(cluster, tmp_path / "account"), STATE)
    with pytest.raises(PublishError, match="ConfigMap serving/pool-0-state is not there yet: the operator makes it"):
        await sink.write("early")
    await asyncio.to_thread(create_state, cluster)
    await sink.write("one")
    await asyncio.to_thread(create_state, cluster)
    written = await asyncio.to_thread(cluster.read, "configmap", "-n", NAMESPACE, STATE.name)
    assert written["data"] == {STATE_KEY: "one"}
    owners = {entry["manager"]: entry["fieldsV1"] for entry in written["metadata"]["managedFields"]}
    assert owners["argosy-agent"] == {"f:data": {".": {}, f"f:{STATE_KEY}": {}}}
    await sink.write("one")
    again = await asyncio.to_thread(cluster.read, "configmap", "-n", NAMESPACE, STATE.name)
    assert again["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]


async def test_several_write_side_by_side_and_an_empty_text_goes_with_its_key(cluster: Cluster, tmp_path: Path) -> None:
    api = credentials(cluster, tmp_path / "account")
    await asyncio.to_thread(create_state, cluster)
    one, other = ConfigMapSink(api, STATE, "one.json"), ConfigMapSink(api, STATE, "other.json")
    await one.write("1")
    await other.write("2")
    await one.write("")
    written = await asyncio.to_thread(cluster.read, "configmap", "-n", NAMESPACE, STATE.name)
    assert written["data"] == {"other.json": "2"}


async def test_a_missing_role_is_named_and_its_coming_is_noticed(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await asyncio.to_thread(create_state, cluster)
    await asyncio.to_thread(write, cluster, "text")
    stranger = credentials(cluster, tmp_path / "account", "stranger")
    with pytest.raises(PublishError, match=r"resourceNames \[pool-0-state\], verbs \[get, patch, update\]"):
        await ConfigMapSink(stranger, STATE).write("x")
    async with following(ConfigMapSource(stranger, DESIRED)) as texts:
        await until_logged(caplog, "resourceNames [pool-0], verbs [get, list, watch]")
        # a rotated token: the file has another account's from now on
        await asyncio.to_thread(credentials, cluster, tmp_path / "account")
        assert await texts.get() == "text"


async def test_an_api_server_that_stops_and_starts_costs_nothing(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    api = credentials(cluster, tmp_path / "account")
    await asyncio.to_thread(create_state, cluster)
    await asyncio.to_thread(write, cluster, "before")
    sink = ConfigMapSink(api, STATE)
    async with following(ConfigMapSource(api, DESIRED)) as texts:
        assert await texts.get() == "before"
        await asyncio.to_thread(cluster.stop_apiserver)
        try:
            with pytest.raises(PublishError, match="the API server does not answer"):
                await sink.write("down")
            await until_logged(caplog, "what was read last stands")
        finally:
            await asyncio.to_thread(cluster.start_apiserver)
        await asyncio.to_thread(write, cluster, "after")
        text = await texts.get()
        while text == "before":
            text = await texts.get()
        assert text == "after"
    await sink.write("up")
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == len(set(warnings))


def test_an_agent_goes_on_without_the_api_server_and_catches_up(
    cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    api = urlsplit(credentials(cluster, tmp_path / "account").url)
    pod = Pod(
        tmp_path,
        sources=(f"--configmap={DESIRED}", f"--state={STATE}", f"--credentials={tmp_path / 'account'}"),
        variables={"KUBERNETES_SERVICE_HOST": str(api.hostname), "KUBERNETES_SERVICE_PORT": str(api.port)},
    )
    (pod.folder / "repository").mkdir(parents=True)
    pod.server = request.getfixturevalue("argosy_server")(
        pod.folder / "repository", "--model-control-mode=explicit", wait_for="/v2/health/live"
    )
    one, two = model("one", {1: folder_of(tmp_path, "one", 2.0)}), model("two", {1: folder_of(tmp_path, "two", 3.0)})

    def until(name: str) -> AgentState:
        """Wait for the state in which a model is ready."""

        def reached() -> AgentState | None:
            data = cluster.read("configmap", "-n", NAMESPACE, STATE.name).get("data") or {}
            state = parse_state(data[STATE_KEY]) if data else None
            return state if state and report_of(state, name, 1).state is LoadState.READY else None

        result: AgentState = wait_for(reached, lambda: pod.log)
        return result

    try:
        pod.start_agent()
        wait_for(lambda: "is not there yet: the operator makes it" in pod.log, lambda: pod.log)
        create_state(cluster)
        write(cluster, repository_text(RenderedRepository("pool-0", (one,))))
        assert until("one").pod == "a-uid"
        cluster.stop_apiserver()
        try:
            assert pod.infer("one", 1.0) == 2.0
            pod.kill_worker()
            # the server loses the model while the desired state cannot be read: the agent remembers it
            assert httpx.post(f"{pod.url}/v2/repository/models/one/unload", json={}).is_success
            wait_for(lambda: pod.loads("one") == 2, lambda: pod.log)
            wait_for(lambda: httpx.get(f"{pod.url}/v2/models/one/ready").is_success, lambda: pod.log)
            assert pod.infer("one", 1.0) == 2.0
        finally:
            cluster.start_apiserver()
        write(cluster, repository_text(RenderedRepository("pool-0", (one, two))))
        assert until("two").settled
        assert pod.loads("one") == 2
    finally:
        pod.end()
