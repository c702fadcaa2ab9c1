"""Loads of the agent on a fake server: once, in order, and reported."""

from dataclasses import replace

from tests.agent.sync.bench import Bench, text
from tests.waiting import until

from argosy_agent.contract import LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.folder.repository import RepositoryFolder


async def test_a_version_bump_swaps_and_drops_the_old_folder(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    assert bench.fake.loaded == {"m": {1: "one"}}
    await bench.settle(bench.model("m", v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {2: "two"}}
    assert bench.entries("m") == {"2", "config.pbtxt"}
    assert bench.fake.calls == ["load m", "load m"]


async def test_a_model_is_loaded_by_its_served_name_and_reported_by_its_own(bench: Bench) -> None:
    model = replace(bench.model("Bert_v2.1", v1=bench.source("a", "one")), resource="bert")
    await bench.settle(model)
    assert bench.fake.calls == ["load Bert_v2.1"]
    assert bench.states() == {("bert", 1): LoadState.READY}
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert bench.fake.calls == ["load Bert_v2.1"]
    assert bench.states() == {("bert", 1): LoadState.READY}
    broken = replace(bench.model("Bert_v2.1", v2=bench.source("b", "two", broken=True)), resource="bert")
    await bench.settle(broken)
    assert bench.states() == {("bert", 1): LoadState.READY, ("bert", 2): LoadState.UNAVAILABLE}


async def test_a_later_agent_also_reports_the_digest_of_what_serves(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    [reported] = {item.digest for item in bench.agent.ledger.loaded()}
    assert reported.startswith("listing:")
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert {item.digest for item in bench.agent.ledger.loaded()} == {reported}
    await bench.settle(bench.model("m", v1=bench.source("a", "other")))
    assert {item.digest for item in bench.agent.ledger.loaded()}.isdisjoint({reported, ""})


async def test_nothing_is_loaded_twice(bench: Bench) -> None:
    model = bench.model("m", v1=bench.source("a", "one"))
    await bench.settle(model)
    await bench.settle(model)
    bench.agent = bench.new_agent()
    await bench.settle(model)
    assert bench.fake.calls == ["load m"]


async def test_many_loads_are_not_as_many_questions_for_the_full_index(bench: Bench) -> None:
    models = [bench.model(f"m{n}", v1=bench.source(f"m{n}", str(n))) for n in range(20)]
    await bench.settle(*models)
    assert bench.fake.queries["index"] == 1
    assert set(bench.states().values()) == {LoadState.READY}
    await bench.settle(models[0])
    assert bench.fake.loaded == {"m0": {1: "0"}}
    assert bench.fake.queries["index"] <= 4


async def test_changed_files_of_the_same_version_are_loaded(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    await bench.settle(bench.model("m", v1=bench.source("a", "another")))
    assert bench.fake.loaded == {"m": {1: "another"}}


async def test_an_ensemble_waits_for_its_steps_and_goes_before_them(bench: Bench) -> None:
    step = bench.model("step", v1=bench.source("a", "one"))
    pipe = RenderedModel("pipe", text("pipe", 1), {1: VersionSource()}, {"step": 1})
    await bench.settle(pipe, step)
    assert bench.fake.calls == ["load step", "load pipe"]
    assert bench.entries("pipe") == {"1", "config.pbtxt"}
    await bench.settle()
    assert bench.fake.calls[2:] == ["unload pipe", "unload step"]
    assert not any((bench.root / "server/repository").iterdir())


async def test_an_ensemble_of_a_broken_step_says_what_it_waits_for(bench: Bench) -> None:
    step = bench.model("step", v1=bench.source("a", "one", broken=True))
    pipe = RenderedModel("pipe", text("pipe", 1), {1: VersionSource()}, {"step": 1})
    await bench.settle(step, pipe)
    (reported,) = [item for item in bench.agent.ledger.loaded() if item.model == "pipe"]
    assert (reported.state, reported.reason) == (LoadState.LOADING, "waiting for step")


async def test_a_new_version_is_reported_ready_while_the_old_one_still_answers(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    bench.fake.draining = {("m", 1)}
    await bench.agent.observe()
    await bench.converge(RenderedRepository("server", (bench.model("m", v2=bench.source("b", "two")),)))
    await until(lambda: bench.states().get(("m", 2)) is LoadState.READY)
    await until(lambda: bench.states() == {("m", 1): LoadState.UNLOADING, ("m", 2): LoadState.READY})
    assert bench.agent.busy
    assert bench.entries("m") == {"1", "2", "config.pbtxt"}
    # killed now, it knows that the new version is loaded
    assert RepositoryFolder(bench.root / "server", "").applied()["m"].keys.keys() == {2}
    bench.fake.draining = set()
    await until(lambda: not bench.agent.busy)
    assert bench.entries("m") == {"2", "config.pbtxt"}
