"""A server refuses files: what served goes on, the reason is reported, and the load is tried again."""

import shutil

import pytest
from tests.agent.sync.bench import Bench

from argosy_agent.contract import FailureKind, LoadState, VersionSource


async def test_a_refused_version_is_taken_back_and_reported(bench: Bench) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    config = (bench.root / "server/repository/m/config.pbtxt").read_text()
    await bench.settle(bench.model("m", v1=first, v2=bench.source("b", "two", broken=True)))
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.entries("m") == {"1", "config.pbtxt"}
    assert (bench.root / "server/repository/m/config.pbtxt").read_text() == config
    assert bench.states() == {("m", 1): LoadState.READY, ("m", 2): LoadState.UNAVAILABLE}
    (reported,) = [item.reason for item in bench.agent.ledger.loaded() if item.version == 2]
    assert reported.startswith("failed to load 'm': version 2 is broken; mend its files")


async def test_refused_files_of_the_same_version_are_taken_back_and_reported(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    await bench.settle(bench.model("m", v1=bench.source("a", "another", broken=True)))
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert (bench.root / "server/repository/m/1/weights").read_text() == "one"
    assert bench.states() == {("m", 1): LoadState.UNAVAILABLE}
    assert bench.agent.ledger.loaded()[0].former


async def test_what_failed_is_tried_again_later_and_at_once_when_it_changes(bench: Bench) -> None:
    broken = bench.model("m", v1=bench.source("a", "one", broken=True))
    await bench.settle(broken)
    assert bench.fake.calls == ["load m"]
    bench.now = 2.5
    await bench.settle(broken)
    assert bench.fake.calls == ["load m"] * 2
    bench.now = 4.0
    await bench.settle(broken)
    assert bench.fake.calls == ["load m"] * 2
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.agent.ledger.failures == {}


@pytest.mark.parametrize("fault", ["refused", "not there"])
async def test_a_fresh_server_serves_older_versions_if_the_newest_fails(bench: Bench, fault: str) -> None:
    first = bench.source("a", "one")
    second = bench.source("b", "two", broken=True) if fault == "refused" else VersionSource("foo://nowhere/x")
    desired = bench.model("m", v1=first, v2=second)
    await bench.settle(desired)
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.states() == {("m", 1): LoadState.READY, ("m", 2): LoadState.UNAVAILABLE}
    assert bench.agent.ledger.has_been_tried("m")
    shutil.rmtree(bench.root / "sources" / "b", ignore_errors=True)
    desired = bench.model("m", v1=first, v2=bench.source("b", "two"))
    await bench.settle(desired)
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
    assert bench.agent.ledger.failures == {}


async def test_the_full_target_is_tried_again_alongside_what_serves_of_it(bench: Bench) -> None:
    desired = bench.model("m", v1=bench.source("a", "one"), v2=bench.source("b", "two", broken=True))
    await bench.settle(desired)
    calls = len(bench.fake.calls)
    bench.now = 3.0
    await bench.settle(desired)
    assert len(bench.fake.calls) == calls + 1
    assert bench.fake.loaded == {"m": {1: "one"}}
    assert bench.agent.ledger.failures["m"].attempts == 2
    assert bench.entries("m") == {"1", "config.pbtxt"}


async def test_what_fails_for_days_is_still_tried_once_a_minute(bench: Bench) -> None:
    await bench.settle(bench.model("m", v1=bench.source("a", "one", broken=True)))
    ledger = bench.agent.ledger
    for _ in range(2000):
        ledger.failed(ledger.targets["m"], "broken", FailureKind.LOAD, 0.0)
    assert ledger.failures["m"].retry_at == 60.0


async def test_a_fresh_server_serves_the_newer_version_if_an_older_one_fails(bench: Bench) -> None:
    older, newer = bench.source("a", "one", broken=True), bench.source("b", "two")
    await bench.settle(bench.model("m", v1=older, v2=newer))
    assert bench.fake.loaded == {"m": {2: "two"}}
    assert bench.states() == {("m", 1): LoadState.UNAVAILABLE, ("m", 2): LoadState.READY}
    await bench.settle(bench.model("m", v1=bench.source("a", "one"), v2=newer))
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
