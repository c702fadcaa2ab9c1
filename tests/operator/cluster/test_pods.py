"""What is cached of Pods, and messages about them."""

from collections.abc import Collection
from typing import Any

import pytest

from argosy.cluster.cache.indexer import Owned, PoolLabel
from argosy.cluster.cache.ownership import Owner, why_not_ours
from argosy.cluster.cache.pods.pod_cache import ForeignGpus, PodCache, PodView, gpus_of, pod_view
from argosy.cluster.cache.pods.pod_errors import deployment_error, pod_error
from argosy.cluster.cache.pods.routing import Routes, routes_of, routes_patch
from argosy.cluster.cache.pool_view import pool_view
from argosy.cluster.cache.server_objects import Desired, State
from argosy.render.workloads import route_labels
from argosy_agent.contract.documents import AgentState

GPU = "nvidia.com/gpu"


def container(name: str = "server", **status: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"name": name, "ready": False, **status}]}


OOM = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, ""),
        (container(state={"running": {}}), ""),
        (container(state={"waiting": {"reason": "ContainerCreating"}}), ""),
        (
            container(state={"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}),
            'container server: ImagePullBackOff: Back-off pulling image "x"',
        ),
        (
            container(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=OOM),
            "container server: CrashLoopBackOff, ended with exit code 137 (OOMKilled)",
        ),
        (
            container(state={"terminated": {"exitCode": 3, "reason": "Error", "message": "no such flag\n"}}),
            "container server, ended with exit code 3: no such flag",
        ),
        ({"initContainerStatuses": [{"name": "first", "state": {"terminated": {"exitCode": 0}}}]}, ""),
        (
            {"initContainerStatuses": [{"name": "first", "state": {"terminated": {"exitCode": 1, "message": "no"}}}]},
            "container first, ended with exit code 1: no",
        ),
        (
            container("agent", state={"running": {}}, lastState=OOM),
            "container agent starts again, ended with exit code 137 (OOMKilled)",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            "the Pod was ended: Evicted: low on memory",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
            "no node takes the Pod: Unschedulable: 0/3",
        ),
    ],
)  # fmt: skip
def test_why_a_pod_does_not_run(status: dict[str, Any], words: str) -> None:
    assert pod_error(status) == words


def test_a_container_that_is_ready_again_is_no_error() -> None:
    status = container(state={"running": {}}, lastState=OOM)
    status["containerStatuses"][0]["ready"] = True
    assert pod_error(status) == ""


def test_why_a_deployment_makes_no_pod() -> None:
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "m"}
    assert deployment_error({"conditions": [stuck]}).endswith("ProgressDeadlineExceeded: m")
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
    assert deployment_error({"conditions": [failed]}) == "no Pod can be made: FailedCreate: exceeded quota"
    assert deployment_error({"conditions": [{"type": "Available", "status": "False"}]}) == ""


def test_gpus_of_a_pod() -> None:
    def asking(count: str, kind: str = "limits") -> dict[str, Any]:
        return {"resources": {kind: {"nvidia.com/gpu": count}}}

    assert gpus_of({"containers": [asking("2"), asking("1", "requests"), {}]}) == {GPU: 3}
    assert gpus_of({"containers": [asking("1")], "initContainers": [asking("4"), asking("2")]}) == {GPU: 4}
    assert gpus_of({"containers": [{"resources": {"limits": {"cpu": "1"}}}]}) == {}
    slices = {"resources": {"limits": {"nvidia.com/mig-1g.10gb": "2", "cpu": "1"}}}
    assert gpus_of({"containers": [asking("1"), slices]}) == {GPU: 1, "nvidia.com/mig-1g.10gb": 2}


def test_gpus_of_other_pods_are_listed_by_node_and_slices_by_their_resource() -> None:
    others = ForeignGpus(lambda: None, lambda _: False)
    limits = {GPU: "1", "nvidia.com/mig-1g.10gb": "2"}
    spec = {"nodeName": "a", "containers": [{"resources": {"limits": limits}}]}
    pod = {"metadata": {"namespace": "n", "name": "train"}, "spec": spec}
    others.update(pod)
    assert others.by_node() == {"a": {"n/train": 1}, "a/nvidia.com/mig-1g.10gb": {"n/train": 2}}
    others.delete(pod)
    assert others.by_node() == {}


def test_routes_are_read_as_they_were_written() -> None:
    names = frozenset({"embedder", "v1.model", "x" * 200})
    patch = routes_patch("u", [], Routes(names))["metadata"]
    assert routes_of(patch) == Routes(names)
    fewer = routes_patch("u", names, Routes(frozenset({"embedder"})))["metadata"]
    retained = {key: value for key, value in {**patch["labels"], **fewer["labels"]}.items() if value is not None}
    assert routes_of({"labels": retained}) == Routes(frozenset({"embedder"}))
    assert fewer["annotations"] == {"argosy.dev/routes": None}


