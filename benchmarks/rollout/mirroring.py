"""What mirroring costs the clients of a busy model, and how soon its candidate has a verdict.

The server's own dispatchers and mirror run in virtual time. The instances of both versions share one device that
executes one batch at a time, in the order in which it gets them: nothing that really shares a device delays more.
"""

import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.analysis.errors import error_test
from argosy.api.model.rollout.analysis import Analysis
from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.execution.dispatching.dispatcher import Dispatcher
from argosy_runtime.execution.instance import Instance, Run
from argosy_runtime.execution.shadow.comparing import ComparisonWork
from argosy_runtime.execution.shadow.mirror import Mirror
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, Shadow
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.telemetry.shadow.statistics import ShadowOutcome
from argosy_runtime.telemetry.statistics import ModelStatistics

LOADS = {"half": 0.5, "busy": 0.8, "full": 0.95}
"""Shares of the requests that the device could answer, those of mirroring left out."""
ROWS = {"single": 1, "batches": 8}
"""The largest batch of each model."""
SHARE = 0.1
"""The share of the requests that is mirrored."""
_FIXED_NS, _ROW_NS = 8_000_000, 2_000_000
_SECOND = 1_000_000_000
_NEEDED = error_test(Analysis()).fewest_samples
"""Answers without a failure that clear a candidate by the default rates."""
_CONFIG = """name: "m" max_batch_size: {rows} dynamic_batching {{ }}
input {{ name: "X" data_type: TYPE_FP32 dims: 1 }} output {{ name: "Y" data_type: TYPE_FP32 dims: 1 }}"""


class EventTimer:
    """A call that is due at some time, unless it is canceled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Cancel the call."""
        self.callback = None


class EventClock:
    """A clock that jumps from one event to the next."""

    def __init__(self) -> None:
        self._now = 0
        self._numbers = count()
        self._timers: list[tuple[int, int, EventTimer]] = []

    def now(self) -> int:
        """Return the time in nanoseconds."""
        return self._now

    def call_at(self, when: int, callback: Callable[[], None]) -> EventTimer:
        """Call back at that time."""
        timer = EventTimer(callback)
        heapq.heappush(self._timers, (max(when, self._now), next(self._numbers), timer))
        return timer

    def run_until(self, end: int) -> None:
        """Make all calls that are due by then."""
        while self._timers and self._timers[0][0] <= end:
            self._now, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self._now = end


class Device:
    """Executes one batch at a time, first in first out."""

    def __init__(self, clock: EventClock) -> None:
        self._clock = clock
        self._free_at = 0

    def run(self, lasting: int, done: Callable[[], None]) -> None:
        """Execute for so many nanoseconds, then call back."""
        self._free_at = max(self._free_at, self._clock.now()) + lasting
        self._clock.call_at(self._free_at, done)


class DeviceInstance(Instance):
    """An instance that answers each batch as soon as the device has executed it."""

    def __init__(self, device: Device) -> None:
        super().__init__("instance")
        self._device = device

    async def start(self) -> None:
        """Be ready at once."""

    async def stop(self, grace: float) -> None:
        """Leave nothing: the simulation is over."""

    def give_up(self, words: str) -> None:
        """Refuse: a simulated device has no errors."""
        raise NotImplementedError(words)

    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        lasting = _execution_ns(len(requests))
        responses = [InferResponse(outputs=[request.inputs["X"].renamed("Y")]) for request in requests]
        self._device.run(lasting, partial(self._answered, run.id, responses, ExecutionTimes(0, lasting, 0)))

    def cancel(self, run: Run, index: int) -> None:
        """Do nothing: the device goes on."""

    def pause(self, run: Run, index: int) -> None:
        """Do nothing: no answer comes in parts."""

    def resume(self, run: Run, index: int) -> None:
        """Do nothing."""


def _execution_ns(rows: int) -> int:
    """Return how long the device executes a batch, in nanoseconds."""
    return _FIXED_NS + _ROW_NS * rows


