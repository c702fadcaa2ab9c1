"""Signals of variants: what several servers say of their crossovers, by the requests of each."""

import pytest

from argosy.autoscaling.metrics.signals import CrossoverSignals
from argosy.autoscaling.metrics.variants import variant_signals
from argosy.autoscaling.metrics.windows import ModelSeries


def server(**values: float) -> tuple[ModelSeries, ModelSeries]:
    """Return what a server exposes of the variant `low`, by the ends of the metrics' names."""
    series = ModelSeries({f"argosy_variant_{name}{{low}}": value for name, value in values.items()})
    return series, series


IDLE = {"requests_total": 9.0, "in_flight_requests": 2.0}


@pytest.mark.parametrize(
    ("servers", "crossover"),
    [
        ([IDLE], None),
        ([IDLE | {"compared_requests": 0.0}], None),
        (
            [
                IDLE | {"compared_requests": 40.0, "crossover_low": 8.0, "crossover_high": 10.0, "crossover_fits": 1.0},
                IDLE,
            ],
            CrossoverSignals(8.0, 10.0, 40.0, fits=True),
        ),
        (
            [
                IDLE | {"compared_requests": 30.0, "crossover_low": 8.0, "crossover_fits": 1.0},
                IDLE | {"compared_requests": 90.0, "crossover_low": 4.0, "crossover_high": 6.0, "crossover_fits": 0.0},
            ],
            CrossoverSignals(5.0, 6.0, 120.0, fits=False),
        ),
        ([IDLE | {"compared_requests": 40.0, "crossover_high": 6.0}], CrossoverSignals(None, 6.0, 40.0, fits=None)),
    ],
)
def test_servers_count_by_the_requests_that_they_compared(servers, crossover) -> None:
    (signals,) = variant_signals(server(**values) for values in servers)
    assert (signals.variant, signals.in_flight) == ("low", 2.0 * len(servers))
    assert signals.crossover == crossover


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_no_numbers_are_left_out(value: float) -> None:
    silent = dict.fromkeys(("requests_total", "in_flight_requests", "regime", "ready", "compared_requests"), value)
    one, other = server(**IDLE | {"ready": 1.0}), server(**silent)
    (signals,) = variant_signals([one, other])
    assert (signals.requests, signals.in_flight, signals.ready, signals.crossover) == (9.0, 2.0, 1, None)
