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
    """One build, by `BuildRequest.name`. A `report` that is final is the last word, whatever the Job does.

    `node` is where it runs or is to run, `gpus` are those of the node that were planned for it; `withheld`: the nodes
    of the snapshot show them as withheld, for its Pod is one of those that hold GPUs. `error` says in words why it
    does not run. `failure` and `error` say why its Job FAILED, where the build itself could not.
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
    """One build that a model requests, with the decision whether it runs. A build that is no longer requested has none.

    `start`: its Job is to stand now, on `node` with the GPUs of these indexes (in a cluster their number counts). A
    build for a CPU has no GPUs, and no node where any of the pool's of its architecture will do. One that is over does
    not start, and neither does one that `waits`, which says in words for what. `timeout` is how long it may take, in
    milliseconds, `memory` what it requests in bytes, if anything. `owners` are the identities of the models that
    request it.
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