class Version:
    """A version with one instance on the device."""

    def __init__(self, version: int, rows: int, device: Device, clock: EventClock) -> None:
        self.name, self.version = "m", version
        self.config = text_format.Parse(_CONFIG.format(rows=rows), ModelConfig())
        self.statistics = ModelStatistics()
        self.ready = True
        self.instances: int | None = 1
        scheduler = DynamicBatcher(BatchingRules.of(self.config))
        makers = [lambda _: DeviceInstance(device)]
        self.dispatcher = Dispatcher(self.name, version, scheduler, makers, self.statistics, clock)

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request."""
        return self.dispatcher.submit(request, 1, None, deliver)


class Mirroring:
    """Requests of one model, of which a share is mirrored to its candidate."""

    def __init__(self, rows: int, share: float, seed: int) -> None:
        self.clock = EventClock()
        device = Device(self.clock)
        self.stable, self.candidate = (Version(version, rows, device, self.clock) for version in (1, 2))
        shadow = Shadow(2, round(share * MILLIONTHS))
        self._mirror = Mirror(shadow, self.stable, self.candidate, ComparisonWork(), self.clock)
        self._random = np.random.default_rng(seed)
        self.latencies: list[int] = []

    async def run(self, rate: float, seconds: float) -> None:
        """Send requests at random, so many a second on average, and answer them all."""
        for version in (self.stable, self.candidate):
            await version.dispatcher.start()
        number = int(rate * seconds)
        for at in np.cumsum(self._random.exponential(1 / rate, number)):
            self.clock.call_at(round(at * _SECOND), self._send)
        self.clock.run_until(round(seconds * 2 * _SECOND))

    def _send(self) -> None:
        began = self.clock.now()

        def deliver(_: InferResponse) -> None:
            self.latencies.append(self.clock.now() - began)

        inputs = {"X": Tensor("X", "FP32", np.ones((1, 1), np.float32))}
        self._mirror.submit(InferRequest("m", inputs), deliver)

    @property
    def compared(self) -> int:
        """Answers of the candidate that were compared."""
        shadow = self.candidate.statistics.shadow
        return 0 if shadow is None else shadow.outcomes[ShadowOutcome.EQUAL]


async def cell(rows: int, load: float, seconds: float, seed: int = 1) -> dict[str, float]:
    """Return what mirroring costs a model at a load: the same requests with and without it, as ratios."""
    rate = load * rows / (_execution_ns(rows) / _SECOND)
    with_, without = (Mirroring(rows, share, seed) for share in (SHARE, 0.0))
    for trial in (with_, without):
        await trial.run(rate, seconds)
    per_second = with_.compared / seconds
    return {
        "p50_ratio": _ratio(with_, without, 50),
        "p99_ratio": _ratio(with_, without, 99),
        "mean_ratio": round(float(np.mean(with_.latencies) / np.mean(without.latencies)), 3),
        "mirrored_share": round(with_.compared / (SHARE * len(with_.latencies)), 3),
        "verdict_s": round(_NEEDED / per_second, 1) if per_second else float("inf"),
    }


def _ratio(one: Mirroring, other: Mirroring, percent: int) -> float:
    return round(float(np.percentile(one.latencies, percent) / np.percentile(other.latencies, percent)), 3)


async def measured(seconds: float) -> dict[str, Any]:
    """Return the cells of all models and loads, and the worst figures of a busy one."""
    cells = {name: values async for name, values in _cells(seconds)}
    busy = [values for name, values in cells.items() if name.endswith(" busy")]
    return {
        "mirroring_mean_over_without": max(values["mean_ratio"] for values in busy),
        "mirroring_p99_over_without": max(values["p99_ratio"] for values in busy),
        "mirrored_share": min(values["mirrored_share"] for values in busy),
        "shadow_verdict_s": max(values["verdict_s"] for values in busy),
        "mirroring_cells": cells,
    }


async def _cells(seconds: float) -> AsyncIterator[tuple[str, dict[str, float]]]:
    for model, rows in ROWS.items():
        for name, load in LOADS.items():
            yield f"{model} {name}", await cell(rows, load, seconds)