def test_a_label_that_names_nothing_valid_can_be_taken_away() -> None:
    shortened = next(iter(routes_patch("u", [], Routes(frozenset({"x" * 200})))["metadata"]["labels"]))
    result = routes_of({"labels": {shortened: "true"}, "annotations": {"argosy.dev/routes": "not JSON"}})
    (unknown,) = result.names
    assert routes_patch("u", [unknown], Routes())["metadata"]["labels"] == {shortened: None}


def test_what_is_ejected_keeps_its_label_and_no_service_selects_it() -> None:
    ejected = Routes(frozenset({"embedder", "x" * 200}), frozenset({"x" * 200}))
    patch = routes_patch("u", [], ejected)["metadata"]
    assert routes_of(patch) == ejected
    selected = route_labels(ejected.names)
    assert {key: value == selected[key] for key, value in patch["labels"].items()} == {
        key: "embedder" in key for key in selected
    }
    again = routes_patch("u", ejected.names, Routes(ejected.names))["metadata"]
    assert routes_of(again) == Routes(ejected.names)


def test_a_pod_without_a_status_yet() -> None:
    metadata = {"name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "x"}
    view = pod_view({"metadata": metadata})
    assert (view.ready, view.server_ready, view.terminating, view.routes) == (False, False, True, frozenset())


@pytest.mark.parametrize("ready", [True, False])
def test_an_unready_pod_takes_no_requests_and_still_has_its_routes(ready: bool) -> None:
    metadata = {"name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    labels = {"argosy.dev/server": "pool-0", "serves.argosy.dev/embedder": "true"}
    conditions = [{"type": "Ready", "status": str(ready)}]
    pod = pod_view({"metadata": {**metadata, "labels": labels}, "status": {"conditions": conditions}})
    state = State(AgentState(pod="u", live=True, settled=True))
    details = (Desired("pool-0", None), state)
    objects = [Owned("1", 1, True, None, "pool", "pool-0", False, b"", detail) for detail in details]
    (report,) = pool_view(objects, [pod]).reports
    assert (report.takes_requests, report.routes) == (ready, {"embedder"})


def test_since_when_no_node_takes_a_servers_pod() -> None:
    def pod(name: str, *conditions: dict[str, str]) -> PodView:
        metadata = {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        labels = {"argosy.dev/server": "pool-0"}
        return pod_view({"metadata": {**metadata, "labels": labels}, "status": {"conditions": list(conditions)}})

    waits = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-01T00:00:07Z"}
    desired = Owned("1", 1, True, None, "pool", "pool-0", False, b"", Desired("pool-0", None))
    untimed = {**waits, "lastTransitionTime": "soon"}
    for pods, since in (([pod("a", waits)], 7), ([pod("a", waits), pod("b")], None), ([pod("a", untimed)], None)):
        (report,) = pool_view([desired], pods).reports
        assert (report.unscheduled_since.second if report.unscheduled_since else None) == since


POOL = ("n", "p")


def server_pod(version: int, routes: Collection[str] = (), uid: str = "u", **more: Any) -> dict[str, Any]:
    """Return a Pod as an API server has it; `more` goes into its metadata."""
    labels = {"argosy.dev/pool": "p", "argosy.dev/server": "p-0", **{f"serves.argosy.dev/{r}": "true" for r in routes}}
    metadata = {"namespace": "n", "name": "x", "uid": uid, "resourceVersion": str(version), "labels": labels, **more}
    return {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", **metadata}, "status": {}}


def test_what_an_answer_brings_of_a_pod_is_reported_unless_we_wrote_it() -> None:
    reported: list[PoolLabel] = []
    pods = PodCache(reported.append)
    pods.update(server_pod(1))
    reported.clear()
    pods.patched(server_pod(2, ["m"]))
    assert reported == []
    pods.patched(server_pod(4, ["m", "n"], deletionTimestamp="2026-01-01T00:00:00Z"))
    assert reported == [POOL]
    pods.update(server_pod(3, ["m"], deletionTimestamp="2026-01-01T00:00:00Z"))
    assert [(pod.routes, pod.terminating) for pod in pods.of_pool(POOL)] == [({"m", "n"}, True)]


def test_an_answer_of_a_pod_that_is_gone_does_not_bring_it_back() -> None:
    reported: list[PoolLabel] = []
    pods = PodCache(reported.append)
    pods.patched(server_pod(1))
    assert pods.of_pool(POOL) == []
    pods.update(server_pod(5, uid="new"))
    reported.clear()
    pods.patched(server_pod(4, ["m"], uid="old"))
    assert [pod.uid for pod in pods.of_pool(POOL)] == ["new"]
    assert reported == []


OURS, OTHER = Owner("ServingPool", "pool", "1"), Owner("ServingPool", "pool", "2")


@pytest.mark.parametrize(
    ("managed", "owner", "desired", "words"),
    [
        (True, OURS, OURS, ""),
        (False, OURS, OURS, ""),
        (True, None, OURS, ""),
        (True, OTHER, OURS, "belongs to ServingPool pool"),
        (False, None, OURS, "is not Argosy's (it has no label app.kubernetes.io/managed-by=argosy)"),
    ],
)
def test_whose_an_object_is(managed: bool, owner: Owner | None, desired: Owner | None, words: str) -> None:
    assert why_not_ours(managed, owner, desired) == words
