"""Requests that wait: counted, bounded, passed on when a server has the model, told why when none has in time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from argosy_agent.activator import servers
from argosy_agent.activator.holding import Holder, HoldingError, Limits, Refusal, UnreachableError
from argosy_agent.contract.activation import ActivatedMember, Activation, Endpoint

HERE, THERE = Endpoint("10.0.0.1", 8000, 8001), Endpoint("10.0.0.2", 8000, 8001)


@dataclass
class Heard:
    """What a listener was told."""

    held: list[dict[str, int]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self, held: Mapping[str, int]) -> None:
        self.held.append(dict(held))
        self.came.set()

    def waited(self, name: str, seconds: float) -> None:
        assert seconds >= 0
        self.waits.append(name)

    async def until(self, held: dict[str, int]) -> None:
        """Until just so many wait."""
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
    """A model and where it is ready."""
    return Activation((ActivatedMember("resource", "m", timeout_s, endpoints, reason),))


@pytest.fixture
def heard() -> Heard:
    return Heard()


def holder(heard: Heard, known: Activation, limits: Limits | None = None) -> Holder:
    made = Holder(limits or Limits(), heard)
    made.update(known)
    return made


async def test_what_some_server_has_is_passed_on_and_never_counted(heard: Heard) -> None:
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


async def test_where_no_server_takes_a_connection_the_request_waits_until_one_does(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "ASIDE_S", 0.01)
    fleet, held = Fleet(down={HERE}), holder(heard, members(HERE))
    waiting = asyncio.create_task(held.reach("m", 1, fleet.connect))
    await heard.until({"resource": 1})
    while len(fleet.asked) < 3:  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.005)
    assert heard.held == [{"resource": 1}]
    fleet.down.clear()
    assert await waiting == HERE


async def test_who_waited_in_vain_is_told_for_how_long_and_why(heard: Heard) -> None:
    held = holder(heard, members(timeout_s=0, reason="no GPU is free"))
    with pytest.raises(HoldingError) as raised:
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
async def test_what_is_held_has_bounds(heard: Heard, limits: Limits, words: str) -> None:
    held = holder(heard, members(), limits)
    waiting = asyncio.create_task(held.reach("m", 10, Fleet().connect))
    await heard.until({"resource": 1})
    with pytest.raises(HoldingError, match=words) as raised:
        await held.reach("m", 10, Fleet().connect)
    assert raised.value.refusal is Refusal.FULL
    held.update(members(HERE))
    assert await waiting == HERE


async def test_one_who_leaves_waits_no_more(heard: Heard) -> None:
    held = holder(heard, members(), Limits(requests=1))
    waiting = asyncio.create_task(held.reach("m", 1, Fleet().connect))
    await heard.until({"resource": 1})
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert heard.held[-1] == {}


@pytest.mark.parametrize("known", [Activation(), members()])
async def test_nothing_is_held_for_what_is_not_known(heard: Heard, known: Activation) -> None:
    held = holder(heard, known)
    waiting = asyncio.create_task(held.reach("m", 1, Fleet().connect))
    if known.members:
        await heard.until({"resource": 1})
        held.update(Activation())
    with pytest.raises(HoldingError, match="no InferenceModel or Ensemble of this pool") as raised:
        await waiting
    assert raised.value.refusal is Refusal.UNKNOWN
