"""The state of one build, from its Job, Pods and report. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.cluster.cache.builds.build_objects import BuildJob, BuildPod, Reported
from argosy.planning.builds.build import JobState, ObservedBuild
from argosy.render.workloads import has_claim
from argosy_agent.contract.builds import BuildFailure, BuildReport

_DEADLINE = "DeadlineExceeded"
"""Kubernetes' reason of a Job that exceeded its `activeDeadlineSeconds`."""


@dataclass(frozen=True, slots=True)
class BuildView:
    """One build, by its request's name.

    `runs`: one of its Pods runs; `node`: the newest Pod's, empty before it is scheduled. `last_code`: the exit code of
    the newest failed Pod; None without one. `by_others`: the report is not by one of its current Pods.
    """

    name: str
    report: BuildReport | None = None
    job: BuildJob | None = None
    runs: bool = False
    last_code: int | None = None
    by_others: bool = False
    node: str = ""
    error: str = ""
    failure: BuildFailure | None = None

    @property
    def observed(self) -> ObservedBuild:
        """The input of planning. An active Job whose image cannot be pulled counts as failed."""
        if self.job is None:
            return ObservedBuild(self.name, self.report)
        failed = self.job.state is JobState.ACTIVE and self.failure is not None
        state = JobState.FAILED if failed else self.job.state
        return ObservedBuild(
            name=self.name,
            report=self.report,
            job=state,
            node=self.node or self.job.node,
            gpus=self.job.gpus,
            # The GPU usage of all Pods includes this one's, but for devices that it has by a ResourceClaim.
            withheld=bool(self.node) and not has_claim(self.job.gpus),
            error=self.error,
            failure=self.failure,
        )


@dataclass(slots=True)
class _Parts:
    job: BuildJob | None = None
    reported: Reported | None = None
    pods: list[BuildPod] = field(default_factory=list)


def build_views(details: Iterable[object], pods: Iterable[BuildPod]) -> Mapping[str, BuildView]:
    """Return the builds of a pool, by name, from the details of its objects and of its builds' Pods."""
    builds: dict[str, _Parts] = {}
    for detail in details:
        match detail:
            case Reported():
                builds.setdefault(detail.build, _Parts()).reported = detail
            case BuildJob():
                builds.setdefault(detail.build, _Parts()).job = detail
    for pod in pods:
        builds.setdefault(pod.build, _Parts()).pods.append(pod)
    return {name: _view(name, parts) for name, parts in builds.items() if name}


def _view(name: str, parts: _Parts) -> BuildView:
    pods = sorted(parts.pods, key=lambda pod: pod.created)
    ended = [pod.ended for pod in pods if pod.ended is not None]
    newest = next((pod for pod in reversed(pods) if pod.stays), None)
    report = parts.reported.report if parts.reported else None
    failure, error = _failure(parts.job, newest, pods, report)
    return BuildView(
        name,
        report=report,
        job=parts.job,
        runs=any(pod.runs for pod in pods),
        last_code=ended[-1].code if ended else None,
        by_others=report is not None and report.pod not in {pod.uid for pod in pods if pod.stays},
        node=newest.node if newest else "",
        error=error or (parts.reported.error if parts.reported else ""),
        failure=failure,
    )


def _failure(
    job: BuildJob | None, newest: BuildPod | None, pods: list[BuildPod], report: BuildReport | None
) -> tuple[BuildFailure | None, str]:
    """Return the failure that the Job or its Pods show, if any, and an error message, empty without one."""
    error = newest.error if newest else ""
    if job is not None and job.state is JobState.FAILED:
        return _job_failure(job, pods, report)
    if newest is not None and newest.image is not None:
        return newest.image, error
    if report is not None and report.failure is not None and not (newest is not None and newest.runs):
        return None, f"{report.failure}: {report.message}; it is tried again"
    return None, error


def _job_failure(job: BuildJob, pods: list[BuildPod], report: BuildReport | None) -> tuple[BuildFailure, str]:
    if job.reason == _DEADLINE:
        return BuildFailure.DEADLINE_EXCEEDED, "it took longer than spec.engine.timeout allows; allow more"
    if report is not None and report.failure is not None:
        return report.failure, report.message
    ended = next((pod.ended for pod in reversed(pods) if pod.ended is not None), None)
    if ended is not None:
        return ended.failure, ended.message
    return BuildFailure.BUILD_FAILED, ": ".join(filter(None, (f"Job {job.name} failed", job.reason, job.message)))
