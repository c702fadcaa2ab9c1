"""`python -m argosy_builder` as a Job runs it: its exit codes, its report, its end by a signal."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builder.models import perceptron

from argosy_agent.contract.builddocuments import parse_report, request_text
from argosy_agent.contract.builds import (
    FINAL_EXIT_CODE,
    BuildFailure,
    BuildReport,
    BuildRequest,
    BuildState,
    DataSource,
)
from argosy_builder.__main__ import AGAIN_EXIT_CODE

HANG = """
import os, sys, time
if os.environ.get("HANG_AT") and "argosy_builder.process.called" in " ".join(sys.orig_argv):
    if any(arg.endswith(os.environ["HANG_AT"]) for arg in sys.orig_argv):
        print("hangs", flush=True)
        time.sleep(600)
"""
"""A `sitecustomize` by which one step never ends."""


class Job:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        perceptron(folder / "model/model.onnx")
        self.request = BuildRequest(
            "onnxruntime",
            "amd64",
            "image:1",
            f"file://{folder}/store",
            DataSource(f"file://{folder}/model"),
            precision="int8",
            max_batch_size=8,
        )

    def command(self, *more: str) -> list[str]:
        (self.folder / "request.json").write_text(request_text(self.request))
        flags = {"request": "request.json", "workspace": "workspace", "report-file": "report.json"}
        paths = [f"--{flag}={self.folder / name}" for flag, name in flags.items()]
        return [sys.executable, "-m", "argosy_builder", *paths, "--pod=uid-1", "--allowed-folder=/", *more]

    def run(self, *more: str) -> tuple[int, BuildReport]:
        done = subprocess.run(self.command(*more), check=False, capture_output=True, text=True)
        print(done.stderr)
        return done.returncode, self.report

    @property
    def report(self) -> BuildReport:
        return parse_report((self.folder / "report.json").read_text())


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_build_that_is_ordered_to_end_is_taken_up_by_the_next(job: Job) -> None:
    """Killed in its last phase; the next one runs that alone."""
    (job.folder / "sitecustomize.py").write_text(HANG)
    environment = {**os.environ, "PYTHONPATH": str(job.folder), "HANG_AT": "optimizing:optimize"}
    with subprocess.Popen(job.command(), env=environment, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr is not None
        for line in first.stderr:
            if line.rstrip().endswith("hangs"):
                first.send_signal(signal.SIGTERM)
        code = first.wait()
    stopped = job.report

    code_again, ready = job.run()

    assert (code, stopped.state, stopped.phase) == (AGAIN_EXIT_CODE, BuildState.BUILDING, "optimize")
    assert "stopped by a signal" in stopped.line
    assert (code_again, ready.state, ready.pod) == (0, BuildState.READY, "uid-1")
    assert ready.compiler.startswith("onnxruntime 1.")
    assert not ready.cached


def test_what_trying_again_does_not_change(job: Job) -> None:
    job.request = replace(job.request, options={"per_chanel": True})

    code, report = job.run()

    assert (code, report.state, report.failure) == (FINAL_EXIT_CODE, BuildState.FAILED, BuildFailure.INVALID_OPTIONS)
    assert report.message == (
        "spec.engine.options.per_chanel: onnxruntime has no such option; did you mean 'per_channel'?"
    )


def test_what_another_try_may_bring(job: Job) -> None:
    job.request = replace(job.request, model=DataSource(f"file://{job.folder}/later"))

    code, report = job.run()

    assert (code, report.state, report.failure) == (
        AGAIN_EXIT_CODE,
        BuildState.BUILDING,
        BuildFailure.MODEL_UNAVAILABLE,
    )
    assert not report.is_final
    assert "spec.storageUri" in report.message


def test_a_timeout_is_final_and_names_its_field(job: Job) -> None:
    code, report = job.run("--timeout=0.001")

    assert (code, report.failure) == (FINAL_EXIT_CODE, BuildFailure.DEADLINE_EXCEEDED)
    assert "spec.engine.timeout" in report.message


@pytest.mark.parametrize("text", ["", "{}", '{"builder": 3}'])
def test_a_request_that_is_none(job: Job, text: str) -> None:
    command = job.command()
    (job.folder / "request.json").write_text(text)

    done = subprocess.run(command, check=False, capture_output=True)

    assert done.returncode == FINAL_EXIT_CODE
    assert job.report.failure is BuildFailure.INVALID_OPTIONS
