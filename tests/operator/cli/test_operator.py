"""What the operator's process logs."""

import logging
from collections.abc import Iterator

import pytest

from argosy.cli.operator import log_to_stderr

CHATTY = ("kopf.objects", "httpx")


@pytest.fixture
def levels() -> Iterator[None]:
    """They are again what they were."""
    before = {name: logging.getLogger(name).level for name in CHATTY}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize("name", CHATTY)
def test_readings_of_servers_and_events_of_resources_are_no_lines(name: str, caplog: pytest.LogCaptureFixture) -> None:
    log_to_stderr()
    logging.getLogger(name).info("HTTP Request: GET http://10.0.0.1:8002/metrics")
    logging.getLogger(name).warning("a trouble")
    assert [each.message for each in caplog.records] == ["a trouble"]
