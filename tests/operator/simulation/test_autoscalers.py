"""HPA, KEDA and KPA do what their documentation says, step by step."""

import pytest

from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.simulation.autoscalers.autoscaler import Seen
from argosy.simulation.autoscalers.hpa import Hpa, HpaMetric, HpaSettings
from argosy.simulation.autoscalers.keda import Keda, KedaSettings
from argosy.simulation.autoscalers.kpa import Kpa, KpaSettings


class Measured:
    """A recorder that has one figure for each metric, whatever the window; `panic` for windows under 10 s."""

    def __init__(self, busy=None, concurrency=None, rate=None, panic=None):
        self.figures, self.panic = {"busy": busy, "concurrency": concurrency, "rate": rate}, panic

    def busy(self, until, seconds):
        return self.figures["busy"]

    def rate(self, until, seconds):
        return self.figures["rate"]

    def concurrency(self, until, seconds):
        return self.panic if self.panic is not None and seconds < 10 else self.figures["concurrency"]


def seen(now, replicas, ready=None, queued_requests=0, spare=None, **figures):
    ready = replicas if ready is None else ready
    return Seen(now, now, Measured(**figures), Allocation(replicas), ready, queued_requests, spare or SpareCapacity())


def test_hpa_takes_the_ratio_and_rounds_up():
    assert Hpa(HpaSettings(target=0.5)).decide(seen(15, 4, busy=0.8)).replicas == 7


@pytest.mark.parametrize(("busy", "replicas"), [(0.87, 4), (0.89, 5), (0.73, 4)])
def test_hpa_within_its_tolerance_does_nothing(busy, replicas):
    assert Hpa().decide(seen(15, 4, busy=busy)).replicas == replicas


def test_hpa_goes_down_only_as_far_as_all_of_its_window_requested():
    hpa = Hpa()
    assert [hpa.decide(seen(at, 8, busy=busy)).replicas for at, busy in [(0, 0.8), (15, 0.1), (290, 0.4)]] == [8, 8, 8]
    assert hpa.decide(seen(330, 8, busy=0.1)).replicas == 4
    assert hpa.decide(seen(600, 4, busy=0.1)).replicas == 1


def test_hpa_goes_up_by_four_pods_or_twice_in_a_period():
    hpa = Hpa(HpaSettings(metric=HpaMetric.CONCURRENCY, target=1))
    assert hpa.decide(seen(0, 2, concurrency=100)).replicas == 6
    assert hpa.decide(seen(15, 6, concurrency=100)).replicas == 12
    assert hpa.decide(seen(20, 12, concurrency=100)).replicas == 12


def test_hpa_counts_pods_that_are_not_ready_as_idle_when_it_goes_up():
    assert Hpa(HpaSettings(target=0.5)).decide(seen(0, 4, ready=2, busy=0.9)).replicas == 4
    assert Hpa(HpaSettings(target=0.5)).decide(seen(0, 3, ready=2, busy=0.9)).replicas == 4


def test_no_autoscaler_exceeds_the_spare_capacity():
    spare = SpareCapacity(replicas=1)
    assert Hpa().decide(seen(0, 2, spare=spare, busy=1.0)).replicas == 3
    assert Kpa(KpaSettings(concurrency=1)).decide(seen(0, 2, spare=spare, concurrency=90)).replicas == 3


def test_keda_scales_from_zero_at_once_and_to_zero_after_its_cooldown():
    keda = Keda()
    assert keda.decide(seen(0, 0, concurrency=0.0)).replicas == 0
    assert keda.decide(seen(3, 0, queued_requests=1, concurrency=1.0)).replicas == 1
    assert keda.decide(seen(60, 1, concurrency=2.0)).replicas == 1
    assert keda.decide(seen(345, 1, concurrency=0.0)).replicas == 1
    assert keda.decide(seen(360, 1, concurrency=0.0)).replicas == 0


def test_keda_divides_the_total_by_the_threshold():
    settings = KedaSettings(HpaSettings(metric=HpaMetric.RATE, target=10, external=True))
    assert Keda(settings).decide(seen(30, 2, ready=1, rate=45)).replicas == 5


def test_kpa_aims_at_a_share_of_the_concurrency():
    assert Kpa(KpaSettings(concurrency=10)).decide(seen(0, 4, concurrency=40)).replicas == 6


def test_kpa_panics_above_twice_its_capacity_until_a_calm_window_passes():
    kpa = Kpa(KpaSettings(concurrency=10, utilization=1.0))
    assert kpa.decide(seen(0, 2, concurrency=20, panic=40)).replicas == 4
    assert kpa.decide(seen(2, 4, ready=2, concurrency=20, panic=20)).replicas == 4
    assert kpa.decide(seen(50, 4, concurrency=20, panic=20)).replicas == 4
    assert kpa.decide(seen(62, 4, concurrency=20, panic=20)).replicas == 2


def test_kpa_halves_at_most_and_goes_to_zero_after_its_grace():
    kpa = Kpa(KpaSettings(concurrency=10))
    assert kpa.decide(seen(0, 9, concurrency=0.0)).replicas == 4
    assert kpa.decide(seen(2, 1, concurrency=0.0)).replicas == 1
    assert kpa.decide(seen(31, 1, concurrency=0.0)).replicas == 1
    assert kpa.decide(seen(33, 1, concurrency=0.0)).replicas == 0
    assert kpa.decide(seen(40, 0, queued_requests=1, concurrency=0.0)).replicas == 1
