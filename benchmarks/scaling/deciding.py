"""How long deciding takes, for as many models as a large fleet has."""

import gc
import time
from dataclasses import dataclass

import numpy as np

from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.memory import MemberMemory
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Bounds, Policy, Targets
from argosy.cli.cluster.operator import GC_THRESHOLDS
from argosy.simulation.recorder import date

_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU seconds of a round. `first`: for models without measurements, as after an operator's start; `settled`: the
    median of later rounds.
    """

    first: float
    settled: float


def seconds_taken(models: int) -> Taken:
    """Return the CPU seconds of rounds that decide so many models, in a process with the operator's GC settings."""
    gc.set_threshold(*GC_THRESHOLDS)
    random = np.random.default_rng(6)
    policy = Policy(Bounds(1, 20, max_instances=4, max_window_s=0.02, max_batch=32), Targets(latency={"p99": 0.5}))
    loads = random.uniform(0.5, 200, models)
    states = [(Allocation(), MemberMemory()) for _ in range(models)]
    taken = []
    for round_ in range(_ROUNDS):
        measured = loads * random.normal(1, 0.05, models)
        seen = [_signals(float(rate), 5.0 * round_) for rate in measured]
        now, begun = date(5.0 * round_), time.process_time()
        decided = [
            decide(policy, allocation, signals, SpareCapacity(), memory, now)
            for (allocation, memory), signals in zip(states, seen, strict=True)
        ]
        taken.append(time.process_time() - begun)
        states = [(decision.own.allocation, memory) for decision, memory in decided]
    return Taken(taken[0], float(np.median(taken[2:])))


def _signals(rate: float, at: float) -> Signals:
    busy = min(0.95, rate / 220)
    execution = 0.02 + 0.1 * busy
    waiting = execution * busy
    return Signals(
        at=date(at),
        window_s=30.0,
        servers=1,
        arrivals=rate,
        completions=rate,
        rejections=0.0,
        timeouts=0.0,
        out_of_memory=0.0,
        pending=rate * waiting,
        running=rate * execution,
        latency=Distribution(execution + waiting, p99=2 * execution),
        queue=Distribution(waiting, p99=execution),
        compute=execution,
        execution=execution,
        batch=1 + 20 * busy,
        max_batch=32,
        instances=1.0,
        busy=busy,
    )
