"""Models of a queue and of an engine against simulations of them: the errors that docs/scaling.md states."""

from itertools import product

import numpy as np
import pytest

from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.policy import Bounds, Policy, Targets
from argosy.autoscaling.stage import Stage
from argosy.simulation.autoscalers.autoscaler import Seen
from argosy.simulation.autoscalers.own import Own
from argosy.simulation.member import Workload
from argosy.simulation.servers.batching import BatchingServer
from argosy.simulation.servers.engine import EngineCurve
from argosy.simulation.service import ServiceCurve
from argosy.simulation.simulate import simulate
from argosy.simulation.traces import Trace

REQUESTS = 30_000
FIRST = 2_000
LOADS = (0.2, 0.5, 0.8, 0.9)


def simulated(replica: Replica, rate: float, seed: int) -> float:
    """Return the 99th percentile of the seconds of requests with Poisson arrivals."""
    service, instances = replica.service, replica.instances
    seconds = tuple(service.seconds(rows) for rows in range(1, replica.max_batch + 1))
    curve = ServiceCurve(seconds, tuple(1 + service.contention * other for other in range(instances)))
    server = BatchingServer(curve, Allocation(instances=instances), 0.0, seed)
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, REQUESTS))
    server.offer(arrivals.tolist(), range(REQUESTS))
    server.advance(float("inf"))
    taken = np.array(server.served.ended) - np.array(server.served.arrived)
    return float(np.percentile(taken[FIRST:], 99))


def test_latencies_are_those_of_a_simulated_queue_within_bounds() -> None:
    ratios = []
    for per_row, instances, batch in product((0.02, 0.15, 0.6), (1, 2, 4), (1, 8, 32)):
        replica = Replica(Service(1.0, per_row, 0.3), instances, 1, batch)
        for load in LOADS:
            rate = load * replica.most
            ratios.append(replica.latency(rate, 0.99) / simulated(replica, rate, len(ratios)))
    assert 0.6 < min(ratios) < max(ratios) < 1.6
    assert 0.8 < np.percentile(ratios, 5) < 1.0 < np.percentile(ratios, 95) < 1.4


CURVE = EngineCurve(tuple(0.018 + 0.0015 * count for count in range(16)), prompt_token_s=0.0004)


def estimated_share(prompt: float, output: float, load: float, seed: int) -> float:
    """Return an engine's estimated capacity ÷ the real one, after an hour at this load with eight replicas."""
    replicas, most = 8, CURVE.throughput(prompt, output)
    draws = np.random.default_rng(seed)
    arrivals = np.sort(draws.uniform(0, 3600, int(load * most * replicas * 3600)))
    prompts, outputs = (mean * draws.gamma(1.0, 1.0, len(arrivals)) for mean in (prompt, output))
    policy = Policy(Bounds(replicas, replicas), Targets(first_token={"p99": 20.0}))
    own = Own(policy)
    trace = Trace("t", 3600.0, arrivals, prompts, outputs)
    simulate([(Workload("m", trace, CURVE, 20.0, Allocation(replicas)), lambda: own)])
    engine = Stage(policy, Allocation(), None, memory=own._memory.own).engine
    assert engine is not None
    return engine.most / most


@pytest.mark.parametrize(("prompt", "output"), [(2000.0, 30.0), (1200.0, 200.0), (100.0, 400.0)])
def test_an_engines_capacity_is_estimated_before_it_is_full(prompt: float, output: float) -> None:
    for seed, (load, most) in enumerate(((0.3, 1.35), (0.5, 1.25), (0.7, 1.25), (0.85, 1.2))):
        assert 0.7 < estimated_share(prompt, output, load, seed) < most


class Watched(Own):
    """The operator's decisions, with the replicas and the mean time between tokens that led to each."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.seen: list[tuple[float, int, float]] = []

    def decide(self, seen: Seen) -> Allocation:
        signals = seen.recorder.signals(seen.measured, 30.0) if seen.ready else None
        if signals is not None and signals.between_tokens.mean is not None:
            self.seen.append((seen.now, seen.ready, signals.between_tokens.mean))
        return super().decide(seen)


def test_an_engines_tokens_come_within_their_target_by_more_replicas() -> None:
    draws = np.random.default_rng(7)
    rate = 0.6 * CURVE.throughput(300.0, 200.0) * 6
    arrivals = np.cumsum(draws.exponential(1 / rate, int(3600 * rate)))
    prompts, outputs = (mean * draws.gamma(1.0, 1.0, len(arrivals)) for mean in (300.0, 200.0))
    trace, replicas, between = Trace("t", 3600.0, arrivals, prompts, outputs), {}, {}
    for target_s in (None, 0.03):
        targets = Targets(between_tokens={} if target_s is None else {"p95": target_s})
        own = Watched(Policy(Bounds(max_replicas=24), targets))
        simulate([(Workload("m", trace, CURVE, 20.0, Allocation(6)), lambda own=own: own)])  # type: ignore[misc]
        second_half = [(ready, mean) for now, ready, mean in own.seen if now > 1800]
        replicas[target_s], between[target_s] = np.mean(second_half, axis=0)
    assert between[None] > 0.03 > between[0.03]
    assert replicas[None] < replicas[0.03] < 20, "no more than it takes"


@pytest.mark.parametrize(("rate", "target_s"), [(10.0, 0.1), (15.0, 0.15)])
def test_a_target_is_met_though_batches_never_showed_what_a_row_costs(rate: float, target_s: float) -> None:
    draws = np.random.default_rng(int(rate))
    arrivals = np.cumsum(draws.exponential(1 / rate, int(1800 * rate)))
    policy = Policy(Bounds(max_replicas=12, max_batch=8), Targets({"p99": target_s}))
    curve = ServiceCurve(tuple(0.008 + 0.029 * rows for rows in range(1, 9)), (1.0,))
    workload = Workload("m", Trace("t", 1800.0, arrivals), curve, target_s, Allocation())
    (outcome,) = simulate([(workload, lambda: Own(policy))])
    assert outcome.violations < 0.01
