"""Builds as a cluster shows them: why they fail in words, and on a real API server the life of a Job."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from e2e.cluster import Cluster
from tests.operator.cluster.harness import IMAGES, Declared, Requests, Watched, named, objects_of, until, watching

from argosy.cluster.cache.builds.build_failure import image_failure, pod_end
from argosy.cluster.cache.builds.build_objects import BuildPod, Reported, of_build_pod, of_job, of_report
from argosy.cluster.cache.builds.build_view import build_views
from argosy.cluster.client.connection import Connection
from argosy.planning.builds.build import JobState, ScheduledBuild
from argosy.render.names import build_name, report_name
from argosy.render.workloads import Cluster as Offered
from argosy.render.workloads import KubernetesObject, build_configmaps, build_job, build_rights
from argosy_agent.contract.builddocuments import REPORT_KEY, report_text
from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildRequest, BuildState, DataSource

REQUEST = BuildRequest("onnxruntime", "amd64", "argosy-runtime:1", "s3://engines", DataSource("s3://models/one"))
BUILD = ScheduledBuild(REQUEST, ("InferenceModel n/embedder",), 60_000, start=True)
NAME = BUILD.name


def ended(code: int, phase: str = "Failed", **terminated: Any) -> dict[str, Any]:
    return {
        "phase": phase,
        "containerStatuses": [{"name": "build", "state": {"terminated": {"exitCode": code, **terminated}}}],
    }


def evicted(message: str) -> dict[str, Any]:
    return {"phase": "Failed", "reason": "Evicted", "message": message}


@pytest.mark.parametrize(
    ("status", "failure", "words"),
    [
        (ended(137, reason="OOMKilled"), "OutOfMemory", "exit code 137 (OOMKilled)"),
        (ended(139, reason="Error"), "Crashed", "exit code 139"),
        (ended(1, message="No module named argosy_runtime"), "BuilderMissing", "No module named argosy_runtime"),
        (ended(127, reason="StartError", message="exec: python: not found"), "BuilderMissing", "not found"),
        (ended(2, message="flag needed"), "BuildFailed", "exit code 2: flag needed"),
        (evicted("The node was low on resource: memory."), "OutOfMemory", "low on resource"),
        (evicted("Pod ephemeral local storage usage exceeds the limit"), "DiskFull", "ephemeral"),
        (evicted("The node had condition: [DiskPressure]."), "DiskFull", "DiskPressure"),
        (evicted("preempted"), "BuildFailed", "preempted"),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, "DeadlineExceeded", "DeadlineExceeded"),
    ],
)
def test_how_a_pod_failed(status: dict[str, Any], failure: str, words: str) -> None:
    end = pod_end(status)
    assert end is not None
    assert (str(end.failure), words in end.message) == (failure, True), end


def test_a_pod_that_did_not_fail_has_no_failure() -> None:
    assert pod_end(ended(0, "Succeeded")) is None
    assert pod_end({"phase": "Running"}) is None


def waiting(reason: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "build", "state": {"waiting": {"reason": reason, "message": "why"}}}]}


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName"])
def test_an_image_that_cannot_be_had(reason: str) -> None:
    assert image_failure(waiting(reason)) is BuildFailure.IMAGE_UNAVAILABLE
    assert image_failure(waiting("ContainerCreating")) is None


def pod(status: Mapping[str, Any], second: int = 0, node: str = "node-1", **metadata: Any) -> BuildPod:
    at = f"2026-01-01T00:00:{second:02}Z"
    labels = {"argosy.dev/build": NAME, "argosy.dev/builds-of": "pool"}
    own = {"uid": f"uid-{second}", "labels": labels, "creationTimestamp": at, **metadata}
    body = {"metadata": own, "spec": {"nodeName": node}}
    return of_build_pod({**body, "status": status})


def job(**condition: str) -> dict[str, Any]:
    labels = {"argosy.dev/build": NAME}
    annotations = {"argosy.dev/template": "t", "argosy.dev/placement": '{"node": "node-2", "gpus": [1]}'}
    metadata = {"name": "pool-build", "labels": labels, "annotations": annotations}
    reported = {"status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z", **condition}
    return {"metadata": metadata, "status": {"conditions": [reported]} if condition else {}}


HALF = BuildReport(BuildState.BUILDING, percent=40)


def test_a_job_whose_pod_has_no_node_yet_reserves_its_gpus() -> None:
    (view,) = build_views([of_job(job())], []).values()
    assert (view.observed.node, view.observed.gpus, view.observed.job) == ("node-2", (1,), JobState.ACTIVE)
    assert not view.observed.withheld
    (view,) = build_views([of_job(job())], [pod({"phase": "Running"})]).values()
    assert (view.observed.node, view.observed.gpus, view.observed.withheld) == ("node-1", (1,), True)
    assert view.runs
    (view,) = build_views([], [pod({"phase": "Running"}, deletionTimestamp="2026-01-01T00:00:09Z")]).values()
    assert (view.observed.job, view.runs) == (JobState.ABSENT, False)


def test_an_unavailable_image_fails_the_build_though_its_job_goes_on() -> None:
    (view,) = build_views([of_job(job())], [pod(waiting("ImagePullBackOff"))]).values()
    assert view.observed.job is JobState.FAILED
    assert view.observed.failure is BuildFailure.IMAGE_UNAVAILABLE
    assert "ImagePullBackOff: why" in view.observed.error


@pytest.mark.parametrize(
    ("condition", "pods", "report", "failure", "words"),
    [
        ({"reason": "DeadlineExceeded"}, [], HALF, "DeadlineExceeded", "spec.engine.timeout"),
        ({"reason": "BackoffLimitExceeded"}, [ended(1), ended(137, reason="OOMKilled")], HALF, "OutOfMemory", "137"),
        (
            {"reason": "BackoffLimitExceeded"},
            [ended(75)],
            replace(HALF, failure=BuildFailure.STORE_UNAVAILABLE, message="s3 does not answer"),
            "StoreUnavailable",
            "s3 does not answer",
        ),
        ({"reason": "BackoffLimitExceeded", "message": "too often"}, [], None, "BuildFailed", "too often"),
    ],
)
def test_why_a_job_failed(
    condition: dict[str, str],
    pods: Sequence[dict[str, Any]],
    report: BuildReport | None,
    failure: str,
    words: str,
) -> None:
    details: list[object] = [of_job(job(type="Failed", **condition)), Reported(NAME, report)]
    (view,) = build_views(details, [pod(status, second) for second, status in enumerate(pods)]).values()
    assert view.observed.job is JobState.FAILED
    assert (str(view.observed.failure), words in view.observed.error) == (failure, True), view


def test_what_is_tried_again_says_what_went_wrong_the_last_time() -> None:
    report = replace(HALF, failure=BuildFailure.STORE_UNAVAILABLE, message="s3 answers 403")
    details: list[object] = [of_job(job()), Reported(NAME, report)]
    (view,) = build_views(details, [pod(ended(75))]).values()
    assert view.observed.error == "StoreUnavailable: s3 answers 403; it is tried again"
    assert (view.observed.job, view.observed.failure) == (JobState.ACTIVE, None)
    (view,) = build_views(details, [pod(ended(75)), pod({"phase": "Running"}, 1)]).values()
    assert view.observed.error == ""


def test_a_report_is_reported_for_a_pod_that_is_there() -> None:
    reported = Reported(NAME, replace(HALF, pod="uid-1"))
    (view,) = build_views([reported], [pod({"phase": "Running"}, 1)]).values()
    assert not view.by_others
    (view,) = build_views([reported], [pod({"phase": "Running"}, 2)]).values()
    assert view.by_others
    (view,) = build_views([reported], [pod({"phase": "Running"}, 1, deletionTimestamp="2026-01-01T00:00:09Z")]).values()
    assert view.by_others


def test_an_unreadable_report_is_an_error() -> None:
    body = {"metadata": {"labels": {"argosy.dev/build": NAME}}, "data": {REPORT_KEY: '{"state": "Done"}'}}
    reported = of_report(body)
    assert reported is not None
    assert reported.report is None
    assert "state" in reported.error
    assert of_report({"metadata": {"labels": {"argosy.dev/server": "s"}}, "data": {REPORT_KEY: "{}"}}) is None
    (view,) = build_views([reported], []).values()
    assert "cannot be read" in view.error


def objects(declared: Declared, build: ScheduledBuild = BUILD) -> tuple[KubernetesObject, ...]:
    """Return all that a build needs, as an API server of any release takes it."""
    rights = build_rights(declared.pool, build)
    return (*build_configmaps(declared.pool, build), *rights, build_job(declared.pool, build, IMAGES, Offered()))


def jobs(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = cluster.read("jobs", "-n", namespace)["items"]
    return result


async def test_a_builds_objects_are_made_retained_and_taken_down(
    connection: Connection, cluster: Cluster, declared: Declared, requests: Requests, namespace: str
) -> None:
    mine = build_name("pool", NAME)
    async with watching(connection, namespace) as watched:
        assert await declared.apply(watched, objects(declared)) == ()
        assert objects_of(cluster, namespace) == named(objects(declared)) - {f"Job {mine}"}
        (made,) = jobs(cluster, namespace)
        await until("the Pod", lambda: bool(cluster.read("pods", "-n", namespace)["items"]))
        await watched.until_idle()

        requests.seen.clear()
        assert await declared.apply(watched, objects(declared)) == ()
        assert requests.seen == []

        view = watched.cache.pool(declared.key).builds[NAME]
        assert view.observed.job is JobState.ACTIVE
        assert watched.cache.pool(declared.key).pods == ()

        longer = objects(declared, replace(BUILD, timeout=120_000))
        assert await declared.apply(watched, longer) == ()
        assert jobs(cluster, namespace)[0]["spec"]["activeDeadlineSeconds"] == 120

        (refusal,) = await declared.apply(watched, objects(declared, replace(BUILD, memory=2**30)))
        assert refusal.object == f"Job {namespace}/{mine}"
        assert "immutable" in refusal.message

        await declared.apply(watched, longer[:-1], f"Job {namespace}/{mine}")
        assert [job["metadata"]["uid"] for job in jobs(cluster, namespace)] == [made["metadata"]["uid"]]
        await declared.apply(watched, ())
        await until("nothing of ours", lambda: not objects_of(cluster, namespace) and not jobs(cluster, namespace))
        await until("its Pods' end", lambda: not cluster.read("pods", "-n", namespace)["items"])


async def test_a_job_that_is_deleted_by_hand_is_noticed_and_recreated(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, objects(declared))
        (made,) = jobs(cluster, namespace)
        await watched.until_idle()
        cluster.kubectl("delete", "job", "--all", "-n", namespace)
        await until("the change noticed", lambda: declared.key in watched.changes)
        await until("no Job known", lambda: not has_job(watched, declared))
        assert await declared.apply(watched, objects(declared)) == ()
        (again,) = jobs(cluster, namespace)
        assert again["metadata"]["uid"] != made["metadata"]["uid"]


def has_job(watched: Watched, declared: Declared) -> bool:
    view = watched.cache.pool(declared.key).builds.get(NAME)
    return view is not None and view.job is not None


async def test_what_the_build_reports_is_heard_of_and_never_taken_away(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    report = BuildReport(BuildState.READY, uri="s3://engines/1", digest="sha256:1", size=9)
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, objects(declared))
        await watched.until_idle()
        patch = json.dumps({"data": {REPORT_KEY: report_text(report)}})
        cluster.kubectl(
            "-n", namespace, "patch", "configmap", report_name(build_name("pool", NAME)), "--type=merge", "-p", patch
        )
        await until("the change noticed", lambda: declared.key in watched.changes)
        await until("the report", lambda: reported(watched, declared) == report)
        await declared.apply(watched, objects(declared))
        assert reported(watched, declared) == report


def reported(watched: Watched, declared: Declared) -> BuildReport | None:
    return watched.cache.pool(declared.key).builds[NAME].report


async def test_a_job_is_not_made_while_something_that_it_needs_is_refused(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    mine = build_name("pool", NAME)
    cluster.kubectl("-n", namespace, "create", "configmap", mine)
    async with watching(connection, namespace) as watched:
        (refusal,) = await declared.apply(watched, objects(declared))
        assert refusal.object == f"ConfigMap {namespace}/{mine}"
        assert jobs(cluster, namespace) == []
        cluster.kubectl("-n", namespace, "delete", "configmap", mine)
        await until("the way is free", lambda: watched.cache.indexer("ConfigMap").get((namespace, mine)) is None)
        assert await declared.apply(watched, objects(declared)) == ()
        assert len(jobs(cluster, namespace)) == 1
