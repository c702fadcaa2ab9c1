"""The accuracy gate: an engine is measured now, or was in an earlier build."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from argosy_agent.contract.builds import AccuracyReport, BuildFailure, BuildRequest, Gate

from .accuracy import judge
from .accuracy.language import memoized
from .contract import BuildError, Progress
from .data import Purpose, Samples, read_samples
from .process import isolated


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for a gate: samples, and the script that measures (None: the metric does)."""

    gate: Gate
    samples: Samples
    script: Path | None = None

    @classmethod
    def read(cls, request: BuildRequest, gate: Gate, data: Path, script: Path | None) -> "Evidence":
        """Read the folders of the data and of the script. Raises BuildError: ACCURACY_DATA_INVALID."""
        samples = read_samples(data, request.inputs, gate.samples, Purpose.ACCURACY)
        return cls(gate, samples, None if script is None else _script(script))

    def earlier(self, reports: Iterable[AccuracyReport]) -> AccuracyReport | None:
        """Return an earlier report of the same measurement, with this gate's bounds.

        A script's result is always measured again.
        """
        if self.script is not None:
            return None
        measurement = (self.gate.metric, self.samples.digest, len(self.samples))
        for report in reports:
            if (report.metric, report.data_digest, report.samples) == measurement:
                return against(report, self.gate)
        return None

    def measured(
        self, request: BuildRequest, baseline: Path, engine: Path, now: str, progress: Progress
    ) -> AccuracyReport:
        """Measure both folders' models on the samples. Raises BuildError."""
        if not self.samples.rows and self.script is None:
            return self._read(request, baseline, engine, now, progress)
        count = len(self.samples)
        with (
            isolated(request.builder, baseline, request, "the baseline") as before,
            isolated(request.builder, engine, request, "the engine") as after,
        ):
            return judge(
                self.gate,
                self.samples,
                before,
                after,
                now,
                script=self.script,
                batch=request.max_batch_size,
                progress=lambda at: progress(100 * at // count, f"{at} of {count} samples compared"),
            )

    def _read(
        self, request: BuildRequest, baseline: Path, engine: Path, now: str, progress: Progress
    ) -> AccuracyReport:
        """Measure both folders' language models on the texts, one after the other: GPUs may not hold both."""
        texts = self.samples.texts
        sides = []
        for side, (folder, name) in enumerate(((baseline, "the baseline"), (engine, "the engine"))):
            with isolated(request.builder, folder, request, name) as runner:
                sides.append(memoized(runner, texts, _reading(progress, 50 * side, len(texts), name)))
        return judge(self.gate, self.samples, sides[0], sides[1], now)


def _reading(progress: Progress, start: int, count: int, name: str) -> Callable[[int], None]:
    """Return the progress of one of two sides that reads texts."""
    return lambda at: progress(start + 50 * at // count, f"{name} has read {at} of {count} texts")


def against(report: AccuracyReport, gate: Gate) -> AccuracyReport:
    """Return a report with the bounds of a gate."""
    low = gate.minimum is None or report.value >= gate.minimum
    high = gate.maximum is None or report.value <= gate.maximum
    return replace(report, minimum=gate.minimum, maximum=gate.maximum, passed=low and high)


def too_low(report: AccuracyReport) -> BuildError:
    """Return the error of an engine that is not good enough, with both figures."""
    sides = f" (baseline {report.baseline:g}, engine {report.engine:g})" if report.baseline is not None else ""
    below = report.minimum is not None and report.value < report.minimum
    bound, limit = ("min", report.minimum) if below else ("max", report.maximum)
    return BuildError(
        BuildFailure.ACCURACY_TOO_LOW,
        f"spec.engine.accuracy: {report.metric} is {report.value:.6g} over {report.samples} samples{sides}, where "
        f"{bound} is {limit:g}: calibrate with more or better data, keep sensitive layers out by engine.options, "
        f"choose a finer engine.precision, or change {bound}",
    )


def _script(folder: Path) -> Path:
    files = sorted(folder.rglob("*.py"))
    if len(files) != 1:
        there = ", ".join(path.name for path in files) or "none"
        raise BuildError(
            BuildFailure.ACCURACY_DATA_INVALID,
            f"spec.engine.accuracy.script: must be one Python file, and there is {there}",
        )
    return files[0]
