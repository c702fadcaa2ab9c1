"""Changes of the configuration of a version whose instances fall asleep, or are woken, meanwhile."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from tests.runtime.execution.conftest import cancelled_tasks
from tests.runtime.execution.fakes import Client, ask, settle
from tests.runtime.repository.test_sleeping import Engine
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.engines.commands import Wake
from argosy_runtime.errors import ServingError, internal, invalid
from argosy_runtime.execution.calls.server import ServerCalls
from argosy_runtime.execution.instance_group import NewInstance, OnDeath
from argosy_runtime.modelconfig import InstancePlacement, parse_text
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.options import RepositoryOptions
from argosy_runtime.repository.preparing import Prepared
from argosy_runtime.repository.serving.instances import InstanceFactory
from argosy_runtime.repository.serving.served import PreparedChange, ServedModel

__all__ = ["cancelled_tasks"]

pytestmark = pytest.mark.usefixtures("cancelled_tasks")
_TENSORS = (("input", "X"), ("output", "Y"), ("output", "Z"))


def on_gpus(*gpus: int) -> Prepared:
    """Return a configuration with an instance on each of these GPUs."""
    groups = "".join(f'instance_group {{ name: "g" count: 1 kind: KIND_GPU gpus: {gpu} }}' for gpu in gpus)
    tensors = "".join(f'{kind} {{ name: "{name}" data_type: TYPE_FP32 dims: 1 }}' for kind, name in _TENSORS)
    config = parse_text(f'name: "m" backend: "python" max_batch_size: 8 {tensors} {groups}')
    return Prepared(ModelFolder("m", Path("/models/m"), None, (1,), {1: ()}, ""), config, (1,), config)


class Bench:
    """A version with an instance on each of these GPUs, which is the instance's name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *gpus: int) -> None:
        self.made: list[Engine] = []
        self.outcomes: dict[type, Exception | str] = {}
        monkeypatch.setattr(InstanceFactory, "maker", self._maker)
        machine = {0: "9.0", 1: "9.0", 2: "9.0"}
        self.model = ServedModel(on_gpus(*gpus), 1, machine, cast(ServerCalls, None), RepositoryOptions(paths=()))

    def _maker(self, config: ModelConfig, placement: InstancePlacement) -> NewInstance:
        def make(on_death: OnDeath) -> Engine:
            self.made.append(Engine(str(placement.device_id), on_death, self.outcomes))
            return self.made[-1]

        return make

    async def loaded(self, error: ServingError | None = None) -> None:
        """Let all instances load that do."""
        await settle()
        for engine in self.made:
            if engine.loading:
                engine.load(error)
        await settle()

    @property
    def serving(self) -> list[str]:
        """The instances that take batches."""
        return sorted(self.model._dispatcher.instances)

    @property
    def in_memory(self) -> list[str]:
        """The instances that are loaded, asleep or not."""
        return sorted(engine.name for engine in self.made if engine.holds)

    async def changing(self, *gpus: int) -> "asyncio.Task[PreparedChange]":
        """Begin to change the GPUs; the additional instances are being loaded."""
        change = asyncio.create_task(self.model.change(on_gpus(*gpus)))
        await settle()
        return change

    def submit(self) -> Client:
        client = Client()
        client.submission = self.model.submit(ask(), client.deliver)
        return client


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bench:
    """Return a version that serves on the GPUs of the test's parameter, or on the first."""
    made = Bench(monkeypatch, *getattr(request, "param", (0,)))
    starting = asyncio.create_task(made.model._dispatcher.start())
    await made.loaded()
    await starting
    return made


@pytest.mark.parametrize(("bench", "desired"), [((0,), (0, 1)), ((0, 1), (2,))], indirect=["bench"])
async def test_no_instance_falls_asleep_during_a_change(bench: Bench, desired: tuple[int, ...]) -> None:
    change = await bench.changing(*desired)
    await bench.model.sleep()
    assert not bench.model.asleep
    await bench.loaded()
    await (await change).commit()
    assert bench.serving == bench.in_memory == sorted(map(str, desired))
    await bench.model.sleep()
    assert bench.model.asleep, "it may sleep again"


async def test_an_instance_that_sleeps_is_woken_and_changed(bench: Bench) -> None:
    await bench.model.sleep()
    change = await bench.changing(0, 1)
    await bench.loaded()
    await (await change).commit()
    assert bench.serving == ["0", "1"]
    assert [engine.name for engine in bench.made] == ["0", "1"], "the first is not loaded again"


async def test_an_instance_that_falls_asleep_is_woken_and_replaced(bench: Bench) -> None:
    sleep = asyncio.create_task(bench.model.sleep())
    await asyncio.sleep(0)
    change = await bench.changing(1)
    client = bench.submit()
    bench.made[0].finish()
    assert client.over
    await bench.loaded()
    await (await change).commit()
    await sleep
    assert bench.serving == bench.in_memory == ["1"]


@pytest.mark.parametrize("wakes", [True, False])
async def test_an_instance_that_cannot_be_woken_is_replaced(bench: Bench, wakes: bool) -> None:
    await bench.model.sleep()
    bench.outcomes[Wake] = internal("no memory")
    change = await bench.changing(1)
    await bench.loaded(internal("no memory"))
    if wakes:  # by a request that comes while the others load
        client = bench.submit()
        await bench.loaded()
        bench.made[-1].finish()
        assert client.over
    await bench.loaded()
    await (await change).commit()
    assert bench.serving == bench.in_memory == ["1"]
    assert not bench.model.asleep


@pytest.mark.parametrize("ends", ["fails", "is discarded", "is cancelled"])
async def test_a_version_may_sleep_again_after_a_change_that_does_not_apply(bench: Bench, ends: str) -> None:
    change = await bench.changing(0, 1)
    if ends == "is discarded":
        await bench.loaded()
        await (await change).discard()
    elif ends == "is cancelled":
        change.cancel()
        await asyncio.wait([change])
    else:
        await bench.loaded(invalid("no weights"))
        with pytest.raises(ServingError, match="no weights"):
            await change
    await bench.model.sleep()
    assert bench.model.asleep
    assert bench.in_memory == ["0"]
