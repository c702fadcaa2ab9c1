"""Log settings: each level on its own, changed while the server runs."""

import io
import logging
from collections.abc import Iterator

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.telemetry.log_settings import LogSettings


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    before = (list(logger.handlers), logger.level)
    yield logger
    logger.handlers[:], level = before
    logger.setLevel(level)


def lines(settings: LogSettings, root: logging.Logger) -> list[str]:
    """Return the levels of the lines that are written."""
    stream = io.StringIO()
    settings.install(stream, stream)
    log = logging.getLogger("argosy.test")
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        log.log(level, "told")
    return [line.split()[-3] for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (LogSettings(), ["INFO", "WARNING", "ERROR"]),
        (LogSettings(log_verbose_level=1), ["DEBUG", "INFO", "WARNING", "ERROR"]),
        (LogSettings(log_info=False), ["WARNING", "ERROR"]),
        (LogSettings(log_warning=False), ["INFO", "ERROR"]),
        (LogSettings(log_info=False, log_warning=False, log_error=False), []),
    ],
)
def test_levels_are_switched_one_by_one(settings: LogSettings, expected: list[str], root: logging.Logger) -> None:
    assert lines(settings, root) == expected


def test_a_change_takes_effect_at_once(root: logging.Logger) -> None:
    stream = io.StringIO()
    settings = LogSettings()
    settings.install(stream, stream)
    log = logging.getLogger("argosy.test")
    log.debug("before")
    settings.change({"log_verbose_level": 2, "log_format": "ISO8601"})
    log.debug("after")
    (line,) = stream.getvalue().splitlines()
    stamp, _, rest = line.partition(" ")
    assert rest == "DEBUG argosy.test: after"
    assert (len(stamp), stamp[10], stamp[-1]) == (20, "T", "Z")


@pytest.mark.parametrize(
    ("change", "kind"),
    [({"log_file": "x"}, ErrorKind.UNSUPPORTED), ({"log_format": "x"}, ErrorKind.INVALID_ARG)],
)
def test_a_refused_change_changes_nothing(change: dict[str, str], kind: ErrorKind) -> None:
    settings = LogSettings()
    before = settings.values()
    with pytest.raises(ServingError) as caught:
        settings.change({"log_info": False, **change})
    assert caught.value.kind is kind
    assert settings.values() == before


def test_problems_have_a_stream_of_their_own(root: logging.Logger) -> None:
    out, problems = io.StringIO(), io.StringIO()
    LogSettings(log_verbose_level=1).install(out, problems)
    log = logging.getLogger("argosy.test")
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        log.log(level, "told")
    assert [line.split()[-3] for line in out.getvalue().splitlines()] == ["DEBUG", "INFO"]
    assert [line.split()[-3] for line in problems.getvalue().splitlines()] == ["WARNING", "ERROR"]
