"""A model leaves a server once no client asks for it any more: times and counts are the test's."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.agent.conftest import FakeControl
from tests.waiting import until

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.sync import unloading
from argosy_agent.sync.agent import Agent
from argosy_agent.sync.control import SlowError, Tally, UnreachableError
from argosy_agent.sync.unloading import UntilIdle
from argosy_common.idle import AT_ONCE, IdlePeriod

PERIOD = IdlePeriod(5.0, 60.0)
WALL_S = 1_800_000_000.0


def tally(version: int = 1, *, requests: int = 1, ago_s: float = 0.0) -> Tally:
    """Return the tally of a version of `m`, whose last request was `ago_s` before the test began."""
    return Tally("m", version, requests, 0, 0, 0, int((WALL_S - ago_s) * 1000))


@dataclass
class Waiting:
    """A wait, on a clock that goes on by `step_s` with every look at the server."""

    fake: FakeControl
    step_s: float = 1.0
    now: float = 0.0

    async def run(
        self,
        period: IdlePeriod = PERIOD,
        on_look: Callable[[float], None] = lambda now: None,
        leaves: Callable[[], bool] = lambda: True,
    ) -> float:
        """Return how long it waits; `on_look` gets the time before each look."""

        def clock() -> float:
            now, self.now = self.now, self.now + self.step_s
            on_look(self.now)
            return now

        await UntilIdle(self.fake, period, clock, lambda: WALL_S).wait("m", frozenset((1, 2)), leaves)
        return self.now - self.step_s


@pytest.fixture
def waiting(fake: FakeControl, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """Return a wait that takes no time."""
    monkeypatch.setattr(unloading, "POLL_S", 0)
    return Waiting(fake)


async def test_without_a_period_the_server_is_not_even_queried(waiting: Waiting) -> None:
    await waiting.run(AT_ONCE)
    assert waiting.fake.calls == []


async def test_what_was_requested_a_moment_ago_is_waited_for(waiting: Waiting) -> None:
    waiting.fake.tallies = [tally(1, ago_s=30), tally(2, ago_s=2)]
    assert await waiting.run() == 3.0


@pytest.mark.parametrize("tallies", [[], [Tally("m", 1, 0, 0, 0, 0)], [tally(1, ago_s=5)], [tally(3)]])
async def test_what_no_one_asks_for_goes_at_once(waiting: Waiting, tallies: list[Tally]) -> None:
    waiting.fake.tallies = tallies
    assert await waiting.run() == 0.0


async def test_requests_restart_the_period(waiting: Waiting) -> None:
    def request(now: float) -> None:
        waiting.fake.tallies = [tally(1, requests=int(min(now, 20.0)))]

    waiting.fake.tallies = [tally(1, requests=0)]
    assert await waiting.run(on_look=request) == 25.0


async def test_endless_requests_end_at_the_limit(waiting: Waiting) -> None:
    def request(now: float) -> None:
        waiting.fake.tallies = [tally(1, requests=int(now))]

    waiting.fake.tallies = [tally(1, requests=0)]
    assert await waiting.run(on_look=request) == 60.0


async def test_a_model_of_a_slow_server_counts_as_used(waiting: Waiting) -> None:
    waiting.fake.tallies = [tally(1, ago_s=100)]
    waiting.fake.troubles = [SlowError("slow")] * 8
    assert await waiting.run() == 13.0


async def test_a_server_that_is_gone_is_not_waited_for(waiting: Waiting) -> None:
    waiting.fake.tallies = [tally()]
    waiting.fake.troubles = [UnreachableError("gone")]
    assert await waiting.run() == 0.0 - waiting.step_s


async def test_it_ends_when_the_model_is_desired_again(waiting: Waiting) -> None:
    waiting.fake.tallies = [tally()]
    assert await waiting.run(leaves=lambda: waiting.now < 3.0) == 2.0


@dataclass
class Bench:
    """An agent that unloads with care, its fake server, and a clock that is set by hand."""

    root: Path
    fake: FakeControl
    now: float = 0.0

    def __post_init__(self) -> None:
        folder = RepositoryFolder(self.root / "server", "server.log")
        storage = Storage(self.root / "cache")
        self.agent = Agent(folder, storage, self.fake, lambda: self.now, idle_period=PERIOD)
        for version in (1, 2):
            (self.root / f"source-{version}").mkdir()
            (self.root / f"source-{version}" / "weights").write_text(str(version))

    def model(self, *versions: int) -> RenderedModel:
        """Return `m` with these versions."""
        text = f'name: "m"\nversion_policy {{ specific {{ versions: {list(versions)} }} }}\n'
        return RenderedModel("m", text, {v: VersionSource((self.root / f"source-{v}").as_uri()) for v in versions})

    async def want(self, *models: RenderedModel) -> None:
        """Run one round towards these models."""
        await self.agent.observe()
        await self.agent.aim(RenderedRepository("server", models))
        self.agent.converge()

    async def ended(self) -> None:
        """Run rounds until nothing is under way."""
        await until(lambda: not self.agent.busy)

    async def looked(self) -> None:
        """Run rounds until the server's counts have been read twice more."""
        seen = self.fake.calls.count("statistics m")
        await until(lambda: self.fake.calls.count("statistics m") > seen + 1)


