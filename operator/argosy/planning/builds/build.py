"""One build: what is observed of it, by its Job and its report, and the decision whether it runs now."""

from dataclasses import dataclass
from enum import StrEnum

from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildRequest, BuildState


class JobState(StrEnum):
    """What became of a build's Job (of its process, on a laptop)."""

    ABSENT = "Absent"
    ACTIVE = "Active"
    COMPLETE = "Complete"
    FAILED = "Failed"


_OF_JOBS = {
    JobState.ABSENT: BuildState.PENDING,
    JobState.ACTIVE: BuildState.BUILDING,
    JobState.COMPLETE: BuildState.PENDING,
    JobState.FAILED: BuildState.FAILED,
}
"""The state of a build without a final report, by its Job. A complete one without a report is built again."""


@dataclass(frozen=True, slots=True)
class ObservedBuild:
    """The observed state of one build, by `BuildRequest.name`. A final `report` counts more than the Job's state.

    `node` and `gpus`: those planned for it. `withheld`: the snapshot's nodes show these GPUs as withheld, because its
    Pod already holds them. `error`: the reason why it does not run, in words. `failure` and `error` have the reason of
    a Job that FAILED without a report.
    """

    name: str
    report: BuildReport | None = None
    job: JobState = JobState.ABSENT
    node: str = ""
    gpus: tuple[int, ...] = ()
    error: str = ""
    failure: BuildFailure | None = None
    withheld: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in (BuildState.READY, BuildState.FAILED)

    @property
    def state(self) -> BuildState:
        """Where it is, by its report and its Job together."""
        if self.report is not None and self.report.is_final:
            return self.report.state
        if self.job is JobState.ACTIVE and self.report is not None and self.report.state is BuildState.VERIFYING:
            return BuildState.VERIFYING
        return _OF_JOBS[self.job]


@dataclass(frozen=True, slots=True)
class ScheduledBuild:
    """One requested build, with the decision whether it runs now.

    `start`: its Job should exist, on `node` with the GPUs of these indexes (in a cluster only their number counts). A
    build for a CPU has no GPUs, and no node if any node of its architecture will do. A finished build does not start,
    and neither does one that waits; `waits` has the reason in words. `timeout` is in milliseconds; `memory` is its
    request in bytes, if any. `owners`: identities of the models that request it.
    """

    request: BuildRequest
    owners: tuple[str, ...]
    timeout: int
    memory: int | None = None
    start: bool = False
    node: str = ""
    gpus: tuple[int, ...] = ()
    waits: str = ""
    is_over: bool = False

    @property
    def name(self) -> str:
        """What names its Job and its report."""
        return self.request.name

    @property
    def image(self) -> str:
        """The image that it runs in."""
        return self.request.compiler
