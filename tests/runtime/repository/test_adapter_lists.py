"""Lists of adapters of a model that is loaded again or unloaded while its list is read."""

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from argosy_runtime.repository.adapters import listed
from argosy_runtime.repository.adapters.listed import ListedAdapters
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.records import ModelRecord


class Lists:
    """A model `base` whose lists are read when they may be, and the names that its adapters have."""

    def __init__(self) -> None:
        self.base = ModelRecord("base", desired=True)
        self.may_be_read: dict[str, threading.Event] = {}
        self.read: list[str] = []
        self.loaded: set[str] = set()
        records = {"base": self.base}

        async def load(folder: ModelFolder) -> None:
            record = records.setdefault(folder.name, ModelRecord(folder.name))
            record.desired, record.folder = True, folder
            self.loaded.add(folder.name)

        async def unload(name: str, base: str) -> None:
            assert (self.adapters.owner(name), base) == ("base", "base")
            records[name].desired, records[name].folder = False, None
            self.loaded.remove(name)

        self.adapters = ListedAdapters(records, load, unload)

    def prepare(self, *names: str) -> str:
        """Let the model list these adapters."""
        prepared: Any = ",".join(names)
        self.base.prepared = prepared
        self.may_be_read[prepared] = threading.Event()
        return str(prepared)

    def folders(self, prepared: str) -> dict[str, ModelFolder]:
        self.read.append(prepared)
        assert self.may_be_read[prepared].wait(60)
        return {name: _folder(name) for name in prepared.split(",")}

    async def until_read(self, lists: Iterable[str]) -> None:
        """Wait until these lists are being read."""
        while not set(lists) <= set(self.read):  # noqa: ASYNC110  (they are read on threads)
            await asyncio.sleep(0.001)


def _folder(name: str) -> ModelFolder:
    return ModelFolder(name, Path(name), "", (1,), {1: ()}, name, declared_by="base")


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Lists:
    lists = Lists()
    monkeypatch.setattr(listed, "folders_of", lists.folders)
    return lists


def test_a_list_that_was_read_while_its_model_was_unloaded_is_dropped(lists: Lists) -> None:
    async def run() -> None:
        one = lists.prepare("one")
        following = asyncio.ensure_future(lists.adapters.follow(lists.base))
        await lists.until_read([one])
        lists.base.desired, lists.base.prepared = False, None
        unloading = asyncio.ensure_future(lists.adapters.unloaded("base"))
        lists.may_be_read[one].set()
        await asyncio.gather(following, unloading)

    asyncio.run(run())
    assert lists.loaded == set()
    assert lists.adapters.folder("one") is None
    assert lists.adapters.owner("one") == ""


def test_of_two_lists_the_newest_is_followed_whichever_is_read_first(lists: Lists) -> None:
    async def run() -> None:
        old = lists.prepare("one", "two")
        following = [asyncio.ensure_future(lists.adapters.follow(lists.base))]
        await lists.until_read([old])
        new = lists.prepare("two", "three")
        lists.may_be_read[new].set()
        following.append(asyncio.ensure_future(lists.adapters.follow(lists.base)))
        for _ in range(50):
            await asyncio.sleep(0.001)  # the newest could be there
        lists.may_be_read[old].set()
        await asyncio.gather(*following)

    asyncio.run(run())
    assert lists.loaded == {"two", "three"}
    assert lists.adapters.folder("one") is None
