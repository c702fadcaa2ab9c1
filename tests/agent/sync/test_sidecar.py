"""An agent's loop against a fake server: latch, record, retained copies, and what wakes it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.documents import AgentState, fingerprint, repository_text
from argosy_agent.contract.fitting import LONGEST_REASON
from argosy_agent.contract.sizes import text_bytes
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.sync import sidecar as looping
from argosy_agent.sync.agent import Agent
from argosy_agent.sync.control import UnreachableError
from argosy_agent.sync.sidecar import Record, Sidecar, read_record, write_record


@dataclass
class Offers:
    """In place of a publisher: the states that it was offered."""

    states: list[AgentState] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, state: AgentState) -> None:
        """Keep it."""
        self.states.append(state)
        self.came.set()

    async def until(self, what: Callable[[AgentState], object]) -> AgentState:
        """Wait for a state of which `what` holds."""
        while not self.states or not what(self.states[-1]):
            self.came.clear()
            await self.came.wait()
        return self.states[-1]

    async def run(self) -> None:
        """Do nothing."""


class Storing(Storage):
    """A storage that remembers what it was to keep."""

    retained: set[str] = set()  # noqa: RUF012

    def keep(self, keys: Any) -> None:
        """Remember and keep."""
        self.retained = set(keys)
        super().keep(keys)


class Bench:
    """A loop, its agent and a fake server."""

    def __init__(self, root: Path, fake: Any, pod: str = "uid") -> None:
        self.root, self.fake = root, fake
        (root / "cache").mkdir(exist_ok=True)
        self.offers, self.wake = Offers(), asyncio.Event()
        self.storage = Storing(root / "cache")
        folder = RepositoryFolder(root / "server", "")
        self.agent = Agent(folder, self.storage, fake, lambda: 0.0, self.wake.set)
        self.sidecar = Sidecar(self.agent, self.storage, self.offers, root / "server", pod, self.wake)  # type: ignore[arg-type]

    def model(self, name: str, broken: bool = False, steps: dict[str, int] | None = None) -> RenderedModel:
        """Return a model from a folder, or an ensemble."""
        config = f'name: "{name}"\nversion_policy {{ specific {{ versions: [1] }} }}\n'
        if steps:
            return RenderedModel(name, config, {1: VersionSource()}, steps)
        folder = self.root / "sources" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ("broken" if broken else "weights")).write_text("x")
        return RenderedModel(name, config, {1: VersionSource(folder.as_uri())})

    def want(self, *models: RenderedModel) -> str:
        """Return the text that requests these models."""
        return repository_text(RenderedRepository("pool-0", models))

    async def rounds(self) -> AgentState:
        """Run rounds until nothing is under way, and one more; return the last state."""
        for _ in range(6):
            await self.sidecar.round()
            while self.agent.busy:
                self.wake.clear()
                await self.wake.wait()
        return self.offers.states[-1]


@pytest.fixture
async def bench(tmp_path: Path, fake: Any) -> Bench:
    """Return a bench."""
    return Bench(tmp_path, fake)


async def test_settled_when_all_are_ready_or_have_failed_once_and_it_stays_so(bench: Bench) -> None:
    assert not (await bench.rounds()).settled
    bench.fake.gone = True
    bench.sidecar._take(bench.want(bench.model("good"), bench.model("bad", broken=True)))
    waiting = await bench.rounds()
    assert (waiting.live, waiting.settled) == (False, False)
    assert [model.state for model in waiting.models] == [LoadState.LOADING] * 2
    bench.fake.gone = False
    await bench.sidecar.round()
    assert not bench.offers.states[-1].settled
    state = await bench.rounds()
    assert state.settled
    assert {item.model: item.state for item in state.models} == {
        "good": LoadState.READY,
        "bad": LoadState.UNAVAILABLE,
    }
    bench.sidecar._take(bench.want(bench.model("other")))
    await bench.sidecar.round()
    assert bench.offers.states[-1].settled


async def test_another_size_is_reported_and_nothing_is_loaded_again(bench: Bench) -> None:
    model = bench.model("m")
    bench.sidecar._take(bench.want(model))
    await bench.rounds()
    bench.fake.calls.clear()
    larger = replace(model, versions={1: replace(model.versions[1], memory=60, exclusive=True)})
    bench.sidecar._take(bench.want(larger))
    assert (await bench.rounds()).applied.models == (larger,)
    bench.sidecar._take(bench.want(model))
    assert (await bench.rounds()).applied.models == (model,)
    assert bench.fake.calls == []


async def test_an_ensemble_of_a_broken_step_does_not_hold_up_the_others(bench: Bench) -> None:
    step, pipe = bench.model("step", broken=True), bench.model("pipe", steps={"step": 1})
    over = bench.model("over", steps={"pipe": 1})
    lost = bench.model("lost", steps={"elsewhere": 1})
    bench.sidecar._take(bench.want(bench.model("good"), step, pipe, over, lost))
    assert (await bench.rounds()).settled


async def test_ensembles_that_use_one_another_do_not_hold_up_the_others(bench: Bench) -> None:
    one, two = bench.model("one", steps={"two": 1}), bench.model("two", steps={"one": 1})
    bench.sidecar._take(bench.want(one, two, bench.model("good")))
    assert (await bench.rounds()).settled


async def test_an_agent_that_starts_again_knows_what_it_did(bench: Bench, fake: Any, tmp_path: Path) -> None:
    text = bench.want(bench.model("m"))
    bench.sidecar._take(text)
    await bench.rounds()
    again = Bench(tmp_path, fake)
    await again.sidecar.round()
    (state,) = again.offers.states
    assert (state.live, state.settled, state.desired) == (True, True, fingerprint(text))
    assert [model.state for model in state.models] == [LoadState.READY]
    assert fake.calls == ["load m"]
    fake.loaded.clear()
    await again.rounds()
    assert fake.calls == ["load m"] * 2


async def test_what_was_recorded_of_another_pod_is_nothing(bench: Bench, fake: Any, tmp_path: Path) -> None:
    bench.sidecar._take(bench.want(bench.model("m")))
    await bench.rounds()
    other = Bench(tmp_path, fake, "other")
    await other.sidecar.round()
    assert (other.offers.states[0].settled, other.offers.states[0].desired) == (False, "")
    write_record(tmp_path / "server", Record("third", True, "text"))
    assert read_record(tmp_path / "server", "third") == Record("third", True, "text")
    for damage in ("", "[]", json.dumps({"pod": "third", "settled": "yes", "desired": ""})):
        (tmp_path / "server" / "agent.json").write_text(damage)
        assert read_record(tmp_path / "server", "third") == Record("third")


async def test_cached_models_that_are_served_are_retained(bench: Bench) -> None:
    bench.sidecar._take(bench.want(bench.model("m")))
    await bench.rounds()
    assert bench.storage.retained == bench.agent.ledger.cache_keys() != set()
    assert {path.name for path in bench.storage._folder.glob("file-*")} == bench.storage.retained
    bench.sidecar._take(bench.want())
    await bench.rounds()
    assert bench.storage.retained == set()


async def test_a_very_long_reason_is_cut(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def load(name: str) -> None:
        raise UnreachableError("x" * 10_000)

    monkeypatch.setattr(bench.fake, "load", load)
    bench.sidecar._take(bench.want(bench.model("m")))
    (reported,) = (await bench.rounds()).models
    assert text_bytes(reported.reason) == LONGEST_REASON
    assert reported.reason.endswith("x…")


class Texts:
    """A source whose texts are put into a queue."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str] = asyncio.Queue()

    async def texts(self) -> AsyncIterator[str]:
        """Yield the texts as they are put."""
        while True:
            yield await self.queue.get()


async def test_a_new_text_the_end_of_a_load_and_the_end_itself_wake_the_loop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looping, "POLL_S", 3600.0)
    source, stop = Texts(), asyncio.Event()
    running = asyncio.create_task(bench.sidecar.run(source, stop))
    await source.queue.put(bench.want(bench.model("m")))
    await bench.offers.until(lambda state: state.settled)
    await source.queue.put("no document")
    state = await bench.offers.until(lambda state: state.problem)
    assert state.desired == fingerprint(bench.want(bench.model("m")))
    stop.set()
    await running
    assert bench.fake.loaded == {"m": {1: "x"}}
