"""`python -m argosy_builder`: one build, its reports and its exit code."""

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builddocuments import REPORT_KEY, parse_request
from argosy_agent.contract.builds import FINAL_EXIT_CODE, BuildFailure, BuildReport, BuildState
from argosy_agent.contract.fields import DocumentError
from argosy_agent.engines.store import open_store
from argosy_agent.flags import LOG_FORMAT
from argosy_agent.sources.configmaps import ConfigMapSink
from argosy_agent.sources.files import FileSink
from argosy_agent.sources.kubernetes_api import ApiServer, ApiServerError
from argosy_agent.transfer.errors import StorageError, is_full
from argosy_agent.transfer.stores.settings import Settings

from .build import Build, BuildContext
from .contract import BuildError
from .flags import Flags, parse
from .reporter import Course, Reporter

LOG = logging.getLogger(__name__)
AGAIN_EXIT_CODE = 75
"""Another try may bring it (sysexits.h: EX_TEMPFAIL)."""
LAST_REPORT_S, LAST_REPORT_STOPPED_S = 120.0, 10.0
"""For how long the last report is tried; a Pod has half a minute after SIGTERM."""


class StoppedError(BaseException):
    """A signal ended the build: SIGTERM, SIGINT, or SIGALRM after --timeout."""


def main() -> int:
    """Run one build and return the exit code.

    0 with a READY report; FINAL_EXIT_CODE where trying again changes nothing; else AGAIN_EXIT_CODE.
    """
    flags = parse(sys.argv[1:])
    logging.basicConfig(level=flags.log.upper(), format=LOG_FORMAT)
    for chatty in ("httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        reporter = Reporter(_writer(flags))
    except ApiServerError as error:
        LOG.error("%s", error)
        return AGAIN_EXIT_CODE
    course = Course(_logged(reporter.offer), BuildReport(BuildState.PENDING, pod=flags.pod))
    within, code = LAST_REPORT_S, 0
    try:
        with _signals(flags.timeout_s):
            course.update(state=BuildState.BUILDING, phase="begin")
            _build(flags, course)
    except StoppedError as stopped:
        code, within = _stopped(stopped, flags, course), LAST_REPORT_STOPPED_S
    except BuildError as error:
        code = _failed(error, course)
    if not reporter.close(course.report, within):
        LOG.error("the last report could not be written; the next try writes it")
        return code or AGAIN_EXIT_CODE
    return code


def _build(flags: Flags, course: Course) -> None:
    """Build the engine. Raises BuildError, for bugs too."""
    try:
        request = parse_request(flags.request.read_text())
        context = BuildContext(
            workspace=flags.workspace,
            store=open_store(request.store, Settings.of_process(flags.secrets), flags.pvc_root),
            storage=Storage(
                flags.workspace / "fetched",
                pvc_root=flags.pvc_root,
                folders=flags.allowed_folders,
                secrets=flags.secrets,
                named_secrets=flags.secrets_root,
            ),
            clock=time.monotonic,
            now=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        Build(request, context, course).run()
    except BuildError:
        raise
    except DocumentError as error:
        raise BuildError(BuildFailure.INVALID_OPTIONS, f"{flags.request}: {error}") from error
    except StorageError as error:
        raise BuildError(BuildFailure.STORE_UNAVAILABLE, f"spec.storage.engineCache: {error}", passes=True) from error
    except Exception as error:
        LOG.exception("the build ends")
        if is_full(error):
            message = f"the disk of the build ({flags.workspace}) is full: give it more room ({error})"
            raise BuildError(BuildFailure.DISK_FULL, message) from error
        raise BuildError(
            BuildFailure.BUILD_FAILED, f"a fault of Argosy's own, see the Pod's log: {type(error).__name__}: {error}"
        ) from error


def _writer(flags: Flags) -> Callable[[str], None]:
    """Return the function that writes a report's text. Raises ApiServerError outside of a cluster."""
    sink: FileSink | ConfigMapSink
    if flags.report_file is not None:
        sink = FileSink(flags.report_file)
    else:
        assert flags.report_configmap is not None
        sink = ConfigMapSink(ApiServer.of_pod(flags.credentials), flags.report_configmap, REPORT_KEY)
    return lambda text: asyncio.run(sink.write(text))


def _logged(offer: Callable[[BuildReport], None]) -> Callable[[BuildReport], None]:
    """Return a function that passes reports on and logs their phases and lines."""

    def offer_logged(report: BuildReport) -> None:
        LOG.info("%3d %% %s %s %s", report.percent, report.state, report.phase, report.line)
        offer(report)

    return offer_logged


@contextmanager
def _signals(timeout_s: float) -> Iterator[None]:
    """Raise StoppedError on a signal; further ones do nothing."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)

    def stop(number: int, frame: FrameType | None) -> None:
        for handled in numbers:
            signal.signal(handled, signal.SIG_IGN)
        raise StoppedError(number)

    for number in numbers:
        signal.signal(number, stop)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _stopped(stopped: StoppedError, flags: Flags, course: Course) -> int:
    if stopped.args[0] == signal.SIGALRM:
        message = f"spec.engine.timeout: the build was not over after {flags.timeout_s:g} s, in {course.report.phase}"
        return _failed(BuildError(BuildFailure.DEADLINE_EXCEEDED, f"{message}: raise it"), course)
    phase = course.report.phase
    course.update(line=f"stopped by a signal during {phase}; another try continues after the last finished phase")
    return AGAIN_EXIT_CODE


def _failed(error: BuildError, course: Course) -> int:
    state = BuildState.BUILDING if error.passes else BuildState.FAILED
    course.update(state=state, failure=error.failure, message=error.message[:MESSAGE])
    LOG.error("%s: %s", error.failure, error.message)
    return AGAIN_EXIT_CODE if error.passes else FINAL_EXIT_CODE


MESSAGE = 4000
"""So many characters of a message go into a report."""

if __name__ == "__main__":
    sys.exit(main())
