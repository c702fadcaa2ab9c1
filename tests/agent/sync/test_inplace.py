"""A change for which a server loads nothing again."""

import asyncio
import shutil
from dataclasses import replace

import pytest
from tests.agent.sync.bench import Bench, text

from argosy_agent.contract import FailureKind, LoadState, RenderedModel, RenderedRepository
from argosy_agent.sync.control import RefusedError
from argosy_agent.sync.loading import LOADS_AT_ONCE


def in_place(model: RenderedModel, note: str) -> RenderedModel:
    """Return the same model with another configuration, for which a server reloads nothing."""
    return replace(model, config_text=f"{model.config_text}# {note}\n", reload_key="one", config_key=note)


async def test_a_change_inplace_rewrites_the_configuration_alone(bench: Bench) -> None:
    source = bench.source("a", "one")
    (bench.root / "sources" / "a" / "labels.txt").write_text("cat")
    model = RenderedModel("m", text("m", 1) + 'output { name: "Y" label_filename: "labels.txt" }\n', {1: source})
    folder = bench.root / "server/repository/m"

    def standing() -> dict[str, tuple[int, int]]:
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}

    await bench.settle(in_place(model, "a"))
    before, requested = standing(), bench.fake.calls.count("load m")
    shutil.rmtree(bench.root / "cache")
    (bench.root / "cache").mkdir()
    await bench.settle(in_place(model, "b"))
    after = standing()
    assert (folder / "config.pbtxt").read_text().endswith("# b\n")
    assert before.pop("config.pbtxt") != after.pop("config.pbtxt")
    assert (before, bench.fake.calls.count("load m")) == (after, requested + 1)
    assert bench.states() == {("m", 1): LoadState.READY}


async def test_a_change_inplace_does_not_wait_behind_models_that_load(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(in_place(model, "a"))
    others = [bench.model(f"n{at}", v1=bench.source(f"n{at}", "n")) for at in range(LOADS_AT_ONCE)]
    load, go_on, begun = bench.fake.load, asyncio.Event(), asyncio.Queue[str]()

    async def slow(name: str) -> None:
        begun.put_nowait(name)
        if name != "m":
            await go_on.wait()
        await load(name)

    monkeypatch.setattr(bench.fake, "load", slow)
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (in_place(model, "a"), *others)))
    assert {await begun.get() for _ in others} == {other.name for other in others}
    await bench.converge(RenderedRepository("server", (in_place(model, "b"), *others)))
    assert await begun.get() == "m"
    go_on.set()
    await bench.settle(in_place(model, "b"), *others)
    assert bench.states()["m", 1] is LoadState.READY


async def test_a_change_inplace_that_is_refused_is_taken_back_and_reported(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(in_place(model, "a"))

    async def refuse(name: str) -> None:
        raise RefusedError("instance 'm_0_1' found no memory")

    monkeypatch.setattr(bench.fake, "load", refuse)
    await bench.settle(in_place(model, "b"))
    (reported,) = bench.agent.ledger.loaded()
    assert (reported.answers, reported.former, reported.failure) == (True, True, FailureKind.LOAD)
    assert "found no memory" in reported.reason
    assert (bench.root / "server/repository/m/config.pbtxt").read_text().endswith("# a\n")
