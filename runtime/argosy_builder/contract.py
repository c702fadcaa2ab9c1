"""The port of builders: how the frame asks for an engine, phase by phase, and what a builder raises.

A builder is a sub-package with an object `BUILDER` of the type `Builder`, and a row in `registry`. Everything here is
called in the build's own process; work that may crash, hang or fill the memory goes into a child (`process`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from argosy_agent.contract.builds import BuildFailure, BuildRequest, ModelShape

Array = NDArray[Any]
Progress = Callable[[int, str], None]
"""Told of (percent of the phase, the tool's last line); -1 percent where only the line is new."""


class BuildError(Exception):
    """The build failed. The message names the field and what to do.

    `passes`: another try may succeed with nothing changed (a store that does not answer), so the Job tries again.
    """

    def __init__(self, failure: BuildFailure, message: str, *, passes: bool = False) -> None:
        super().__init__(message)
        self.failure, self.message, self.passes = failure, message, passes

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_error, (self.failure, self.message, self.passes)


def _build_error(failure: BuildFailure, message: str, passes: bool) -> BuildError:
    return BuildError(failure, message, passes=passes)


def _silent(percent: int, line: str) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class BuildJob:
    """One engine to build: the request, and the folders with its files.

    `calibration`: None if the request has no data. `shared`: a folder that successive builds of one compiler and
    architecture share; None if there is none.
    """

    request: BuildRequest
    model: Path
    calibration: Path | None = None
    progress: Progress = field(default=_silent, compare=False)
    shared: Path | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of one phase: `out` is its own, empty at first; `finished` are the earlier phases' by name."""

    out: Path
    finished: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Phase:
    """A step that is not repeated once it is finished, in this process or a later one.

    `weight` is its share of the time, relative to the other phases'. `run` leaves its output in `Workspace.out` and
    nothing elsewhere; the last phase's output is the engine. Raises BuildError.
    """

    name: str
    weight: int
    run: Callable[[Workspace], None]


class Runner(Protocol):
    """A model or an engine that answers samples, for the gate."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the outputs by name, of inputs by name with the batch as first axis (if the model has one).

        Raises BuildError.
        """


class Builder(Protocol):
    """A compiler of engines."""

    @property
    def name(self) -> str:
        """As `spec.engine.builder` says it."""

    def compiler(self) -> str:
        """Return name and version of what decides the engine's files, as `onnxruntime 1.31.1`.

        Raises BuildError: BUILDER_MISSING.
        """

    def phases(self, job: BuildJob) -> Sequence[Phase]:
        """Return the steps, in order. Raises BuildError where the options or the model cannot lead to an engine."""

    def check(self, job: BuildJob, folder: Path) -> None:
        """Compare the finished engine with the request. Raises BuildError: ENGINE_DIFFERS."""

    def shape(self, job: BuildJob) -> ModelShape | None:
        """Return a language model's sizes; None where the model has none."""

    def runner(self, folder: Path, request: BuildRequest) -> AbstractContextManager[Runner]:
        """Open the model's files or the engine's, whichever the folder holds. Raises BuildError."""


__all__ = ["Array", "BuildError", "BuildJob", "Builder", "Phase", "Progress", "Runner", "Workspace"]
