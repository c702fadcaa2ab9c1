"""Closed and open loops in virtual time."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.operator.bench.virtual_time import run

from argosy.bench.answers import Answer
from argosy.bench.budgets import NO_BUDGET, Budget
from argosy.bench.figures import Trial, rates
from argosy.bench.load.driver import drive
from argosy.bench.plan import Level, arrivals, extent

TOKENS = 10


class Server:
    """Answers after `seconds(now)`, its tokens evenly over that time."""

    def __init__(self, seconds: Callable[[float], float]) -> None:
        self.seconds = seconds
        self.running = 0
        self.concurrencies: list[int] = []

    async def send(self, body: bytes, intended: float) -> Answer:
        now = asyncio.get_running_loop().time
        sent, took = now(), self.seconds(now())
        self.running += 1
        self.concurrencies.append(self.running)
        await asyncio.sleep(took)
        self.running -= 1
        steps = [sent + took * (token + 1) / TOKENS for token in range(TOKENS)]
        return Answer(intended, sent, steps, end=now(), prompt_tokens=5, output_tokens=TOKENS)


def trial(server: Server, level: Level, requests: int) -> Trial:
    sent = extent(level, requests)

    async def measure() -> Trial:
        bodies = [b"%d" % number for number in range(sent.total)]
        return Trial(await drive(server.send, bodies, level, "seed", asyncio.get_running_loop().time), sent)

    return run(measure())


@pytest.mark.parametrize("clients", [1, 3, 64])
def test_a_closed_loop_has_so_many_in_flight(clients: int) -> None:
    server = Server(lambda now: 2.0)
    measured = trial(server, Level(concurrency=clients), 6)
    assert len(measured.answers) == clients + max(6, 2 * clients) + clients - 1
    assert max(server.concurrencies) == clients
    assert server.concurrencies[clients - 1 :] == [clients] * (len(measured.answers) - clients + 1)


@pytest.mark.parametrize("clients", [1, 3, 64])
def test_the_rate_is_that_of_constant_load(clients: int) -> None:
    """By Little's law: clients over the latency, without the beginning and the end of the trial."""
    amounts = rates(trial(Server(lambda now: 2.0), Level(concurrency=clients), 6), NO_BUDGET)
    assert amounts.requests == pytest.approx(clients / 2.0)
    assert amounts.tokens == pytest.approx(clients * TOKENS / 2.0)


def test_a_slow_start_is_not_measured() -> None:
    """What the first request of each client takes, such as a compilation, is not in the figures."""
    server = Server(lambda now: 60.0 if now < 1 else 1.0)
    measured = trial(server, Level(concurrency=4), 16)
    assert rates(measured, NO_BUDGET).requests == pytest.approx(4.0)
    assert {answer.latency for answer in measured.complete} == {1.0}


def test_arrivals_are_a_poisson_process_of_the_seed() -> None:
    times = arrivals(20.0, 4001, "0/20/s/0")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert times == arrivals(20.0, 4001, "0/20/s/0") != arrivals(20.0, 4001, "1/20/s/0")
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert times[0] == 0.0
    assert mean == pytest.approx(1 / 20, rel=0.05)
    assert deviation == pytest.approx(mean, rel=0.1)


def test_an_open_loop_sends_at_its_times_however_long_answers_take() -> None:
    level = Level(rate=5.0)
    measured = trial(Server(lambda now: 100.0), level, 40)
    assert [answer.sent for answer in measured.answers] == pytest.approx(arrivals(5.0, 50, "seed"))
    assert [answer.intended for answer in measured.answers] == pytest.approx(arrivals(5.0, 50, "seed"))


def test_a_wait_in_the_sender_is_part_of_the_latency() -> None:
    """A sender that is stopped for ten seconds sends all of its requests then, and their latency says so."""

    async def stopped() -> list[Answer]:
        loop = asyncio.get_running_loop()
        server = Server(lambda now: 0.1)

        async def send(body: bytes, intended: float) -> Answer:
            if 10 < loop.time() < 20:
                await asyncio.sleep(20 - loop.time())
            return await server.send(body, intended)

        return await drive(send, [b""] * 300, Level(rate=10.0), "seed", loop.time)

    answers = run(stopped())
    waited = [answer for answer in answers if 10 < answer.intended < 20]
    assert len(waited) > 50
    for answer in waited:
        assert answer.latency == pytest.approx(20 - answer.intended + 0.1)
        assert answer.time_to_first_token == pytest.approx(20 - answer.intended + 0.01)


def test_goodput_counts_requests_within_all_budgets() -> None:
    """Every other request takes three times as long."""
    sent: list[float] = []

    def seconds(now: float) -> float:
        sent.append(now)
        return 1.0 if len(sent) % 2 else 3.0

    measured = trial(Server(seconds), Level(concurrency=1), 41)
    both = rates(measured, Budget(latency=3.5, tpot=0.35))
    assert both.goodput == pytest.approx(both.requests)
    assert rates(measured, Budget(ttft=0.2)).goodput == pytest.approx(both.requests / 2)
    assert rates(measured, Budget(ttft=0.05)).goodput == 0
    assert rates(measured, Budget(latency=3.5, tpot=0.2)).goodput == pytest.approx(both.requests / 2)


def test_one_failing_client_does_not_end_the_others() -> None:
    async def send(body: bytes, intended: float) -> Answer:
        await asyncio.sleep(1)
        return Answer(intended, intended, error="HTTP 503: asleep" if body == b"3" else "", arrivals=[intended + 1])

    async def measure() -> list[Answer]:
        now = asyncio.get_running_loop().time
        return await drive(send, [b"%d" % number for number in range(8)], Level(concurrency=2), "", now)

    assert [answer.error for answer in run(measure())] == ["", "", "", "HTTP 503: asleep", "", "", "", ""]