@pytest.fixture
def bench(tmp_path: Path, fake: FakeControl, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a bench with room for copies."""
    monkeypatch.setattr(unloading, "POLL_S", 0)
    (tmp_path / "cache").mkdir()
    return Bench(tmp_path, fake)


def just_requested(version: int) -> Tally:
    """Return the tally of a version whose last request is in the future: it stays recent."""
    return Tally("m", version, 1, 0, 0, 0, 2**52)


async def test_a_model_is_unloaded_once_it_is_idle(bench: Bench) -> None:
    await bench.want(bench.model(1))
    await bench.ended()
    bench.fake.tallies = [just_requested(1)]
    await bench.want()
    await bench.looked()
    bench.now = 4.9
    await bench.looked()
    assert bench.fake.loaded == {"m": {1: "1"}}
    bench.now = 5.0
    await bench.ended()
    assert bench.fake.loaded == {}
    assert bench.fake.calls[-1] == "unload m"


async def test_a_model_that_is_desired_again_was_never_unloaded(bench: Bench) -> None:
    await bench.want(bench.model(1))
    await bench.ended()
    bench.fake.tallies = [just_requested(1)]
    await bench.want()
    await bench.looked()
    await bench.want(bench.model(1))
    await bench.ended()
    assert bench.fake.loaded == {"m": {1: "1"}}
    assert [call for call in bench.fake.calls if not call.startswith("statistics")] == ["load m"]


async def test_a_version_that_goes_is_served_until_it_is_idle(bench: Bench) -> None:
    await bench.want(bench.model(1, 2))
    await bench.ended()
    bench.fake.tallies = [just_requested(1), just_requested(2)]
    await bench.want(bench.model(2))
    await bench.looked()
    assert set(bench.fake.loaded["m"]) == {1, 2}
    bench.now = 5.0
    await bench.ended()
    assert set(bench.fake.loaded["m"]) == {2}


async def test_a_new_version_waits_for_no_one(bench: Bench) -> None:
    await bench.want(bench.model(1))
    await bench.ended()
    bench.fake.tallies = [just_requested(1)]
    await bench.want(bench.model(2))
    await bench.ended()
    assert set(bench.fake.loaded["m"]) == {2}


async def test_a_version_that_is_desired_again_never_went(bench: Bench) -> None:
    await bench.want(bench.model(1, 2))
    await bench.ended()
    bench.fake.tallies = [just_requested(1), just_requested(2)]
    await bench.want(bench.model(2))
    await bench.looked()
    await bench.want(bench.model(1, 2))
    await bench.ended()
    assert set(bench.fake.loaded["m"]) == {1, 2}
    assert [call for call in bench.fake.calls if not call.startswith("statistics")] == ["load m"]


@pytest.mark.parametrize("successor", [[], [Tally("m", 2, 0, 3, 0, 0)]])
async def test_a_version_stays_while_its_successor_answers_nothing(bench: Bench, successor: list[Tally]) -> None:
    await bench.want(bench.model(1, 2))
    await bench.ended()
    bench.fake.tallies = [tally(1, ago_s=10**6), *successor]
    await bench.want(bench.model(2))
    await bench.looked()
    bench.now = 59.9
    await bench.looked()
    assert set(bench.fake.loaded["m"]) == {1, 2}
    bench.now = 60.0
    await bench.ended()
    assert set(bench.fake.loaded["m"]) == {2}
