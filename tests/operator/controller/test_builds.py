"""The life of a build's Job: created, left alone, ended, recreated. Pure, with time as an argument."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.operator.render.workloads.build_cases import read_build_case
from tests.operator.render.workloads.cases import IMAGES

from argosy.cluster.cache.builds.build_objects import BuildJob, of_job
from argosy.cluster.cache.builds.build_view import BuildView
from argosy.controller.rendering.builds import UNREPORTED_S, BuildRenderer, Builds
from argosy.planning.builds.build import JobState, ScheduledBuild
from argosy.planning.nodes.slices import dra_index
from argosy.render.workloads import TTL_S, Cluster, build_job, object_identity
from argosy_agent.contract.builds import FINAL_EXIT_CODE, BuildFailure, BuildReport, BuildState

CASE = read_build_case("gpu")
BUILD = CASE.builds[0]
NAME = f"llm-build-{BUILD.name}"
JOB = f"Job serving/{NAME}"
RIGHTS = {f"Role serving/{NAME}", f"RoleBinding serving/{NAME}"}
MAPS = {f"ConfigMap serving/{NAME}", f"ConfigMap serving/{NAME}-report"}
POLICY = {"NetworkPolicy serving/llm-builds-487b91042c"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OVER = replace(BUILD, start=False, node="", gpus=(), is_over=True)
READY = BuildReport(BuildState.READY, uri="pvc://shared/engines/1", digest="sha256:1")
FAILED = BuildReport(BuildState.FAILED, failure=BuildFailure.CALIBRATION_MISSING, message="there is none")
HALF = BuildReport(BuildState.BUILDING, percent=40)


def rendered(
    *builds: ScheduledBuild, view: BuildView | None = None, now: datetime = NOW, cluster: Cluster = CASE.cluster
) -> Builds:
    views = {view.name: view} if view is not None else {}
    return BuildRenderer(CASE.pool, IMAGES, cluster, now).builds(builds, views)


def names(builds: Builds) -> set[str]:
    return {object_identity(item) for item in builds.objects}


def seen(build: ScheduledBuild = BUILD, ended: str = "", **more: Any) -> BuildView:
    """Return the build with its Job as created; `ended` names the condition by which it is over."""
    body = {**build_job(CASE.pool, build, IMAGES, CASE.cluster)}
    if ended:
        condition = {"type": ended, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        body["status"] = {"conditions": [condition]}
    return BuildView(build.name, job=of_job(body), **more)


def test_a_build_that_is_to_run_has_all_that_it_needs() -> None:
    builds = rendered(BUILD)
    assert names(builds) == {JOB} | RIGHTS | MAPS | POLICY
    assert object_identity(builds.objects[-1]) == JOB
    assert set(builds.owners) == names(builds) - POLICY
    assert set(builds.owners.values()) == {"InferenceModel serving/labels"}


def test_a_build_that_waits_has_no_job_and_no_rights() -> None:
    assert names(rendered(replace(BUILD, start=False, waits="no GPU is free"))) == MAPS | POLICY


def test_nothing_is_requested_so_nothing_stands() -> None:
    assert rendered(view=seen(runs=True)) == Builds()


def test_a_job_that_runs_is_applied_as_it_is() -> None:
    builds = rendered(BUILD, view=seen(runs=True, report=HALF))
    assert names(builds) == {JOB} | RIGHTS | MAPS | POLICY
    assert builds.keep == frozenset()


def test_a_job_that_no_one_wants_to_run_now_goes() -> None:
    builds = rendered(replace(BUILD, start=False, waits="its GPUs serve"), view=seen(runs=True))
    assert (names(builds), builds.keep) == (MAPS | POLICY, frozenset())


CHANGED = replace(BUILD, memory=1)


def test_a_changed_template_waits_for_the_pod_that_does_its_work() -> None:
    builds = rendered(CHANGED, view=seen(runs=True))
    assert (names(builds), builds.keep) == (MAPS | RIGHTS | POLICY, {JOB})


def test_a_changed_template_replaces_a_job_that_does_not_run() -> None:
    builds = rendered(CHANGED, view=seen(error="no node takes the Pod"))
    assert (names(builds), builds.keep) == (MAPS | POLICY, frozenset())
    assert JOB in names(rendered(CHANGED))  # once it is gone


@pytest.mark.parametrize(("ended", "report"), [("Complete", READY), ("Failed", FAILED)])
def test_a_job_that_is_over_stays_for_its_logs_and_has_no_rights(ended: str, report: BuildReport) -> None:
    view = seen(ended=ended, report=report)
    builds = rendered(OVER, view=view)
    assert (names(builds), builds.keep) == (MAPS | POLICY, {JOB})
    assert builds.wake == NOW + timedelta(seconds=TTL_S)
    overdue = rendered(OVER, view=view, now=NOW + timedelta(seconds=TTL_S))
    assert (names(overdue), overdue.keep, overdue.wake) == (MAPS | POLICY, frozenset(), None)
    assert names(rendered(OVER, view=BuildView(BUILD.name, report))) == MAPS | POLICY


def test_a_job_that_still_ends_after_its_last_report_is_left_alone() -> None:
    assert rendered(OVER, view=seen(runs=True, report=READY)).keep == {JOB}
    assert rendered(OVER, view=seen(report=FAILED)).keep == {JOB}


def test_a_job_whose_build_was_ended_by_a_pod_of_an_earlier_one_goes() -> None:
    builds = rendered(OVER, view=seen(runs=True, report=READY, by_others=True))
    assert (names(builds), builds.keep) == (MAPS | POLICY, frozenset())


def test_a_job_that_ended_well_without_a_report_is_recreated_soon() -> None:
    view = seen(ended="Complete", report=HALF)
    builds = rendered(BUILD, view=view)
    assert (builds.keep, builds.wake) == ({JOB}, NOW + timedelta(seconds=UNREPORTED_S))
    assert JOB not in names(builds)
    overdue = rendered(BUILD, view=view, now=NOW + timedelta(seconds=UNREPORTED_S))
    assert (overdue.keep, JOB in names(overdue)) == (frozenset(), False)
    assert JOB in names(rendered(BUILD, view=BuildView(BUILD.name, HALF)))


def test_a_job_that_gave_up_is_tried_again_later_or_once_something_changed() -> None:
    view = seen(ended="Failed", report=HALF, failure=BuildFailure.OUT_OF_MEMORY)
    assert rendered(OVER, view=view).keep == {JOB}
    assert rendered(OVER, view=view, now=NOW + timedelta(seconds=TTL_S)).keep == frozenset()
    assert rendered(replace(OVER, memory=2), view=view).keep == frozenset()
    assert rendered(replace(OVER, timeout=2 * OVER.timeout), view=view).keep == frozenset()


def test_a_job_without_its_image_goes_on_until_something_changes() -> None:
    view = seen(failure=BuildFailure.IMAGE_UNAVAILABLE)
    assert rendered(OVER, view=view).keep == {JOB}
    pool = CASE.pool.model_copy(deep=True)
    pool.spec.runtime.pod_template.spec["imagePullSecrets"] = [{"name": "right-key"}]
    builds = BuildRenderer(pool, IMAGES, CASE.cluster, NOW).builds((OVER,), {BUILD.name: view})
    assert builds.keep == frozenset()


def test_a_hopeless_job_is_ended_where_kubernetes_cannot_end_it() -> None:
    old = replace(CASE.cluster, judges_failures=False)
    view = seen(report=FAILED, last_code=FINAL_EXIT_CODE)
    assert rendered(OVER, view=view, cluster=old).keep == frozenset()
    assert rendered(OVER, view=view).keep == {JOB}
    again = seen(report=HALF, last_code=1)
    assert JOB in names(rendered(BUILD, view=again, cluster=old))


CLAIMED = dra_index("gpu.nvidia.com", "true", part=False)


@pytest.mark.parametrize(("gpus", "withheld"), [((0,), True), ((CLAIMED,), False)])
def test_a_build_says_itself_which_devices_of_a_resource_claim_it_has(gpus: tuple[int, ...], withheld: bool) -> None:
    job = BuildJob("b", "p-build-b", "", JobState.ACTIVE, "n", gpus)
    assert BuildView("b", job=job, node="n").observed.withheld is withheld
