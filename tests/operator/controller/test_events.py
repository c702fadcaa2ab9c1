"""Events that people see with kubectl, once each."""

from datetime import UTC, datetime, timedelta

from e2e.cluster import Cluster
from tests.operator.cluster.harness import Declared, Requests

from argosy.cluster.client import kinds
from argosy.cluster.client.connection import Connection
from argosy.controller.events.announcer import REPEAT_S, Recorder


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def test_the_same_thing_is_reported_once_with_a_count(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    clock = Clock()
    recorder, (model,) = Recorder(connection, clock), declared.models
    for _ in range(5):
        await recorder.record(model, "Warning", "LoadFailed", "its file is no model")
    assert requests.writes() == [("create", "events", 201)]
    (event,) = cluster.read("events", "-n", namespace)["items"]
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "LoadFailed", 1)
    assert event["involvedObject"]["uid"] == model.metadata.uid
    assert event["source"]["component"] == "argosy"

    clock.now += timedelta(seconds=REPEAT_S)
    await recorder.record(model, "Warning", "LoadFailed", "its file is no model")
    (event,) = cluster.read("events", "-n", namespace)["items"]
    assert event["count"] == 6
    assert event["lastTimestamp"] > event["firstTimestamp"]
    shown = cluster.kubectl("describe", "inferencemodel", model.name, "-n", namespace)
    assert "its file is no model" in shown

    await recorder.record(model, "Normal", "Ready", "it serves")
    assert len(cluster.read("events", "-n", namespace)["items"]) == 2


async def test_the_same_thing_with_other_numbers_is_one_event_with_the_newest(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    clock = Clock()
    recorder, (model,) = Recorder(connection, clock), declared.models
    for wait in (60, 70, 80):
        await recorder.record(model, "Warning", "StarvedStage", f"requests wait {wait} %", "bert")
    assert requests.writes() == [("create", "events", 201)]
    clock.now += timedelta(seconds=REPEAT_S)
    await recorder.record(model, "Warning", "StarvedStage", "requests wait 90 %", "bert")
    (event,) = cluster.read("events", "-n", namespace)["items"]
    assert (event["message"], event["count"]) == ("requests wait 90 %", 4)


async def test_an_event_that_the_api_server_forgot_is_recreated(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    clock = Clock()
    recorder = Recorder(connection, clock)
    await recorder.record(declared.pool, "Normal", "Ready", "all servers are ready")
    cluster.kubectl("-n", namespace, "delete", "events", "--all")
    clock.now += timedelta(seconds=REPEAT_S)
    await recorder.record(declared.pool, "Normal", "Ready", "all servers are ready")
    (event,) = cluster.read("events", "-n", namespace)["items"]
    assert event["count"] == 2


async def test_what_cannot_be_posted_is_no_error(
    cluster: Cluster, declared: Declared, namespace: str, requests: Requests
) -> None:
    account = cluster.service_account_kubeconfig(namespace, "default")
    async with Connection.open(account, on_request=requests) as connection:
        await Recorder(connection).record(declared.pool, "Normal", "Ready", "x" * 5000)
    assert requests.seen == [("create", "events", 403)]


async def test_long_names_and_messages_fit(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    name = ".".join(["n" * 60] * 4) + ".abcdefghi"
    metadata = declared.pool.metadata.model_copy(update={"name": name})
    await Recorder(connection).record(
        declared.pool.model_copy(update={"metadata": metadata}), "Normal", "R", "m" * 5000
    )
    (event,) = [item async for page in connection.pages(kinds.EVENT, namespace) for item in page["items"]]
    assert event["involvedObject"]["name"] == name
    assert len(event["message"]) == 1024
