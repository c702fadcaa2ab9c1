"""The operator's own decisions in a simulated fleet."""

import numpy as np
from tests.operator.simulation.curves import affine

from argosy.autoscaling.decision import NO_EJECTION, Allocation
from argosy.autoscaling.policy import Bounds, Policy, Targets
from argosy.simulation import traces
from argosy.simulation.autoscalers.own import Own
from argosy.simulation.member import Workload
from argosy.simulation.simulate import Fleet, simulate

CURVE = affine(0.06, 0.035, 8, (1.0, 1.6))


def bounded(least=1, most=12):
    return Policy(Bounds(least, most, max_instances=2, max_batch=8), Targets(latency={"p99": 1.0}))


def run(trace, policy, start=1, fleet=None):
    workload = Workload("m", trace, CURVE, 1.0, Allocation(start))
    (outcome,) = simulate([(workload, lambda: Own(policy))], fleet or Fleet())
    return outcome


def test_a_load_that_one_replica_cannot_hold_gets_more_and_they_go():
    rates = np.concatenate([np.full(300, 5.0), np.full(600, 60.0), np.full(1500, 5.0)])
    outcome = run(traces.drawn("step", rates, seed=1), bounded())
    assert outcome.timeline.desired.max() >= 3
    assert outcome.timeline.desired[-1] == 1
    assert any("replicas" in change.reason for change in outcome.changes)


def test_without_a_request_it_goes_to_zero_and_the_first_one_is_answered():
    trace = traces.Trace("sparse", 4000.0, np.array([10.0, 3000.0]))
    outcome = run(trace, bounded(least=0))
    assert (outcome.timeline.ready[-1], len(outcome.latency)) == (0, 2)
    assert outcome.gpu_hours < 0.65
    assert 30 < outcome.latency.max() < 31


def test_a_fleet_that_is_full_says_so():
    outcome = run(traces.constant(80, 600), bounded(), fleet=Fleet(gpus=2))
    assert outcome.timeline.desired.max() <= 2
    assert "all 2 GPUs of the fleet are held" in outcome.reason


class Evenly(Own):
    """The same decisions, except that no server is ejected."""

    def decide(self, seen):
        allocation = super().decide(seen)
        self.ejection = NO_EJECTION
        return allocation


def test_servers_whose_queues_are_too_long_are_relieved_by_new_ones():
    rates = np.concatenate([np.full(300, 5.0), np.full(240, 60.0)])
    trace = traces.drawn("step", rates, seed=1)
    workload = Workload("m", trace, CURVE, 1.0, Allocation(1))
    relieved, evenly = (simulate([(workload, lambda kind=kind: kind(bounded()))])[0] for kind in (Own, Evenly))
    assert relieved.violating < 0.9 * evenly.violating
    assert relieved.gpu_hours < 1.1 * evenly.gpu_hours
