"""One build on this machine over its tries: its folder, its process, its report."""

import shutil
from pathlib import Path

from argosy.local.process import LocalProcess, last_line, stop
from argosy.planning.builds.build import JobState, ObservedBuild, ScheduledBuild
from argosy_agent.contract.builddocuments import parse_report, request_text
from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildState
from argosy_agent.contract.fields import DocumentError
from argosy_agent.jsonfiles import read_json, write_json, write_text
from argosy_agent.transfer.localfiles import is_file, local_path

from .command import LOG, PROGRAM, BuilderCommand, inputs_digest

TRIES = 4
"""How often a builder is started whose process ends without a final report."""
BACKOFF_FIRST_S = 1.0
END_TIMEOUT_S = 15.0
"""Seconds from SIGTERM to SIGKILL."""
OVERDUE_S = 60.0
"""Seconds after its own timeout at which a hanging builder is killed."""


class LocalBuild:
    """A build and its folder. Times are seconds of a monotonic clock.

    `was_started` says whether this object started a builder. A READY report that an earlier `argosy up` left in the
    folder still holds; any other report is removed, so that the build is tried again.
    """

    def __init__(self, planned: ScheduledBuild, folder: Path, program: tuple[str, ...] = PROGRAM) -> None:
        self.planned, self._folder, self._program = planned, folder, program
        self._process: LocalProcess | None = None
        self._started = self._start_at = 0.0
        self._tries = 0
        self.was_started = False
        self._failure: BuildFailure | None = None
        self._error = ""
        folder.mkdir(parents=True, exist_ok=True)
        end_left(folder)
        self._report = self._read()
        if self._report is None or self._report.state is not BuildState.READY:
            self._reset()

    @property
    def is_running(self) -> bool:
        """Whether a builder runs."""
        return self._process is not None

    @property
    def is_over(self) -> bool:
        """Whether it has succeeded or failed for good."""
        return self.observed.is_over

    @property
    def report(self) -> BuildReport | None:
        """The builder's report; None before the first one."""
        return self._report

    @property
    def observed(self) -> ObservedBuild:
        """The build as `schedule_builds` sees it."""
        return ObservedBuild(
            self.planned.name,
            self._report,
            self._job(),
            self.planned.node,
            self.planned.gpus if self.is_running else (),
            self._error,
            self._failure,
        )

    def may_start(self, now: float) -> bool:
        """Return whether its builder is due to start."""
        return self.planned.start and not self.is_over and not self.is_running and now >= self._start_at

    def start(self, devices: tuple[str, ...], now: float) -> None:
        """Start its builder. Raises OSError."""
        folder, request = self._folder, self.planned.request
        if not self._tries:
            (folder / LOG).unlink(missing_ok=True)
        (folder / "report.json").unlink(missing_ok=True)
        write_text(folder / "request.json", request_text(request))
        write_json(folder / "inputs.json", {"state": inputs_digest(request)})
        command = BuilderCommand(folder, self.planned.timeout / 1000, devices, self._program)
        self._process, self._started, self._error = LocalProcess.start(command, folder, LOG), now, ""
        self.was_started = True

    def look(self, now: float) -> None:
        """Read its report, note the end of its process, and discard a stale report. Blocks shortly."""
        if self._process is None:
            if (self._report is not None or self._failure is not None) and self._is_stale():
                self._reset()
            return
        overdue = self.planned.timeout and now - self._started > self.planned.timeout / 1000 + OVERDUE_S
        if self._process.alive and not overdue:
            report = self._read()
            if report is not None and not report.is_final:  # a final report counts once the process has ended
                self._report = report
            return
        self._process.end()
        self._ended(self._process, now, bool(overdue))
        self._process = None

    def stop(self) -> None:
        """Stop its builder and remove partial files. Finished phases stay for another try. Blocks."""
        if self._process is not None:
            stop(self._process, END_TIMEOUT_S)
            self._process = None
        for partial in self._folder.glob("workspace/**/*.partial"):
            shutil.rmtree(partial, ignore_errors=True)

    def kill(self) -> None:
        """Kill its builder."""
        if self._process is not None:
            self._process.kill()

    def remove(self) -> None:
        """Stop it and remove its folder. Blocks."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def has_changed_inputs(self) -> bool:
        """Whether input files changed while its builder runs."""
        return self.is_running and self._is_stale()

    def _job(self) -> JobState:
        if self._failure is not None:
            return JobState.FAILED
        if self.is_running or self._tries:
            return JobState.ACTIVE
        return JobState.COMPLETE if self._report is not None and self._report.is_final else JobState.ABSENT

    def _ended(self, process: LocalProcess, now: float, overdue: bool) -> None:
        self._report = self._read() or self._report
        if self._report is not None and self._report.is_final:
            shutil.rmtree(self._folder / "workspace", ignore_errors=True)
            return
        self._tries += 1
        log = self._folder / LOG
        reported = self._report.message if self._report is not None else ""
        details = reported or f"its last words, in {log}: {last_line(log)}"
        self._error = f"the builder {'hung' if overdue else process.how_it_ended()}; {details}"
        if overdue or self._tries >= TRIES:
            failure = self._report.failure if self._report is not None else None
            self._failure = BuildFailure.DEADLINE_EXCEEDED if overdue else failure or _failure(process)
            return
        wait = BACKOFF_FIRST_S * 2 ** (self._tries - 1)
        self._start_at = now + wait
        self._error += f"; it starts again in {wait:.0f} s ({self._tries} of {TRIES} tries)"

    def _is_stale(self) -> bool:
        """Return whether input files changed since the builder started, or the engine is gone."""
        now, then = (
            inputs_digest(self.planned.request),
            (read_json(self._folder / "inputs.json") or {}).get("state", ""),
        )
        uri = self._report.uri if self._report is not None else ""
        return bool(now and now != then) or bool(uri and is_file(uri) and not local_path(uri).exists())

    def _reset(self) -> None:
        """Discard the report and the tries."""
        (self._folder / "report.json").unlink(missing_ok=True)
        self._report, self._failure, self._error = None, None, ""
        self._tries, self._start_at = 0, 0.0

    def restart(self) -> None:
        """Stop its builder and discard its report. Blocks."""
        self.stop()
        self._reset()

    def _read(self) -> BuildReport | None:
        try:
            return parse_report((self._folder / "report.json").read_text())
        except (OSError, DocumentError, UnicodeDecodeError):
            return None


def end_left(folder: Path) -> None:
    """Stop the builder that an earlier `argosy up` left running in a folder, if there is one. Blocks."""
    left = LocalProcess.left(folder)
    if left is not None:
        stop(left, END_TIMEOUT_S)


def _failure(process: LocalProcess) -> BuildFailure:
    code = process.exit_code
    return BuildFailure.CRASHED if code is not None and code < 0 else BuildFailure.BUILD_FAILED
