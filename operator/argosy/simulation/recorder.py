"""Samples of a member's servers over time, and the signals that a scrape would return."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from argosy.autoscaling.metrics.histograms import UNMEASURED, Distribution
from argosy.autoscaling.metrics.signals import ServerQueue, Signals
from argosy.simulation.servers.served import Served
from argosy.simulation.traces import Floats

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
"""The date of the trace's second 0."""
_MEMORY_S = 900.0


def date(seconds: float) -> datetime:
    """Return the date of a second of the trace."""
    return BEGINNING + timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """An interval of the trace, from the sample before it until `at`: requests that arrived, that were answered (with
    their `latency` and `queue`), and that had their first token (after `first` seconds). `executions` ended in it, of
    `executed_s` seconds; `busy_s`: seconds of the interval spent executing. `inside`: the integral over time of the
    requests in the system. The other values are those at its end.
    """

    at: float
    seconds: float
    arrivals: int
    latency: Floats
    queue: Floats
    first: Floats
    inside: float
    executions: int
    executed_s: float
    busy_s: float
    instance_s: float
    pending: int
    running: int
    servers: int
    instances: int
    queued_requests: int
    queues: tuple[ServerQueue, ...]
    tokens: float
    between_s: float


class Recorder:
    """The samples of one member of the last fifteen minutes. `max_running`: the sequences that one engine generates at
    once, 0 without engines.
    """

    def __init__(self, max_batch: int, max_running: int = 0) -> None:
        self._max_batch, self._max_running = max_batch, max_running
        self._samples: deque[Sample] = deque()
        self._flying = np.zeros((3, 0))
        self._executing = np.zeros((2, 0))
        self._prompted = np.zeros((2, 0))
        self._inside = 0

    def add(self, begun: float, at: float, arrivals: Floats, work: list[Served], state: "State") -> Sample:
        """Add and return the sample of an interval, from the requests that arrived and the work of the servers."""
        begun_work = [(sample.arrived, sample.started, sample.ended) for sample in work]
        (arrived, started, ended), self._flying = _over(self._flying, begun_work, at)
        (prompted, first), self._prompted = _over(
            self._prompted, [(sample.prompted, sample.first) for sample in work], at
        )
        # As servers count them: with the rows of its batch.
        executions = [(sample.lasting, sample.over) for sample in work]
        (executed, _), self._executing = _over(self._executing, executions, at)
        busy = sum(sample.busy_s for sample in work)
        seconds = at - begun
        inside = self._inside * seconds + float((at - arrivals).sum()) - float((at - ended).sum())
        self._inside += len(arrivals) - len(ended)
        sample = Sample(
            at, seconds, len(arrivals), ended - arrived, started - arrived, first - prompted, inside, len(executed),
            float(executed.sum()), max(0.0, busy - state.unfinished_s), state.instances * seconds, state.pending,
            self._flying.shape[1] + state.running, state.servers, state.instances, state.queued_requests, state.queues,
            sum(sample.tokens for sample in work), sum(sample.between_s for sample in work),
        )  # fmt: skip
        self._samples.append(sample)
        while self._samples[0].at < at - _MEMORY_S:
            self._samples.popleft()
        return sample

    def window(self, until: float, seconds: float) -> list[Sample]:
        """Return the samples of the last `seconds` before `until`."""
        return [sample for sample in self._samples if until - seconds < sample.at <= until + 1e-9]

    def concurrency(self, until: float, seconds: float) -> float | None:
        """Return requests in the system, waiting or executing, on average; None without samples."""
        values = self.window(until, seconds)
        over = sum(sample.seconds for sample in values)
        return sum(sample.inside for sample in values) / over if over else None

    def rate(self, until: float, seconds: float) -> float | None:
        """Return arrivals per second; None without samples."""
        values = self.window(until, seconds)
        over = sum(sample.seconds for sample in values)
        return sum(sample.arrivals for sample in values) / over if over else None

    def busy(self, until: float, seconds: float) -> float | None:
        """Return the share of the instances' time spent executing; None without instances."""
        values = self.window(until, seconds)
        over = sum(sample.instance_s for sample in values)
        return min(1.0, sum(sample.busy_s for sample in values) / over) if over else None

    def signals(self, until: float, seconds: float) -> Signals | None:
        """Return signals as `argosy.autoscaling.metrics` makes them from scrapes; None without samples."""
        values = self.window(until, seconds)
        over = sum(sample.seconds for sample in values)
        if not over:
            return None
        newest = values[-1]
        latency = np.concatenate([sample.latency for sample in values])
        queue = np.concatenate([sample.queue for sample in values])
        full = Signals(
            at=date(newest.at),
            window_s=over,
            servers=newest.servers,
            arrivals=sum(sample.arrivals for sample in values) / over,
            recent=newest.arrivals / newest.seconds if newest.seconds else None,
            recent_s=newest.seconds,
            completions=len(latency) / over,
            growth=(sum(sample.arrivals for sample in values) - len(latency)) / over,
            rejections=0.0,
            timeouts=0.0,
            out_of_memory=0.0,
            pending=float(newest.pending),
            running=float(newest.running),
            queues=newest.queues,
            latency=_distribution(latency),
            queue=_distribution(queue),
            compute=float((latency - queue).mean()) if len(latency) else None,
            instances=float(newest.instances),
            busy=self.busy(until, seconds),
        )
        return self._of_engines(full, values) if self._max_running else self._of_batches(full, values)

    def _of_batches(self, full: Signals, values: list[Sample]) -> Signals:
        executions, rows = sum(sample.executions for sample in values), sum(len(sample.latency) for sample in values)
        if not executions:
            return replace(full, max_batch=self._max_batch if self._max_batch > 1 else 0)
        return replace(
            full,
            execution=sum(sample.executed_s for sample in values) / executions,
            batch=rows / executions,
            max_batch=self._max_batch if self._max_batch > 1 else 0,
        )

    def _of_engines(self, full: Signals, values: list[Sample]) -> Signals:
        free_slots, tokens = full.servers * self._max_running, sum(sample.tokens for sample in values)
        between = Distribution(sum(sample.between_s for sample in values) / tokens) if tokens else UNMEASURED
        return replace(
            full,
            pending=0.0,
            first_token=_distribution(np.concatenate([sample.first for sample in values])),
            between_tokens=between,
            tokens=tokens / full.window_s,
            engine_waiting=float(values[-1].pending),
            engine_running=float(values[-1].running),
            kv_cache=min(1.0, values[-1].running / free_slots) if free_slots else None,
        )


@dataclass(frozen=True, slots=True)
class State:
    """A member at the end of a sample. `unfinished_s`: of the executions' time that was counted, what lies beyond its
    end, less the same of the sample before; `running` are the requests inside engines.
    """

    unfinished_s: float
    pending: int
    running: int
    servers: int
    instances: int
    queued_requests: int
    queues: tuple[ServerQueue, ...] = ()


def _over(recent: Floats, begun: Iterable[tuple[list[float], ...]], at: float) -> tuple[Floats, Floats]:
    """Return the columns that ended by `at`, and the others. The last row has the time of their end."""
    every = np.concatenate([recent, *(np.array(sample) for sample in begun)], axis=1)
    over = every[-1] <= at
    return every[:, over], every[:, ~over]


def _distribution(values: Floats) -> Distribution:
    if not len(values):
        return UNMEASURED
    p50, p90, p95, p99, p999 = np.percentile(values, (50, 90, 95, 99, 99.9)).tolist()
    return Distribution(float(values.mean()), p50, p90, p95, p99, p999)
