"""One build on this machine, over its tries: its folder, its process, what it says of itself."""

import shutil
from pathlib import Path

from argosy.local.process import LocalProcess, stop
from argosy.planning.builds.observed import JobState, ObservedBuild
from argosy.planning.builds.plan import PlannedBuild
from argosy_agent.contract.builddocuments import parse_report, request_text
from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildState
from argosy_agent.contract.fields import DocumentError
from argosy_agent.jsonfiles import read_json, write_json, write_text
from argosy_agent.transfer.localfiles import is_file, local_path

from .command import LOG, PROGRAM, BuilderCommand
from .inputs import state_of

TRIES = 4
"""How often a builder is started that ends without a last word."""
BACKOFF_FIRST_S = 1.0
END_TIMEOUT_S = 15.0
"""How long a builder may take to end when it is told to."""
OVERDUE_S = 60.0
"""How long after its own timeout a builder that hangs is killed."""


class LocalBuild:
    """A build by its folder. Times are seconds of one steady clock.

    `was_started`: whether a builder was, by this object. A READY report in the folder is an earlier `argosy up`'s and
    goes on counting; one that is not READY does not: a new start is a new try.
    """

    def __init__(self, planned: PlannedBuild, folder: Path, program: tuple[str, ...] = PROGRAM) -> None:
        self.planned, self._folder, self._program = planned, folder, program
        self._process: LocalProcess | None = None
        self._started = self._start_at = 0.0
        self._tries = 0
        self.was_started = False
        self._failure: BuildFailure | None = None
        self._trouble = ""
        folder.mkdir(parents=True, exist_ok=True)
        self._end_left()
        self._report = self._read()
        if self._report is None or self._report.state is not BuildState.READY:
            self._forget()

    @property
    def is_running(self) -> bool:
        """Whether a builder runs."""
        return self._process is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.observed.is_over

    @property
    def report(self) -> BuildReport | None:
        """What it says of itself; None before the first word."""
        return self._report

    @property
    def observed(self) -> ObservedBuild:
        """As the plan sees it."""
        return ObservedBuild(
            self.planned.name,
            self._report,
            self._job(),
            self.planned.node,
            self.planned.gpus if self.is_running else (),
            self._trouble,
            self._failure,
        )

    def may_start(self, now: float) -> bool:
        """Return whether it is to run, and does not."""
        return self.planned.start and not self.is_over and not self.is_running and now >= self._start_at

    def start(self, devices: tuple[str, ...], now: float) -> None:
        """Start its builder. Raises OSError."""
        folder, request = self._folder, self.planned.request
        if not self._tries:
            (folder / LOG).unlink(missing_ok=True)
        (folder / "report.json").unlink(missing_ok=True)
        write_text(folder / "request.json", request_text(request))
        write_json(folder / "inputs.json", {"state": state_of(request)})
        command = BuilderCommand(folder, self.planned.timeout / 1000, devices, self._program)
        self._process, self._started, self._trouble = LocalProcess.start(command, folder, LOG), now, ""
        self.was_started = True

    def look(self, now: float) -> None:
        """Take note of what became of it, and of files that changed under it. Blocks for a moment at most."""
        if self._process is None:
            if (self._report is not None or self._failure is not None) and self._is_stale():
                self._forget()
            return
        overdue = self.planned.timeout and now - self._started > self.planned.timeout / 1000 + OVERDUE_S
        if self._process.alive and not overdue:
            report = self._read()
            if report is not None and not report.is_final:  # the last word counts once the builder is gone
                self._report = report
            return
        self._process.end()
        self._ended(self._process, now, bool(overdue))
        self._process = None

    def stop(self) -> None:
        """End its builder, and remove what it had half-written; what was finished stays for another try. Blocks."""
        if self._process is not None:
            stop(self._process, END_TIMEOUT_S)
            self._process = None
        for partial in self._folder.glob("workspace/**/*.partial"):
            shutil.rmtree(partial, ignore_errors=True)

    def kill(self) -> None:
        """End its builder at once."""
        if self._process is not None:
            self._process.kill()

    def remove(self) -> None:
        """End it and remove its folder: nobody asks for it any more. Blocks."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def has_changed_inputs(self) -> bool:
        """Whether files changed while its builder reads them."""
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
        said = self._report.message if self._report is not None else ""
        words = said or f"its last words, in {self._folder / LOG}: {self._last_words()}"
        self._trouble = f"the builder {'hung' if overdue else process.how_it_ended()}; {words}"
        if overdue or self._tries >= TRIES:
            told = self._report.failure if self._report is not None else None
            self._failure = BuildFailure.DEADLINE_EXCEEDED if overdue else told or _failure(process)
            return
        wait = BACKOFF_FIRST_S * 2 ** (self._tries - 1)
        self._start_at = now + wait
        self._trouble += f"; it starts again in {wait:.0f} s ({self._tries} of {TRIES} tries)"

    def _is_stale(self) -> bool:
        """Whether the report is of other files than are there now, or its engine is gone."""
        now, then = state_of(self.planned.request), (read_json(self._folder / "inputs.json") or {}).get("state", "")
        uri = self._report.uri if self._report is not None else ""
        return bool(now and now != then) or bool(uri and is_file(uri) and not local_path(uri).exists())

    def _forget(self) -> None:
        """Begin anew: what was said is of no use."""
        (self._folder / "report.json").unlink(missing_ok=True)
        self._report, self._failure, self._trouble = None, None, ""
        self._tries, self._start_at = 0, 0.0

    def begin_anew(self) -> None:
        """End its builder and forget what it said. Blocks."""
        self.stop()
        self._forget()

    def _read(self) -> BuildReport | None:
        try:
            return parse_report((self._folder / "report.json").read_text())
        except (OSError, DocumentError, UnicodeDecodeError):
            return None

    def _end_left(self) -> None:
        """A builder that a killed `argosy up` left: what it finished is gone on from."""
        end_left(self._folder)

    def _last_words(self) -> str:
        try:
            lines = (self._folder / LOG).read_text(errors="replace").splitlines()
        except OSError:
            return "nothing"
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


def end_left(folder: Path) -> None:
    """End the builder that runs in a folder, if one does. Blocks."""
    left = LocalProcess.left(folder)
    if left is not None:
        stop(left, END_TIMEOUT_S)


def _failure(process: LocalProcess) -> BuildFailure:
    code = process.exit_code
    return BuildFailure.CRASHED if code is not None and code < 0 else BuildFailure.BUILD_FAILED
