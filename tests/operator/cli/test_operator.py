"""What the operator's process logs, and how it collects garbage."""

import gc
import logging
from collections.abc import Iterator

import pytest
import typer

from argosy.cli.cluster.operator import GC_THRESHOLDS, log_to_stderr, operator

LOG_LEVELS = {"kopf.objects": logging.CRITICAL, "httpx": logging.WARNING}


@pytest.fixture
def levels() -> Iterator[None]:
    """Restore them afterwards."""
    before = {name: logging.getLogger(name).level for name in LOG_LEVELS}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(("name", "level"), LOG_LEVELS.items())
def test_readings_and_refused_resources_are_no_lines(name: str, level: int, caplog: pytest.LogCaptureFixture) -> None:
    log_to_stderr()
    logging.getLogger(name).log(level - 10, "HTTP Request: GET http://10.0.0.1:8002/metrics")
    logging.getLogger(name).log(level, "an error")
    assert [record.message for record in caplog.records] == ["an error"]


@pytest.fixture
def thresholds() -> Iterator[None]:
    """Restore them afterwards."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("levels", "thresholds")
def test_a_fleets_memory_is_seldom_looked_through_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    result = []

    class Idle:
        def __init__(self, *_: object) -> None:
            pass

        async def run(self) -> int:
            result.append(gc.get_threshold())
            return 0

    monkeypatch.setattr("argosy.controller.process.Operator", Idle)
    with pytest.raises(typer.Exit):
        operator()
    assert result == [GC_THRESHOLDS]
