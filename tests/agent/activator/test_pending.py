"""Requests that wait: counted, bounded, passed on once a server has the model, or refused with a reason."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from tests.waiting import until

from argosy_agent.activator import members as members_module
from argosy_agent.activator import pending
from argosy_agent.activator.fair_queue import Limits
from argosy_agent.activator.pending import NotForwardedError, PendingRequests, Refusal, UnreachableError
from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint

HERE, THERE = Endpoint("10.0.0.1", 8000, 8001), Endpoint("10.0.0.2", 8000, 8001)


@dataclass
class Heard:
    """A listener that records its calls."""

    queued: list[dict[str, int]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    refused: dict[str, int] = field(default_factory=dict)

    def changed(self, queued: Mapping[str, int], refused: Mapping[str, int]) -> None:
        self.queued.append(dict(queued))
        self.refused = dict(refused)
        self.came.set()

    def waited(self, name: str, seconds: float) -> None:
        assert seconds >= 0
        self.waits.append(name)

    async def until(self, queued: dict[str, int]) -> None:
        """Wait until just so many requests wait."""
        while not self.queued or self.queued[-1] != queued:
            self.came.clear()
            await self.came.wait()


@dataclass
class Fleet:
    """Servers: those in `down` take no connection."""

    down: set[Endpoint] = field(default_factory=set)
    tried: list[Endpoint] = field(default_factory=list)

    async def connect(self, endpoint: Endpoint) -> Endpoint:
        self.tried.append(endpoint)
        await asyncio.sleep(0)
        if endpoint in self.down:
            raise UnreachableError("refused")
        return endpoint


def members(*endpoints: Endpoint, timeout_s: float = 600, reason: str = "") -> Activation:
    """Return a model and its ready endpoints."""
    return Activation((ActivatedMember("resource", "m", timeout_s, endpoints, reason),))


@pytest.fixture
def heard() -> Heard:
    return Heard()


def holder(heard: Heard, activation: Activation, limits: Limits | None = None) -> PendingRequests:
    made = PendingRequests(limits or Limits(), heard)
    made.update(activation)
    return made


async def test_what_some_server_has_is_passed_on_and_never_recorded(heard: Heard) -> None:
    fleet, queue = Fleet(), holder(heard, members(HERE, THERE))
    assert {await queue.reach("m", 1, fleet.connect) for _ in range(4)} == {HERE, THERE}
    assert (heard.queued, heard.waits, queue.seen) == ([], [], 4)


async def test_a_request_waits_and_is_passed_on_once_a_server_has_the_model(heard: Heard) -> None:
    fleet, queue = Fleet(), holder(heard, members())
    first, second = (asyncio.create_task(queue.reach("m", 1, fleet.connect)) for _ in range(2))
    await heard.until({"resource": 2})
    queue.update(members(reason="loading"))
    queue.update(members(HERE))
    assert await first == await second == HERE
    assert heard.queued[-1] == {}
    assert heard.waits == ["resource"] * 2


async def test_a_server_that_takes_no_connection_is_left_out_for_another(heard: Heard) -> None:
    fleet, queue = Fleet(down={HERE}), holder(heard, members(HERE, THERE))
    assert {await queue.reach("m", 1, fleet.connect) for _ in range(4)} == {THERE}
    assert fleet.tried.count(HERE) <= 1


async def test_a_request_waits_until_a_server_takes_its_connection(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members_module, "ASIDE_S", 0.01)
    fleet, queue = Fleet(down={HERE}), holder(heard, members(HERE))
    waiting = asyncio.create_task(queue.reach("m", 1, fleet.connect))
    await heard.until({"resource": 1})
    await until(lambda: len(fleet.tried) >= 3)
    assert heard.queued == [{"resource": 1}]
    fleet.down.clear()
    assert await waiting == HERE


async def test_a_request_that_waited_in_vain_learns_for_how_long_and_why(heard: Heard) -> None:
    queue = holder(heard, members(timeout_s=0, reason="no GPU is free"))
    with pytest.raises(NotForwardedError) as raised:
        await queue.reach("m", 1, Fleet().connect)
    assert raised.value.refusal is Refusal.TIMEOUT
    assert raised.value.message == "model 'm' was not ready within 0 s: no GPU is free; ask again later"
    assert heard.queued == [{"resource": 1}, {}]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(requests=1), "1 requests wait already, the most that are held"),
        (Limits(size=15), "with it 20 bytes would wait, of at most 15"),
    ],
)
async def test_what_waits_has_bounds(heard: Heard, limits: Limits, words: str) -> None:
    queue = holder(heard, members(), limits)
    waiting = asyncio.create_task(queue.reach("m", 10, Fleet().connect))
    await heard.until({"resource": 1})
    with pytest.raises(NotForwardedError, match=words) as raised:
        await queue.reach("m", 10, Fleet().connect)
    assert raised.value.refusal is Refusal.FULL
    queue.update(members(HERE))
    assert await waiting == HERE


def several(*names: str, ready: str = "") -> Activation:
    """Return models of these names; `ready` is the one that a server has."""
    return Activation(tuple(ActivatedMember(name, name, 600, (HERE,) if name == ready else ()) for name in names))


async def refusal_of(request: "asyncio.Task[Endpoint]") -> NotForwardedError:
    """Return the error by which it is refused."""
    with pytest.raises(NotForwardedError) as raised:
        await request
    return raised.value


@pytest.mark.parametrize("limits", [Limits(requests=8), Limits(size=80)])
async def test_a_model_that_fills_the_queue_gives_way_to_one_that_has_fewer(heard: Heard, limits: Limits) -> None:
    fleet, queue = Fleet(), holder(heard, several("big", "small"), limits)
    big = [asyncio.create_task(queue.reach("big", 10, fleet.connect)) for _ in range(8)]
    await heard.until({"big": 8})
    small = [asyncio.create_task(queue.reach("small", 10, fleet.connect)) for _ in range(6)]
    last = [await refusal_of(request) for request in (*big[4:], *small[4:])]
    assert {request.refusal for request in last} == {Refusal.FULL}
    assert "gave way to one of a model that has fewer" in last[0].message
    assert "gave way" not in last[-1].message
    assert heard.queued[-1] == {"big": 4, "small": 4}
    queue.update(several("big", "small", ready="small"))
    assert [await request for request in small[:4]] == [HERE] * 4
    assert not any(request.done() for request in big[:4])
    queue.update(several("big", "small", ready="big"))
    assert [await request for request in big[:4]] == [HERE] * 4
    assert heard.queued[-1] == {}


async def test_one_large_request_sends_no_smaller_share_away(heard: Heard) -> None:
    queue = holder(heard, several("large", "small"), Limits(size=100))
    small = asyncio.create_task(queue.reach("small", 40, Fleet().connect))
    await heard.until({"small": 1})
    assert (
        "with it 110 bytes would wait"
        in (await refusal_of(asyncio.create_task(queue.reach("large", 70, Fleet().connect)))).message
    )
    queue.update(several("large", "small", ready="small"))
    assert await small == HERE


async def test_what_finds_no_space_is_demand_for_a_while(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "REFUSED_S", 0.01)
    queue = holder(heard, several("big", "large"), Limits(size=10))
    waiting = asyncio.create_task(queue.reach("big", 10, Fleet().connect))
    await heard.until({"big": 1})
    await refusal_of(asyncio.create_task(queue.reach("large", 11, Fleet().connect)))
    assert (heard.queued[-1], heard.refused) == ({"big": 1}, {"large": 1})
    while heard.refused:
        heard.came.clear()
        await heard.came.wait()
    queue.update(several("big", "large", ready="big"))
    assert await waiting == HERE


async def test_one_who_leaves_waits_no_more(heard: Heard) -> None:
    queue = holder(heard, members(), Limits(requests=1))
    waiting = asyncio.create_task(queue.reach("m", 1, Fleet().connect))
    await heard.until({"resource": 1})
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert heard.queued[-1] == {}


@pytest.mark.parametrize("activation", [Activation(), members()])
async def test_no_request_waits_for_what_is_unknown(heard: Heard, activation: Activation) -> None:
    queue = holder(heard, activation)
    waiting = asyncio.create_task(queue.reach("m", 1, Fleet().connect))
    if activation.members:
        await heard.until({"resource": 1})
        queue.update(Activation())
    with pytest.raises(NotForwardedError, match="no InferenceModel or Ensemble of this pool") as raised:
        await waiting
    assert raised.value.refusal is Refusal.UNKNOWN
