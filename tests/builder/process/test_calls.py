"""Python functions in processes of their own."""

import os
import signal
from pathlib import Path

import pytest

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_builder.process import call

MODULE = "called_functions"

SOURCE = """
import os, signal
from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

def add(one, other, progress):
    progress(-1, "adding")
    progress(50, "half")
    return {"sum": one + other}

def refuse():
    raise BuildError(BuildFailure.MODEL_INVALID, "the file is cut off", passes=True)

def crash():
    os.kill(os.getpid(), signal.SIGSEGV)

def fill():
    open("/dev/full", "w", 1).write("x\\n")

def err():
    raise ValueError("no node called x")
"""


@pytest.fixture(autouse=True)
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


def test_arguments_go_and_the_value_and_progress_come() -> None:
    progress: list[tuple[int, str]] = []

    value = call(f"{MODULE}:add", {"one": 1, "other": 2}, lambda percent, line: progress.append((percent, line)))

    assert value == {"sum": 3}
    assert progress == [(-1, "adding"), (50, "half")]


@pytest.mark.parametrize(
    ("function", "failure", "says"),
    [
        ("refuse", BuildFailure.MODEL_INVALID, "^the file is cut off$"),
        ("crash", BuildFailure.CRASHED, signal.SIGSEGV.name),
        ("fill", BuildFailure.DISK_FULL, "more room"),
        ("err", BuildFailure.BUILD_FAILED, "err failed .*ValueError: no node called x"),
    ],
)
def test_what_it_raises_comes_too(function: str, failure: BuildFailure, says: str) -> None:
    with pytest.raises(BuildError, match=says) as raised:
        call(f"{MODULE}:{function}", {}, lambda percent, line: None)

    assert raised.value.failure is failure
    assert raised.value.passes is (function == "refuse")
