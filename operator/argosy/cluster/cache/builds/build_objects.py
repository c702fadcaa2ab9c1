"""The cached details of a build's Job, Pods and report. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from argosy.cluster.cache.builds.build_failure import Ended, image_failure, pod_end
from argosy.cluster.cache.pods.pod_errors import pod_error
from argosy.planning.builds.build import JobState
from argosy.render.workloads import BUILD_LABEL, PLACEMENT_ANNOTATION, TEMPLATE_ANNOTATION, parse_build_placement
from argosy_agent.contract.builddocuments import REPORT_KEY, parse_report
from argosy_agent.contract.builds import BuildFailure, BuildReport
from argosy_agent.contract.fields import DocumentError

_STATES = {"Complete": JobState.COMPLETE, "Failed": JobState.FAILED}


@dataclass(frozen=True, slots=True)
class Reported:
    """A build's report ConfigMap, by its request's name. `report` is None where it is missing or invalid."""

    build: str
    report: BuildReport | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class BuildJob:
    """A build's Job: its name, its template's hash, its Pod's node and GPUs, and once it has ended when and why."""

    build: str
    name: str
    template: str
    state: JobState
    node: str = ""
    gpus: tuple[int, ...] = ()
    deadline_s: int = 0
    since: datetime | None = None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class BuildPod:
    """A Pod of a build; `stays`: it is not terminating.

    `error`: why it does not run; `image`: its image cannot be pulled; `ended`: how it failed.
    """

    uid: str
    build: str
    node: str
    created: datetime
    stays: bool
    runs: bool
    error: str = ""
    image: BuildFailure | None = None
    ended: Ended | None = None


def of_report(body: Mapping[str, Any]) -> Reported | None:
    """Return the report in a ConfigMap of a build; None for the ConfigMap of its request."""
    metadata, data = body["metadata"], body.get("data") or {}
    build = (metadata.get("labels") or {}).get(BUILD_LABEL, "")
    text = data.get(REPORT_KEY, "")
    if not build or not text:
        return None
    try:
        return Reported(build, parse_report(text))
    except DocumentError as error:
        return Reported(build, None, f"what the build reports cannot be read: {error}")


def of_job(body: Mapping[str, Any]) -> BuildJob:
    """Return the cached details of a Job."""
    metadata = body["metadata"]
    build = (metadata.get("labels") or {}).get(BUILD_LABEL, "")
    annotations = metadata.get("annotations") or {}
    node, gpus = parse_build_placement(annotations.get(PLACEMENT_ANNOTATION, ""))
    deadline_s = int((body.get("spec") or {}).get("activeDeadlineSeconds") or 0)
    template = annotations.get(TEMPLATE_ANNOTATION, "")
    job = BuildJob(build, metadata["name"], template, JobState.ACTIVE, node, gpus, deadline_s)
    for condition in (body.get("status") or {}).get("conditions") or ():
        state = _STATES.get(condition.get("type", ""))
        if state is not None and condition.get("status") == "True":
            since = datetime.fromisoformat(condition["lastTransitionTime"])
            reason, message = condition.get("reason") or "", condition.get("message") or ""
            return replace(job, state=state, since=since, reason=reason, message=message)
    return job


def of_build_pod(body: Mapping[str, Any]) -> BuildPod:
    """Return the cached details of a build's Pod."""
    metadata, status = body["metadata"], body.get("status") or {}
    stays = "deletionTimestamp" not in metadata
    return BuildPod(
        uid=metadata["uid"],
        build=(metadata.get("labels") or {}).get(BUILD_LABEL, ""),
        node=(body.get("spec") or {}).get("nodeName") or "",
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        stays=stays,
        runs=stays and status.get("phase") == "Running",
        error=pod_error(status) if stays else "",
        image=image_failure(status),
        ended=pod_end(status),
    )
