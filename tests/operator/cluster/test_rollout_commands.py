"""`argosy rollout` on a real API server: what it reads, annotates and watches."""

import asyncio
from pathlib import Path

import pytest
import yaml
from e2e.cluster import Cluster
from tests.operator.cli.rollout.bodies import body, promoted, stepping
from tests.operator.cluster.harness import Declared

from argosy.cli.rollout import requests
from argosy.cli.rollout.progress import progress
from argosy.cli.rollout.targets.cluster import ClusterTarget
from argosy.cli.rollout.targets.target import TargetError
from argosy.cluster.client.access import CredentialsError, default_namespace
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import RESOURCES

KIND = RESOURCES["InferenceModel"]


async def test_a_rollout_is_watched_and_annotated(connection: Connection, namespace: str, declared: Declared) -> None:
    target, key = ClusterTarget(connection, namespace), (namespace, "embedder")

    async def report(status: dict[str, object]) -> None:
        await connection.merge(KIND.status, key, {"status": status}, manager="test")

    await report({**body(stepping())["status"], "observedGeneration": 1})
    member = await target.member("embedder")
    assert (member.kind, member.namespace) == ("InferenceModel", namespace)
    assert await target.request(member, requests.pause(member)) == ""
    paused = await target.member("model/embedder")
    assert paused.annotations["argosy.dev/pause"] == "true"
    assert paused.generation == member.generation
    await target.request(paused, requests.resume(paused))
    assert "argosy.dev/pause" not in (await target.member("embedder")).annotations
    seen = []
    async with asyncio.timeout(60):
        async for changed in target.changes(member):
            seen.append(progress(changed))
            if seen[-1].finished:
                break
            if len(seen) == 1:
                await report({**body(promoted(), ready="True")["status"], "observedGeneration": 1})
    assert not seen[0].finished
    assert seen[-1].message == "Promoted: revision bbb2 (version 2) serves"


async def test_what_there_is_not_and_what_is_deleted(
    connection: Connection, cluster: Cluster, namespace: str, declared: Declared
) -> None:
    target = ClusterTarget(connection, namespace)
    with pytest.raises(TargetError, match=f"no model or ensemble 'other' in the namespace {namespace}"):
        await target.member("other")
    member = await target.member("embedder")

    async def deleted() -> None:
        async for _ in target.changes(member):
            await asyncio.to_thread(
                cluster.kubectl, "-n", namespace, "delete", "inferencemodel", "embedder", "--wait=false"
            )

    with pytest.raises(TargetError, match="was deleted"):
        await asyncio.wait_for(deleted(), 60)
    with pytest.raises(TargetError, match=r"cannot be annotated: .+not found"):
        await target.request(member, requests.Request("argosy.dev/pause", "true", ""))


def test_the_namespace_of_a_context(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    (context, *_) = config["contexts"]
    config["contexts"] = [context, {**context, "name": "team", "context": {**context["context"], "namespace": "ml"}}]
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    assert default_namespace(path) == "default"
    assert default_namespace(path, "team") == "ml"
    path.write_text("contexts: 1")
    with pytest.raises(CredentialsError, match="names no context"):
        default_namespace(path)
