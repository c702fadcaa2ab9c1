"""Statuses are written whole, by server-side apply, and nothing else is."""

from e2e.cluster import Cluster
from tests.operator.cluster.harness import Declared, watching

from argosy.api import Condition, ConditionStatus, ConditionType, InferenceModelStatus, Reason
from argosy.cluster.client.connection import Connection


def status(generation: int, *conditions: Condition, **fields: object) -> InferenceModelStatus:
    return InferenceModelStatus.model_validate(
        {"observedGeneration": generation, "conditions": conditions, **fields}, by_alias=True
    )


def condition(kind: ConditionType, so: ConditionStatus) -> Condition:
    return Condition(
        type=kind, status=so, reason=Reason.SERVING, message="m", last_transition_time="2026-01-01T00:00:00Z",
        observed_generation=1,
    )  # fmt: skip


async def test_a_status_is_written_completely(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    (model,) = declared.models
    spec = cluster.read("inferencemodel", model.name, "-n", namespace)["spec"]
    async with watching(connection, namespace) as watched:
        ready = condition(ConditionType.READY, ConditionStatus.TRUE)
        stalled = condition(ConditionType.STALLED, ConditionStatus.TRUE)
        assert await watched.applier.status(model, status(1, ready, stalled, url="http://here"))
        assert await watched.applier.status(model, status(1, ready))
        live = cluster.read("inferencemodel", model.name, "-n", namespace)
        assert [condition["type"] for condition in live["status"]["conditions"]] == ["Ready"]
        assert live["status"].get("url", "") == ""
        assert live["spec"] == spec
        assert live["metadata"]["generation"] == 1

        another = model.model_copy(
            update={"metadata": model.metadata.model_copy(update={"uid": "0d9b7a1e-0000-4000-8000-000000000000"})}
        )
        assert not await watched.applier.status(another, status(1))
        cluster.kubectl("-n", namespace, "delete", "inferencemodel", model.name)
        assert not await watched.applier.status(model, status(9))
        assert cluster.read("inferencemodels", "-n", namespace)["items"] == []
