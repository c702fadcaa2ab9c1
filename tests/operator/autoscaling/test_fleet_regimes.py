"""Which variant's servers the load asks for, in virtual time: never by what is not known."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from tests.operator.planning.declared import model
from tests.operator.planning.simulated_cluster import START

from argosy.api.status import InferenceModelStatus
from argosy.api.statusparts import RegimeStatus
from argosy.autoscaling.metrics.signals import Signals, VariantSignals
from argosy.autoscaling.pool.regimes import FleetRegime, fleet_regimes, restored_regime
from argosy.planning.variants import RoutedModel, expanded

NAME = "InferenceModel default/m"
LOW, HIGH = {"name": "low", "maxConcurrency": 8}, {"name": "high"}


def routed(*variants: dict[str, Any], **routing: Any) -> RoutedModel:
    declared = model("m", variants=list(variants or (LOW, HIGH)), routing={"placement": "Separate"} | routing)
    return next(part for part in expanded([declared]) if isinstance(part, RoutedModel))


@dataclass
class Fleet:
    """Readings of a model every five seconds."""

    model: RoutedModel = field(default_factory=routed)
    ready: dict[str, int] = field(default_factory=lambda: {"low": 1, "high": 1})
    now: Any = START
    regimes: dict[str, FleetRegime] = field(default_factory=dict)

    def read(self, in_flight: float | None, unmeasured: int = 0, seconds: float = 5) -> str:
        """Return the variant after a reading; without `in_flight` nothing is read."""
        self.now += timedelta(seconds=seconds)
        signals = None if in_flight is None else self.signals(in_flight, unmeasured)
        self.regimes = fleet_regimes(self.regimes, [(self.model, signals)], self.now)
        return self.regimes[NAME].variant

    def signals(self, in_flight: float, unmeasured: int) -> Signals:
        first, *others = self.ready
        variants = [VariantSignals(f"m--{first}", in_flight=in_flight, ready=self.ready[first])]
        variants += [VariantSignals(f"m--{name}", ready=self.ready[name]) for name in others]
        return Signals(self.now, 30.0, unmeasured=unmeasured, variants=tuple(variants))


def test_up_at_once_and_down_after_the_dwell() -> None:
    fleet = Fleet()
    assert [fleet.read(load) for load in (3, 8, 9)] == ["low", "low", "high"]
    assert fleet.regimes[NAME].why == "9 in flight on all servers, more than the 8 up to which low is better"
    assert fleet.regimes[NAME].since == fleet.now
    assert [fleet.read(load) for load in (2, 2, 2, 2)] == ["high", "high", "high", "low"]
    assert fleet.regimes[NAME].why == "2 in flight on all servers, no more than the 8 up to which low is better"


def test_without_crossovers_requests_go_back_to_the_first_variant() -> None:
    fleet = Fleet()
    assert fleet.read(9) == "high"
    fleet.model = routed({"name": "low"}, HIGH)
    assert [fleet.read(load) for load in (9, 9)] == ["low", "low"]
    assert fleet.regimes[NAME].since == fleet.now - timedelta(seconds=5)
    assert not fleet.regimes[NAME].why


def test_the_reason_of_a_change_is_true_at_the_crossover() -> None:
    fleet = Fleet(routed(hysteresis="0%"))
    fleet.read(9)
    assert [fleet.read(8) for _ in range(4)][-1] == "low"
    assert fleet.regimes[NAME].why == "8 in flight on all servers, no more than the 8 up to which low is better"


def test_a_load_near_the_crossover_changes_nothing() -> None:
    fleet = Fleet(routed(hysteresis="25%"))
    fleet.read(9)
    assert {fleet.read(load) for load in (7, 8, 9) * 20} == {"high"}


def test_a_longer_dwell_counts() -> None:
    fleet = Fleet(routed(minDwell="60s"))
    fleet.read(9)
    assert [fleet.read(1) for _ in range(14)] == ["high"] * 12 + ["low"] * 2


def test_the_crossover_counts_for_all_servers_that_answer() -> None:
    fleet = Fleet(ready={"low": 3, "high": 1})
    assert [fleet.read(load) for load in (9, 24, 25)] == ["low", "low", "high"]


def test_a_variant_on_few_servers_between_two_others_is_passed_over() -> None:
    middle = {"name": "middle", "maxConcurrency": 12}
    fleet = Fleet(routed(LOW, middle, HIGH), ready={"low": 3, "middle": 1, "high": 3})
    assert [fleet.read(load) for load in (20, 24, 25)] == ["low", "low", "high"]


def test_requests_never_change_to_a_variant_that_no_server_reports_ready() -> None:
    fleet = Fleet(ready={"low": 1, "high": 0})
    assert fleet.read(100) == "low"
    fleet.ready["high"] = 1
    assert fleet.read(100) == "high"


@pytest.mark.parametrize("silence", [(None, 0), (0.0, 1)], ids=["no reading", "a server is not measured"])
def test_silence_does_not_take_requests_back(silence: tuple[float | None, int]) -> None:
    fleet = Fleet()
    fleet.read(9)
    assert {fleet.read(*silence) for _ in range(100)} == {"high"}
    assert [fleet.read(1) for _ in range(4)][-1] == "low"


def test_silence_of_servers_does_not_lower_the_crossover() -> None:
    fleet = Fleet(ready={"low": 2, "high": 1})
    fleet.read(12)
    fleet.ready["low"] = 0
    assert fleet.read(12, unmeasured=2) == "low"
    assert fleet.read(17, unmeasured=2) == "high", "that many are in flight, whatever else is"


def test_a_server_that_is_not_measured_from_the_start_decides_nothing() -> None:
    fleet = Fleet(ready={"low": 0, "high": 1})
    assert fleet.read(5, unmeasured=1) == "low"


def test_one_reading_counts_once() -> None:
    fleet = Fleet()
    fleet.read(9)
    signals = fleet.signals(1, 0)
    for _ in range(10):
        fleet.now += timedelta(seconds=5)
        fleet.regimes = fleet_regimes(fleet.regimes, [(fleet.model, signals)], fleet.now)
    assert fleet.regimes[NAME].variant == "high"


def test_without_a_crossover_it_is_the_first() -> None:
    fleet = Fleet(routed({"name": "low"}, HIGH))
    assert {fleet.read(load) for load in (1, 100)} == {"low"}


def test_a_variant_that_is_removed_leaves_its_regime() -> None:
    fleet = Fleet()
    fleet.read(9)
    fleet.model = routed({"name": "other", "maxConcurrency": 4}, {"name": "low"})
    fleet.ready = {"other": 1, "low": 1}
    assert fleet.read(1) == "other"
    fleet.read(5)
    fleet.model = routed({"name": "first", "maxConcurrency": 2}, {"name": "low"})
    assert fleet.read(None) == "low", "it keeps its variant in another place"
    assert fleet.regimes[NAME].state.current == 1


def test_a_restart_goes_on_by_the_status() -> None:
    fleet = Fleet()
    status = InferenceModelStatus(regime=RegimeStatus(variant="high", since="2026-01-01T00:00:00Z"))
    regime = restored_regime(fleet.model, status, START)
    assert regime is not None
    assert (regime.variant, regime.since) == ("high", START)
    fleet.regimes = {NAME: regime}
    assert [fleet.read(1) for _ in range(3)] == ["high", "high", "low"]
    for changed in ({"variant": "gone"}, {"since": None}, {"since": "soon"}):
        other = InferenceModelStatus(regime=replace_regime(status, changed))
        assert restored_regime(fleet.model, other, START) is None
    assert restored_regime(fleet.model, None, START) is None


@pytest.mark.parametrize("since", ["2025-12-31T23:00:00Z", "2026-01-02T00:00:00Z"], ids=["long ago", "to come"])
def test_after_a_restart_the_dwell_on_the_way_down_begins_again(since: str) -> None:
    fleet = Fleet()
    regime = restored_regime(
        fleet.model, InferenceModelStatus(regime=RegimeStatus(variant="high", since=since)), fleet.now
    )
    assert regime is not None
    fleet.regimes = {NAME: regime}
    assert [fleet.read(1) for _ in range(3)] == ["high", "high", "low"]


def test_a_silent_server_after_a_restart_does_not_hold_requests_back() -> None:
    fleet = Fleet(ready={"low": 2, "high": 1})
    status = InferenceModelStatus(regime=RegimeStatus(variant="low", since="2025-12-31T23:00:00Z"))
    regime = restored_regime(fleet.model, status, fleet.now)
    assert regime is not None
    fleet.regimes = {NAME: regime}
    assert [fleet.read(load, unmeasured=1) for load in (24, 25)] == ["low", "high"]
    assert {fleet.read(0, unmeasured=1) for _ in range(20)} == {"high"}
    assert [fleet.read(0) for _ in range(4)][-1] == "low"


def replace_regime(status: InferenceModelStatus, changed: dict[str, Any]) -> RegimeStatus:
    assert status.regime is not None
    return status.regime.model_copy(update=changed)


def test_an_equal_regime_is_the_same() -> None:
    fleet = Fleet()
    fleet.read(3)
    before = fleet.regimes[NAME]
    fleet.read(None)
    assert fleet.regimes[NAME] == before == replace(before)
