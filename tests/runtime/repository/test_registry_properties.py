"""Models change in any order: nothing is left behind, and every report is true.

The models are played: each start waits until the test says how it ends. Threads are played too (their work is done at
once), so that the order of events is the test's alone.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.repository.options import ControlMode, RepositoryOptions
from argosy_runtime.repository.preparing import Prepared, Preparer
from argosy_runtime.repository.records import State
from argosy_runtime.repository.registry import Registry
from argosy_runtime.telemetry.statistics import ModelStatistics

TENSORS = """
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = 'backend: "python" version_policy { all {} }' + TENSORS
ENSEMBLE = (
    'platform: "ensemble"'
    + TENSORS
    + """ensemble_scheduling { step [
  { model_name: "a" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "m" } },
  { model_name: "%s" model_version: -1 input_map { key: "X" value: "m" } output_map { key: "Y" value: "Y" } } ] }"""
)
TEXTS = {
    "a": [
        MODEL,
        MODEL + "instance_group { count: 2 }",
        MODEL + 'metric_tags { key: "k" value: "1" }',
        MODEL.replace("8", "2"),
        "no configuration",
        MODEL,
    ],
    "b": [MODEL, MODEL + 'metric_tags { key: "k" value: "2" }', MODEL.replace("FP32", "INT8"), MODEL],
    "e": [ENSEMBLE % "b", ENSEMBLE % "a", ENSEMBLE % "e", ENSEMBLE % "none", ENSEMBLE.replace("[ 1 ]", "[ 3 ]") % "b"],
}
OVERRIDE = (
    '{"backend":"python","max_batch_size":8,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[1]}],'
    '"output":[{"name":"Y","data_type":"TYPE_FP32","dims":[1]}]}'
)
OUTCOMES: list[Exception | None] = [None, invalid("refused"), MemoryError("full"), OSError(5, "disk")]


class FakeVersion:
    """A version whose start and end the test decides. In `world.alive` while it holds anything."""

    decoupled = False
    problem = ""

    def __init__(self, world: "World", prepared: Prepared, version: int) -> None:
        self.name, self.version, self.config = prepared.config.name, version, prepared.config
        self.folder = prepared.folder.path
        self.statistics = ModelStatistics()
        self.labels: dict[str, list[str]] = {}
        self.ready = True
        self._world = world

    async def start(self) -> None:
        self._world.alive.add(self)
        try:
            await self._world.decision()
        except BaseException:
            self._world.alive.discard(self)
            raise

    async def close(self, grace: float) -> None:
        assert self in self._world.alive, "closed once, and only what has started"
        self.ready = False
        try:
            if grace:
                await self._world.decision()
        finally:
            self._world.alive.discard(self)

    async def change(self, prepared: Prepared) -> "FakeChange":
        await self._world.decision()
        return FakeChange(self, prepared)

    def submit(self, request: object, deliver: object) -> None: ...

    def hold(self) -> None: ...

    def release(self) -> None: ...


class FakeChange:
    """A change that is ready; put into force or taken back, once, while its version lives."""

    def __init__(self, version: FakeVersion, prepared: Prepared) -> None:
        self._version, self._prepared = version, prepared
        self._world = version._world
        self._world.alive.add(self)

    def commit(self) -> Awaitable[None]:
        self._world.alive.remove(self)
        assert self._version in self._world.alive
        self._version.config = self._prepared.config
        return asyncio.sleep(0)

    async def discard(self) -> None:
        self._world.alive.remove(self)


