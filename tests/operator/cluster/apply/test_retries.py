"""What failed waits by itself; times are the test's."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from argosy.cluster.apply.applier import Applier
from argosy.cluster.apply.failures import MOST_S, Retries
from argosy.cluster.cache.cluster_cache import ClusterCache
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.client.errors import ApiError, ForbiddenError, NotFoundError, UnreachableError, translated
from argosy.cluster.client.kinds import Key, Kind

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Time:
    """A clock that is set by hand."""

    now: float = 100.0


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def retries(time: Time) -> Retries:
    return Retries(lambda: time.now)


def fail(retries: Retries, content: object = "a", retry_after: float | None = None) -> float:
    """Record one more failure of the object `m`; return the pause that follows."""
    error = UnreachableError(500, "InternalError", "try later")
    error.retry_after_s = retry_after
    retries.failed("m", content, error)
    assert error.retry_after_s is not None
    return error.retry_after_s


def waits(retries: Retries, identity: str = "m", content: object = "a") -> float:
    """Return the remaining pause; 0 where it may be tried."""
    try:
        retries.check(identity, content)
    except ApiError as error:
        return error.retry_after_s or 0.0
    return 0.0


def test_pauses_double_and_end(time: Time, retries: Retries) -> None:
    assert [fail(retries) for _ in range(4)] == [0.5, 1.0, 2.0, 4.0]
    time.now += 3.0
    assert waits(retries) == 1.0
    time.now += 1.0
    assert waits(retries) == 0.0
    assert [fail(retries) for _ in range(99)][-1] == MOST_S


def test_one_that_fails_holds_up_no_other(retries: Retries) -> None:
    fail(retries)
    assert waits(retries, "n") == 0.0


def test_another_content_does_not_wait_unless_the_server_requested_it(retries: Retries) -> None:
    fail(retries)
    assert waits(retries, content="b") == 0.0
    assert fail(retries, retry_after=7.0) == 7.0
    assert waits(retries, content="b") == 7.0


def test_success_ends_the_row(retries: Retries) -> None:
    fail(retries)
    retries.done("m")
    assert waits(retries) == 0.0
    assert fail(retries) == 0.5


def test_what_is_tried_no_more_is_forgotten(time: Time, retries: Retries) -> None:
    fail(retries)
    time.now += 3600.0
    retries.failed("n", "a", UnreachableError(500, "", "try later"))
    assert retries._failed.keys() == {"n"}


@pytest.mark.parametrize(("message", "seconds"), [("3", 3.0), ("86400", 300.0), ("Wed, 21 Oct 2026", None), ("", None)])
def test_an_answer_says_how_long_to_wait(message: str, seconds: float | None) -> None:
    assert translated(429, "{}", {"Retry-After": message}).retry_after_s == seconds


class Refusing:
    """A connection that refuses to change the Pod `a`, and finds no other Pod."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    async def merge(self, kind: Kind, key: Key, body: object, *, manager: str) -> dict[str, Any]:
        self.requested.append(key[1])
        if key[1] == "a":
            raise ForbiddenError(403, "Forbidden", "a webhook denies it")
        raise NotFoundError(404, "NotFound", "it is gone")


async def test_a_pod_whose_labels_are_denied_waits_and_others_do_not(time: Time) -> None:
    connection = Refusing()
    applier = Applier(connection, cast(ClusterCache, None), lambda: time.now)  # type: ignore[arg-type]
    a, b = (PodView(name, name, "p-0", True, True, False, frozenset(), True, "", NOON) for name in "ab")
    for _ in range(3):
        with pytest.raises(ForbiddenError, match="a webhook denies it"):
            await applier.route(a, "n", Routes(frozenset({"m"})), True)
        await applier.route(b, "n", Routes(frozenset({"m"})), True)
    assert connection.requested == ["a", "b", "b", "b"]
    time.now += 0.5
    with pytest.raises(ForbiddenError):
        await applier.route(a, "n", Routes(frozenset({"m"})), True)
    assert connection.requested.count("a") == 2
