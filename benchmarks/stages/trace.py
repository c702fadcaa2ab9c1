"""A clock that always runs for exactly one stage."""

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, Final

STAGES: Final = (
    "none of the server's",
    "front end: bytes to request",
    "data plane: find, admit, queue",
    "frame out: batch to bytes",
    "model's process: bytes to requests",
    "model's process: execute",
    "model's process: responses to bytes",
    "frame in: bytes to responses",
    "data plane: next batch, statistics, delivery",
    "front end: response to bytes",
)
OWN, FRONT_IN, SUBMIT, FRAME_OUT, MODEL_IN, EXECUTE, MODEL_OUT, FRAME_IN, ANSWERED, FRONT_OUT = range(len(STAGES))
_VISITS: Final = 2000


class Trace:
    """Nanoseconds and visits by stage. `OWN` is what plays the clients and the kernel, and is not reported."""

    def __init__(self) -> None:
        self._stage = OWN
        self._since = perf_counter_ns()
        self.reset()

    def reset(self) -> None:
        """Forget all times and visits."""
        self._spent = [0] * len(STAGES)
        self._visits = [0] * len(STAGES)

    def enter(self, stage: int) -> int:
        """Let the clock run for this stage from now on; return the stage for which it ran."""
        now = perf_counter_ns()
        left = self._stage
        self._spent[left] += now - self._since
        self._visits[stage] += 1
        self._stage = stage
        self._since = now
        return left

    def microseconds(self, requests: int, visit_ns: float) -> list[float]:
        """Return the time of each of the server's stages for one of so many requests, without the cost of visiting."""
        pairs = list(zip(self._spent, self._visits, strict=True))[FRONT_IN:]
        return [max(0.0, spent - visits * visit_ns) / requests / 1000 for spent, visits in pairs]

    def visit_ns(self) -> float:
        """Return the cost of visiting a stage that does nothing: what is called in it, and the clock."""
        crossing = Crossing(self, FRONT_IN, _nothing)
        self.reset()
        for _ in range(_VISITS):
            crossing(self)
        return self._spent[FRONT_IN] / self._visits[FRONT_IN]


class Crossing:
    """Something callable that belongs to a stage."""

    __slots__ = ("_call", "_stage", "_trace")

    def __init__(self, trace: Trace, stage: int, call: Callable[..., Any]) -> None:
        self._trace = trace
        self._stage = stage
        self._call = call

    def __call__(self, *arguments: object) -> Any:
        outer = self._trace.enter(self._stage)
        returned = self._call(*arguments)
        self._trace.enter(outer)
        return returned


def least(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the least of all repeats for each stage: what was not disturbed."""
    return [min(column) for column in zip(*rows, strict=True)]


def _nothing(_: object) -> None:
    """Do nothing."""
