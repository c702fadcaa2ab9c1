"""Requests that wait: counted, bounded, passed on when a server has the model, told why when none has in time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from argosy_agent.activator import members as members_module
from argosy_agent.activator import pending
from argosy_agent.activator.fair_queue import Limits
from argosy_agent.activator.pending import NotForwardedError, PendingRequests, Refusal, UnreachableError
from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint

HERE, THERE = Endpoint("10.0.0.1", 8000, 8001), Endpoint("10.0.0.2", 8000, 8001)


@dataclass
class Heard:
    """What a listener was told."""

    held: list[dict[str, int]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    refused: dict[str, int] = field(default_factory=dict)

    def changed(self, held: Mapping[str, int], refused: Mapping[str, int]) -> None:
        self.held.append(dict(held))
        self.refused = dict(refused)
        self.came.set()

    def waited(self, name: str, seconds: float) -> None:
        assert seconds >= 0
        self.waits.append(name)

    async def until(self, held: dict[str, int]) -> None:
        """Wait until just so many requests wait."""
        while not self.held or self.held[-1] != held:
            self.came.clear()
            await self.came.wait()


@dataclass
class Fleet:
    """Servers: those in `down` take no connection."""

    down: set[Endpoint] = field(default_factory=set)
    asked: list[Endpoint] = field(default_factory=list)

    async def connect(self, endpoint: Endpoint) -> Endpoint:
        self.asked.append(endpoint)
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


def holder(heard: Heard, known: Activation, limits: Limits | None = None) -> PendingRequests:
    made = PendingRequests(limits or Limits(), heard)
    made.update(known)
    return made


async def test_what_some_server_has_is_passed_on_and_never_recorded(heard: Heard) -> None:
    fleet, held = Fleet(), holder(heard, members(HERE, THERE))
    assert {await held.reach("m", 1, fleet.connect) for _ in range(4)} == {HERE, THERE}
    assert (heard.held, heard.waits, held.seen) == ([], [], 4)


async def test_a_request_waits_and_is_passed_on_once_a_server_has_the_model(heard: Heard) -> None:
    fleet, held = Fleet(), holder(heard, members())
    first, second = (asyncio.create_task(held.reach("m", 1, fleet.connect)) for _ in range(2))
    await heard.until({"resource": 2})
    held.update(members(reason="loading"))
    held.update(members(HERE))
    assert await first == await second == HERE
    assert heard.held[-1] == {}
    assert heard.waits == ["resource"] * 2


async def test_a_server_that_takes_no_connection_is_left_out_for_another(heard: Heard) -> None:
    fleet, held = Fleet(down={HERE}), holder(heard, members(HERE, THERE))
    assert {await held.reach("m", 1, fleet.connect) for _ in range(4)} == {THERE}
    assert fleet.asked.count(HERE) <= 1


async def test_a_request_waits_until_a_server_takes_its_connection(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members_module, "ASIDE_S", 0.01)
    fleet, held = Fleet(down={HERE}), holder(heard, members(HERE))
    waiting = asyncio.create_task(held.reach("m", 1, fleet.connect))
    await heard.until({"resource": 1})
    while len(fleet.asked) < 3:  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.005)
    assert heard.held == [{"resource": 1}]
    fleet.down.clear()
    assert await waiting == HERE


async def test_a_request_that_waited_in_vain_learns_for_how_long_and_why(heard: Heard) -> None:
    held = holder(heard, members(timeout_s=0, reason="no GPU is free"))
    with pytest.raises(NotForwardedError) as raised:
        await held.reach("m", 1, Fleet().connect)
    assert raised.value.refusal is Refusal.TIMEOUT
    assert raised.value.message == "model 'm' was not ready within 0 s: no GPU is free; ask again later"
    assert heard.held == [{"resource": 1}, {}]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(requests=1), "1 requests wait already, the most that are held"),
        (Limits(size=15), "with it 20 bytes would wait, of at most 15"),
    ],
)
async def test_what_waits_has_bounds(heard: Heard, limits: Limits, words: str) -> None:
    held = holder(heard, members(), limits)
    waiting = asyncio.create_task(held.reach("m", 10, Fleet().connect))
    await heard.until({"resource": 1})
    with pytest.raises(NotForwardedError, match=words) as raised:
        await held.reach("m", 10, Fleet().connect)
    assert raised.value.refusal is Refusal.FULL
    held.update(members(HERE))
    assert await waiting == HERE


def several(*names: str, ready: str = "") -> Activation:
    """Return models of these names; `ready` is the one that a server has."""
    return Activation(tuple(ActivatedMember(each, each, 600, (HERE,) if each == ready else ()) for each in names))


async def refusal_of(request: "asyncio.Task[Endpoint]") -> NotForwardedError:
    """Return the error by which it is refused."""
    with pytest.raises(NotForwardedError) as raised:
        await request
    return raised.value


@pytest.mark.parametrize("limits", [Limits(requests=8), Limits(size=80)])
async def test_a_model_that_fills_the_queue_gives_way_to_one_that_has_fewer(heard: Heard, limits: Limits) -> None:
    fleet, held = Fleet(), holder(heard, several("big", "small"), limits)
    big = [asyncio.create_task(held.reach("big", 10, fleet.connect)) for _ in range(8)]
    await heard.until({"big": 8})
    small = [asyncio.create_task(held.reach("small", 10, fleet.connect)) for _ in range(6)]
    last = [await refusal_of(each) for each in (*big[4:], *small[4:])]
    assert {each.refusal for each in last} == {Refusal.FULL}
    assert "gave way to one of a model that has fewer" in last[0].message
    assert "gave way" not in last[-1].message
    assert heard.held[-1] == {"big": 4, "small": 4}
    held.update(several("big", "small", ready="small"))
    assert [await each for each in small[:4]] == [HERE] * 4
    assert not any(each.done() for each in big[:4])
    held.update(several("big", "small", ready="big"))
    assert [await each for each in big[:4]] == [HERE] * 4
    assert heard.held[-1] == {}


async def test_one_large_request_sends_no_smaller_share_away(heard: Heard) -> None:
    held = holder(heard, several("large", "small"), Limits(size=100))
    small = asyncio.create_task(held.reach("small", 40, Fleet().connect))
    await heard.until({"small": 1})
    assert (
        "with it 110 bytes would wait"
        in (await refusal_of(asyncio.create_task(held.reach("large", 70, Fleet().connect)))).message
    )
    held.update(several("large", "small", ready="small"))
    assert await small == HERE


async def test_what_finds_no_space_is_demand_for_a_while(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "REFUSED_S", 0.01)
    held = holder(heard, several("big", "large"), Limits(size=10))
    waiting = asyncio.create_task(held.reach("big", 10, Fleet().connect))
    await heard.until({"big": 1})
    await refusal_of(asyncio.create_task(held.reach("large", 11, Fleet().connect)))
    assert (heard.held[-1], heard.refused) == ({"big": 1}, {"large": 1})
    while heard.refused:
        heard.came.clear()
        await heard.came.wait()
    held.update(several("big", "large", ready="big"))
    assert await waiting == HERE


async def test_one_who_leaves_waits_no_more(heard: Heard) -> None:
    held = holder(heard, members(), Limits(requests=1))
    waiting = asyncio.create_task(held.reach("m", 1, Fleet().connect))
    await heard.until({"resource": 1})
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert heard.held[-1] == {}


@pytest.mark.parametrize("known", [Activation(), members()])
async def test_no_request_waits_for_what_is_unknown(heard: Heard, known: Activation) -> None:
    held = holder(heard, known)
    waiting = asyncio.create_task(held.reach("m", 1, Fleet().connect))
    if known.members:
        await heard.until({"resource": 1})
        held.update(Activation())
    with pytest.raises(NotForwardedError, match="no InferenceModel or Ensemble of this pool") as raised:
        await waiting
    assert raised.value.refusal is Refusal.UNKNOWN
