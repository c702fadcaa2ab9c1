"""The benchmark of being measured: both ways make the same text, and both parsers read the same in it, or it stops."""

import pytest
from benchmarks.scrapes.__main__ import measured
from benchmarks.scrapes.models import Models, families_of

from argosy_runtime.telemetry.exposition import exposition


def test_it_measures_a_server_and_the_operator():
    figures = measured(models=20, rounds=1)
    assert all(value > 0 for value in figures.values())
    assert figures["active_cpu_change"] == pytest.approx(figures["active_cpu_ms"] / figures["active_at_once_cpu_ms"])


def test_of_its_models_the_active_share_answers():
    fleet = Models(4, active=0.5)
    fleet.answer(10)
    text = exposition(families_of(fleet.series)).decode()
    counts = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith("nv_inference_request_success{")]
    assert counts == ["10", "10", "0", "0"]
