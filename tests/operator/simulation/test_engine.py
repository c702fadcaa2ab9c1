"""An engine that batches token by token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.simulation.servers.engine import EngineCurve, EngineServer


def engine(curve, requests, until=1000.0, cuts=()):
    arrivals = [at for at, _, _ in requests]
    prompts, outputs = (np.array([request[column] for request in requests], dtype=float) for column in (1, 2))
    server = EngineServer(curve, prompts, outputs, 0.0)
    offered = 0
    for cut in [*sorted(cuts), until]:
        count = sum(at <= cut for at in arrivals)
        server.offer(arrivals[offered:count], range(offered, count))
        server.advance(cut)
        offered = count
    return server


def test_a_sequence_takes_its_prompt_and_its_steps():
    served = engine(EngineCurve((0.1,), prompt_token_s=0.01), [(0.0, 50, 10)]).served
    assert served.ended == [pytest.approx(0.5 + 10 * 0.1)]
    assert served.first == [pytest.approx(0.6)]
    assert served.tokens == pytest.approx(10)


def test_a_prompt_keeps_the_others_waiting_for_their_next_token():
    served = engine(EngineCurve((0.1, 0.1), prompt_token_s=0.01), [(0.0, 0, 10), (0.45, 50, 1)]).served
    assert served.tokens == pytest.approx(11)
    assert served.between_s == pytest.approx(11 * 0.1 + 0.5)


def test_two_share_the_steps_and_a_third_waits_for_its_turn():
    server = engine(EngineCurve((0.1, 0.15)), [(0.0, 0, 10), (0.0, 0, 20), (0.0, 0, 10)])
    assert server.served.ended == [pytest.approx(1.5), pytest.approx(3.0), pytest.approx(3.0)]
    assert sorted(server.served.started) == [0.0, 0.0, pytest.approx(1.5)]
    assert server.served.between_s == pytest.approx(2 * 3.0)
    assert (server.queued, server.running) == (0, 0)


@settings(max_examples=60)
@given(
    requests=st.lists(st.tuples(st.floats(0, 20), st.integers(0, 50), st.integers(1, 30)), min_size=1, max_size=25),
    cuts=st.lists(st.floats(0, 40), max_size=6),
)
def test_advancing_in_steps_changes_nothing(requests, cuts):
    curve, requests = EngineCurve((0.05, 0.08, 0.1), 0.002), sorted(requests)
    once, pieces = engine(curve, requests), engine(curve, requests, cuts=cuts)
    assert sorted(once.served.ended) == pytest.approx(sorted(pieces.served.ended))
    assert len(once.served.ended) == len(requests)
    assert once.served.tokens == pytest.approx(sum(tokens for _, _, tokens in requests))
    assert once.served.between_s == pytest.approx(pieces.served.between_s)
    assert all(begun >= came for came, begun in zip(once.served.arrived, once.served.started, strict=True))


@pytest.mark.parametrize(("field", "value"), [("step_s", ()), ("step_s", (-1.0,)), ("prompt_token_s", -1.0)])
def test_a_curve_that_cannot_be_is_refused_by_its_field(field, value):
    with pytest.raises(ValueError, match=field):
        EngineCurve(**{"step_s": (1.0,), field: value})
