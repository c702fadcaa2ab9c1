"""The model of the queue beside a simulation of one: what docs/scaling.md says of how far it is off."""

from itertools import product

import numpy as np
import pytest

from argosy.fleet.scaling.capacity.queueing import Replica, decay
from argosy.fleet.scaling.capacity.service import Service
from argosy.fleet.scaling.decision import Allocation
from argosy.simulation.servers.batching import BatchingServer
from argosy.simulation.service import ServiceCurve

REQUESTS = 30_000
FIRST = 2_000
LOADS = (0.2, 0.5, 0.8, 0.9)


def simulated(replica: Replica, rate: float, seed: int) -> float:
    """The 99th percentile of what requests take that come by chance."""
    service, instances = replica.service, replica.instances
    seconds = tuple(service.seconds(rows) for rows in range(1, replica.max_batch + 1))
    curve = ServiceCurve(seconds, tuple(1 + service.contention * other for other in range(instances)))
    server = BatchingServer(curve, Allocation(instances=instances), 0.0, seed)
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, REQUESTS))
    server.offer(arrivals.tolist(), range(REQUESTS))
    server.advance(float("inf"))
    taken = np.array(server.served.ended) - np.array(server.served.arrived)
    return float(np.percentile(taken[FIRST:], 99))


def test_latencies_are_those_of_a_simulated_queue_within_what_is_said() -> None:
    ratios = []
    for per_row, instances, batch in product((0.02, 0.15, 0.6), (1, 2, 4), (1, 8, 32)):
        replica = Replica(Service(1.0, per_row, 0.3), instances, 1, batch)
        for load in LOADS:
            rate = load * replica.most
            ratios.append(replica.latency(rate, 0.99) / simulated(replica, rate, len(ratios)))
    assert 0.6 < min(ratios) < max(ratios) < 1.6
    assert 0.8 < np.percentile(ratios, 5) < 1.0 < np.percentile(ratios, 95) < 1.4


@pytest.mark.parametrize("load", [1e-4, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.99901, 1 - 1e-6])
def test_the_tail_falls_as_fast_as_its_equation_says(load: float) -> None:
    found = decay(load)
    assert load * found == pytest.approx(np.log1p(found), rel=1e-5)
