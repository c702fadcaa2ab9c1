"""The adapters of a model, and the instances that have or lack them."""

from pathlib import Path

import pytest

from argosy_runtime.backends.engines.commands import AddAdapter, Command, RemoveAdapter
from argosy_runtime.errors import ServingError, internal, invalid, not_found
from argosy_runtime.repository.serving.adapter_table import AdapterTable, LoadedAdapter

ONE, TWO = LoadedAdapter("one", Path("/one")), LoadedAdapter("two", Path("/two"))


class Engine:
    """An instance that has adapters, and refuses those of some names."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)
        self.adapters: set[str] = set()

    async def manage(self, command: Command) -> None:
        assert isinstance(command, AddAdapter | RemoveAdapter)
        if isinstance(command, AddAdapter):
            if command.name in self.refused:
                raise invalid("does not fit")
            self.adapters.add(command.name)
        elif command.name not in self.adapters:
            raise not_found(f"no adapter '{command.name}'")
        else:
            self.adapters.remove(command.name)


async def nothing(command: Command) -> None:
    """Carry out a command where no instance is ready."""


async def table(engine: Engine, *adapters: LoadedAdapter) -> AdapterTable:
    """Return the table of an instance that has these adapters, or has refused them."""
    made = AdapterTable()
    made.loaded.update({adapter.name: adapter for adapter in adapters})
    await made.load(engine.manage)
    return made


async def test_an_instance_is_brought_up_to_date() -> None:
    engine = Engine()
    adapters = await table(engine, ONE)
    present = adapters.present
    await adapters.remove(ONE, nothing)
    await adapters.add(TWO, nothing)
    assert await adapters.load(engine.manage, present) == []
    assert engine.adapters == {"two"}


async def test_an_adapter_that_was_refused_is_not_unloaded() -> None:
    engine = Engine("one")
    adapters = await table(engine, ONE, TWO)
    assert adapters.failures == {"one": "does not fit"}
    present = adapters.present
    assert present == {"two": TWO}
    await adapters.remove(ONE, nothing)
    assert await adapters.load(engine.manage, present) == []


async def test_an_adapter_that_was_refused_is_tried_again() -> None:
    engine = Engine("one")
    adapters = await table(engine, ONE)
    present = adapters.present
    engine.refused.clear()
    await adapters.load(engine.manage, present)
    assert (engine.adapters, adapters.failures) == ({"one"}, {})


async def test_an_adapter_whose_load_fails_later_may_be_missing() -> None:
    engine = Engine("one")
    adapters = await table(engine)
    recorded: list[dict[str, LoadedAdapter]] = []

    async def manage(command: Command) -> None:
        if isinstance(command, AddAdapter):
            recorded.append(adapters.present)  # The instance falls asleep meanwhile.
        await engine.manage(command)

    with pytest.raises(ServingError, match="does not fit"):
        await adapters.add(ONE, manage)
    assert recorded == [{"one": ONE}]
    assert await adapters.load(engine.manage, recorded[0]) == []


async def test_an_adapter_that_cannot_be_unloaded_is_an_error() -> None:
    adapters = await table(Engine())

    async def broken(command: Command) -> None:
        raise internal("no memory")

    with pytest.raises(ServingError, match="no memory"):
        await adapters.load(broken, {"one": ONE})
