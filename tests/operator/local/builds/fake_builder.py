"""A builder for tests, with the flags of the real one: what the request's option `does` or $FAKE_BUILDER says.

It writes a report as it goes; `hold` is a file that it waits for, so that tests decide when it goes on.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from argosy_agent.contract.builddocuments import parse_request, report_text
from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildState
from argosy_agent.jsonfiles import write_text
from argosy_agent.transfer.localfiles import local_path


def main() -> int:
    """Play a build; return the exit code that a builder would have."""
    parser = argparse.ArgumentParser()
    for flag in (
        "request",
        "workspace",
        "report-file",
        "pvc-root",
        "secrets",
        "secrets-root",
        "allowed-folder",
        "timeout",
    ):
        parser.add_argument(f"--{flag}", required=True)
    flags = parser.parse_args()
    request, workspace = parse_request(Path(flags.request).read_text()), Path(flags.workspace)
    report = Path(flags.report_file)
    partial = workspace / "builds" / "key" / "quantize.partial"
    partial.mkdir(parents=True, exist_ok=True)
    (partial / "half").write_text("written")
    tries = workspace / "tries"
    tries.write_text(f"{tries.read_text() if tries.exists() else ''}{os.environ['CUDA_VISIBLE_DEVICES']}\n")
    line = f"pid {os.getpid()}"
    write_text(report, report_text(BuildReport(BuildState.BUILDING, phase="quantize", percent=40, line=line)))
    does = request.options.get("does", os.environ.get("FAKE_BUILDER"))
    if hold := request.options.get("hold"):
        while not Path(hold).exists():
            time.sleep(0.01)
    if does == "crash" or (does == "crash once" and len(tries.read_text().splitlines()) == 1):
        print("a word before the end", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if does == "fail":
        last = BuildReport(BuildState.FAILED, failure=BuildFailure.ACCURACY_TOO_LOW, message="0.5 is less than 0.9")
        write_text(report, report_text(last))
        return 3
    engine = Path(request.options.get("engine") or local_path(request.store) / "engine")
    engine.mkdir(parents=True, exist_ok=True)
    write_text(report, report_text(BuildReport(BuildState.READY, percent=100, key="k", uri=engine.as_uri(), size=5)))
    return 0


sys.exit(main())
