"""Service times, estimated from measurements."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from argosy.autoscaling.capacity.service import Batches, Experience, Service

times = st.floats(0.001, 1.0)


def of(service: Service, *points: tuple[float, float]) -> Experience:
    """Return the experience of executions of (rows, busy instances)."""
    experience = Experience()
    for rows, busy in points:
        experience = experience.after(Batches(rows, busy, service.seconds(rows, busy), 500.0))
    return experience


@given(times, times, st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
def test_service_times_are_recovered_from_batches_of_many_sizes(
    fixed: float, per_row: float, contention: float
) -> None:
    truth = Service(fixed, per_row, contention)
    service = of(truth, (1, 1), (4, 1), (8, 1), (1, 2), (8, 2), (8, 3)).service()
    assert service is not None
    for rows, busy in ((1, 1), (8, 1), (8, 3)):
        assert service.seconds(rows, busy) == pytest.approx(truth.seconds(rows, busy), rel=0.15)


@pytest.mark.parametrize("absurd", [5e-324, 1e-300, 1e200, inf, nan])
@pytest.mark.parametrize("field", ["rows", "seconds"])
def test_impossible_batches_are_left_out(field: str, absurd: float) -> None:
    impossible = structs.replace(Batches(4.0, 1.0, 0.02, 500.0), **{field: absurd})
    experience = of(Service(0.01, 0.002), (1, 1))
    assert experience.after(impossible) == experience
    assert Experience().after(impossible).service() is None


def test_full_contention_is_seen_though_batches_grow_with_instances() -> None:
    service = of(Service(0.0, 0.03, 1.0), (1.1, 1.0), (2.5, 2.0), (6.0, 3.0)).service()
    assert service is not None
    assert service.contention >= 0.8


@given(times, times, st.floats(0.0, 2.0))
def test_the_time_of_prompts_is_subtracted_from_steps(fixed: float, per_row: float, prompt_s: float) -> None:
    """Also where what a prompt takes becomes known only after the steps were seen."""
    truth, experience = Service(fixed, per_row), Experience()
    for rows in (1.0, 4.0, 16.0):
        alone = truth.seconds(rows)
        experience = experience.after(Batches(rows, 1.0, 4 * alone, 500.0, prompts=3 * alone / max(prompt_s, 0.001)))
    service, expected = experience.service(None, max(prompt_s, 0.001)), of(truth, (1, 1), (4, 1), (16, 1)).service()
    assert service is not None
    assert expected is not None
    assert (service.fixed, service.per_row) == (pytest.approx(expected.fixed), pytest.approx(expected.per_row))
