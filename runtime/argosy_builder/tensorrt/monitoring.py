"""The progress of a build, from TensorRT's nested phases."""

import threading
from collections.abc import Callable
from typing import Any

from argosy_runtime.backends.tensorrt.library import trt


class Course:
    """Nested phases, each with a number of steps. Pure.

    A phase's share is that of its parent's current step; the outermost ones follow one another.
    """

    def __init__(self) -> None:
        self._phases: dict[str, tuple[str | None, int, int]] = {}

    def start(self, name: str, parent: str | None, steps: int) -> None:
        """Begin a phase."""
        self._phases[name] = (parent, max(steps, 1), 0)

    def step(self, name: str, step: int) -> None:
        """End step `step`, counted from 0."""
        parent, steps, _ = self._phases.get(name, (None, 1, 0))
        self._phases[name] = (parent, steps, min(step + 1, steps))

    def finish(self, name: str) -> None:
        """End a phase."""
        self._phases.pop(name, None)

    def percent(self) -> int:
        """Return the percent of the outermost phase that has not ended."""
        outermost = [name for name, (parent, _, _) in self._phases.items() if parent not in self._phases]
        return int(100 * max(map(self._share, outermost), default=0.0))

    def _share(self, name: str) -> float:
        _, steps, done = self._phases[name]
        inner = [phase for phase, (parent, _, _) in self._phases.items() if parent == name]
        within = max(map(self._share, inner), default=0.0)
        return min((done + within) / steps, 1.0)


class Monitor(trt.IProgressMonitor):  # type: ignore[misc]  # TensorRT has no types
    """Tells `progress` of percents that only grow. Called by TensorRT, from several threads."""

    def __init__(self, progress: Callable[[int, str], None]) -> None:
        trt.IProgressMonitor.__init__(self)
        self._progress = progress
        self._course = Course()
        self._lock = threading.Lock()
        self._reported = 0
        self.cancelled = threading.Event()

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Begin a phase of TensorRT's."""
        with self._lock:
            self._course.start(phase_name, parent_phase, num_steps)
            self._report(phase_name)

    def step_complete(self, phase_name: str, step: int) -> bool:
        """End a step of TensorRT's; return False to cancel the build."""
        with self._lock:
            self._course.step(phase_name, step)
            self._report(phase_name)
        return not self.cancelled.is_set()

    def phase_finish(self, phase_name: str) -> None:
        """End a phase of TensorRT's."""
        with self._lock:
            self._course.finish(phase_name)

    def _report(self, line: Any) -> None:
        self._reported = max(self._reported, min(self._course.percent(), 99))
        self._progress(self._reported, str(line))


__all__ = ["Course", "Monitor"]
