"""Requests that wait at a pool's activator, as its Pods report them in its ConfigMap."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from argosy.cluster.cache.indexer import Indexer, Owned
from argosy.cluster.cache.pods.pod_cache import PodCache, PodView, pod_view
from argosy.cluster.cache.pool_view import pool_view
from argosy.cluster.cache.server_objects import ActivatorState, Running, of_configmap, of_deployment
from argosy.cluster.client import kinds
from argosy_agent.contract.activation import MEMBERS_KEY, QueuedRequests, queued_key, queued_text

POD = PodView("p", "u", "", True, False, False, frozenset(), False, "", datetime(2026, 1, 1, tzinfo=UTC))


def state(data: dict[str, str]) -> object:
    labels = {"argosy.dev/pool": "pool", "argosy.dev/activator": "pool"}
    return of_configmap({"metadata": {"name": "a-state", "labels": labels}, "data": data})


def data(*reports: QueuedRequests) -> dict[str, str]:
    return {queued_key(report.pod): queued_text(report) for report in reports}


def owned(detail: object) -> Owned:
    return Owned("1", 1, True, None, "pool", "", False, b"", detail)


def test_every_pod_reports_what_waits_there() -> None:
    reports = data(QueuedRequests("u", {"a": 2}), QueuedRequests("w", {"a": 1, "b": 1}))
    view = pool_view([owned(state(reports))], [], activators=[POD, replace(POD, uid="w", terminating=True)])
    assert view.queued == {"a": 3, "b": 1}
    assert view.activator_ready


def test_what_a_pod_reported_that_is_gone_counts_no_more() -> None:
    view = pool_view([owned(state(data(QueuedRequests("gone", {"a": 2}))))], [], activators=[POD])
    assert view.queued == {}


def test_an_activator_is_ready_if_one_of_its_pods_is() -> None:
    pods = [replace(POD, ready=False), replace(POD, uid="w", terminating=True)]
    assert not pool_view([], [], activators=pods).activator_ready
    assert not pool_view([], []).activator_ready


def test_why_no_activator_is_ready_is_reported() -> None:
    pulling = replace(POD, ready=False, error="container activator: ImagePullBackOff")
    assert pool_view([], [], activators=[pulling]).activator_error == (
        "no Pod of its activator is ready: container activator: ImagePullBackOff"
    )
    stuck = owned(Running("", "no Pod can be made: exceeded quota"))
    assert pool_view([stuck], []).activator_error.endswith("exceeded quota")
    assert pool_view([replace(stuck, server="pool-0")], []).activator_error == "no Pod of its activator is ready"
    assert pool_view([stuck], [], activators=[POD]).activator_error == ""


def test_a_placeholder_that_has_no_pod_says_nothing_of_the_activator() -> None:
    body = {"metadata": {"labels": {"argosy.dev/pool": "pool", "argosy.dev/placeholder": "pool"}}}
    assert of_deployment(body) is None
    assert of_deployment({"metadata": {"labels": {"argosy.dev/pool": "pool"}}}) == Running("")


def test_an_invalid_report_is_ignored() -> None:
    result = state({queued_key("u"): "{", MEMBERS_KEY: "{}", **data(QueuedRequests("w", {"a": 1}))})
    assert isinstance(result, ActivatorState)
    assert result.reports == (QueuedRequests("w", {"a": 1}),)


def test_how_many_wait_is_recorded_and_only_whether_any_do_is_news() -> None:
    reported: list[tuple[str, str]] = []
    indexer = Indexer(kinds.CONFIG_MAP, reported.append, of_configmap)
    labels = {"argosy.dev/pool": "pool", "argosy.dev/activator": "pool"}

    def queued(version: int, *reports: QueuedRequests) -> dict[str, int]:
        metadata = {"namespace": "n", "name": "a-state", "uid": "x", "resourceVersion": str(version), "labels": labels}
        indexer.update({"metadata": metadata, "data": data(*reports)})
        view = pool_view([item for _, item in indexer.of_pool(("n", "pool"))], [], activators=[POD])
        return dict(view.queued)

    queued(1)
    reported.clear()
    assert queued(2, QueuedRequests("u", {"a": 1})) == {"a": 1}
    assert len(reported) == 1
    for version in range(3, 50):
        assert queued(version, QueuedRequests("u", {"a": version})) == {"a": version}
    assert len(reported) == 1
    assert queued(50, QueuedRequests("u", {"a": 9, "b": 1})) == {"a": 9, "b": 1}
    assert queued(51) == {}
    assert len(reported) == 3


def body(**status: Any) -> dict[str, Any]:
    labels = {"argosy.dev/activator": "pool", "serves.argosy.dev/a": "true"}
    metadata = {"namespace": "n", "name": "p", "uid": "u", "resourceVersion": "1", "labels": labels}
    return {"metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status}


def test_an_activators_pods_are_identified_by_a_label_of_their_own() -> None:
    reported: list[tuple[str, str]] = []
    pods = PodCache(reported.append, "argosy.dev/activator")
    pods.update(body(podIP="10.0.0.1"))
    (view,) = pods.of_pool(("n", "pool"))
    assert (view.address, view.routes, reported) == ("10.0.0.1", {"a"}, [("n", "pool")])


def test_a_pod_without_an_address_yet() -> None:
    assert pod_view(body()).address == ""