class Inline(ThreadPoolExecutor):
    """A thread that is through at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class World:
    """A registry on a folder, its callers, and what waits for a decision."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.alive: set[FakeVersion | FakeChange] = set()
        self.waiting: list[asyncio.Future[None]] = []
        self.callers: list[asyncio.Task[None]] = []
        for name in TEXTS:
            for version in (1, 2):
                (path / name / str(version)).mkdir(parents=True)
            self.write(name, 0)
        options = RepositoryOptions((path,), ControlMode.EXPLICIT, autocomplete=False, parallel_loads=2)
        self.registry = Registry(
            options, Preparer(options, {}, None), lambda prepared, version: FakeVersion(self, prepared, version)
        )

    def write(self, name: str, choice: int) -> None:
        """Write another configuration."""
        (self.path / name / "config.pbtxt").write_text(TEXTS[name][choice % len(TEXTS[name])])

    def write_own(self, name: str, version: int, choice: int) -> None:
        """Write a version's own configuration, or remove it."""
        path = self.path / name / str(version) / "argosy.pbtxt"
        texts = [text for choices in TEXTS.values() for text in choices]
        if choice < len(texts):
            path.write_text(texts[choice])
        else:
            path.unlink(missing_ok=True)

    def lose(self, choice: int) -> None:
        """Let a version be unable to answer."""
        versions = sorted((one for one in self.alive if isinstance(one, FakeVersion)), key=id)
        if versions:
            versions[choice % len(versions)].ready = False

    async def decision(self) -> None:
        """Wait until the test decides."""
        waiting = asyncio.get_running_loop().create_future()
        self.waiting.append(waiting)
        await waiting

    def decide(self, choice: int, outcome: Exception | None) -> None:
        """Let one that waits go on, or fail."""
        self.waiting = [item for item in self.waiting if not item.done()]
        if self.waiting:
            one = self.waiting[choice % len(self.waiting)]
            one.set_result(None) if outcome is None else one.set_exception(outcome)

    def ask(self, work: Awaitable[None]) -> None:
        """Send a request to the registry; ignore a refusal."""

        async def call() -> None:
            try:
                await work
            except ServingError:
                return

        self.callers.append(asyncio.get_running_loop().create_task(call()))

    def files(self) -> set[Path]:
        """Return the folders with files of load requests."""
        folder = self.registry._overrides._folder
        return set() if folder is None else set(Path(folder.name).iterdir())

    async def turn(self) -> None:
        """Run until nothing can go on without a decision."""
        for _ in range(40):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Let all that waits succeed, until nothing waits."""
        await self.turn()
        while any(not item.done() for item in self.waiting):
            self.decide(0, None)
            await self.turn()


names = st.sampled_from(sorted(TEXTS))
numbers = st.integers(0, 7)
steps = st.one_of(
    st.tuples(st.just("load"), names),
    st.tuples(st.just("load with files"), st.sampled_from("ab")),
    st.tuples(st.just("unload"), names, st.booleans()),
    st.tuples(st.just("write"), names, numbers),
    st.tuples(st.just("write own"), names, st.sampled_from((1, 2)), st.integers(0, 19)),
    st.tuples(st.just("decide"), numbers, st.sampled_from(OUTCOMES)),
    st.tuples(st.just("decide"), numbers, st.none()),
    st.tuples(st.just("hang up"), numbers),
    st.tuples(st.just("lose"), numbers),
    st.tuples(st.just("turn")),
)


async def play(world: World, step: tuple[Any, ...]) -> None:
    """Play one event."""
    match step:
        case ("load", name):
            world.ask(world.registry.load(name, None, {}))
        case ("load with files", name):
            world.ask(world.registry.load(name, OVERRIDE, {"file:1/model.py": b"x", "file:2/model.py": b"y"}))
        case ("unload", name, dependents):
            world.ask(world.registry.unload(name, dependents))
        case ("write", name, choice):
            world.write(name, choice)
        case ("write own", name, version, choice):
            world.write_own(name, version, choice)
        case ("decide", choice, outcome):
            world.decide(choice, outcome)
        case ("hang up", choice) if world.callers:
            world.callers[choice % len(world.callers)].cancel()
        case ("lose", choice):
            world.lose(choice)
    if step[0] != "hang up":
        await world.turn()


def check(world: World) -> None:
    """Check that what is reported is so."""
    records = world.registry.records
    versions = [version for record in records.values() for version in record.versions.values()]
    assert {version.state for version in versions} <= {State.READY, State.UNAVAILABLE}
    for record in records.values():
        for number, version in record.versions.items():
            answers = version.served is not None and version.served.ready
            assert (version.state is State.READY) == answers
            assert bool(version.reason) == (version.served is None)
            if answers and isinstance(version.served, FakeVersion):
                assert version.served.config == record.prepared.versions[number].config, "each serves as it is declared"
            if answers:
                assert world.registry.find(record.name, str(number)) is version.served
        ready = [number for number, _ in record.serving()]
        if ready:
            assert world.registry.find(record.name).version == max(ready)
    served = {version.served for version in versions if isinstance(version.served, FakeVersion)}
    assert world.alive == served, "nothing lives but what serves"


async def story(path: Path, events: list[tuple[Any, ...]], hurried: bool) -> None:
    """Play all events, then settle (or not), then end."""
    asyncio.get_running_loop().set_default_executor(Inline())
    world = World(path)
    for event in events:
        await play(world, event)
    if not hurried:
        await world.settle()
        check(world)
        used = {item.folder.parent for item in world.alive if not item.folder.is_relative_to(path)}
        assert world.files() == used, "files of a load request stay while a version needs them, and no longer"
    closing = asyncio.get_running_loop().create_task(world.registry.close(1.0))
    while not closing.done():
        await world.turn()
        world.decide(0, None)
    await closing
    check(world)
    assert not world.alive
    assert world.registry._overrides._folder is None
    await asyncio.gather(*world.callers, return_exceptions=True)


@examples(100)
@given(events=st.lists(steps, max_size=30), hurried=st.booleans())
def test_nothing_is_left_behind(events: list[tuple[Any, ...]], hurried: bool) -> None:
    path = Path(tempfile.mkdtemp(prefix="argosy-models-"))
    try:
        asyncio.run(asyncio.wait_for(story(path, events, hurried), 60))
    finally:
        shutil.rmtree(path)
