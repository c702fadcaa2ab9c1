"""Files that cannot be had, or are wrong: reported with the step and no password, and tried again."""

import errno
import shutil

import pytest
from tests.agent.sync.bench import Bench

from argosy_agent.contract import FailureKind, LoadState, VersionSource
from argosy_agent.sync.loading import load_failure


async def test_files_that_are_not_there_are_reported_and_taken_when_they_come(bench: Bench) -> None:
    missing = VersionSource((bench.root / "sources" / "late").as_uri())
    model = bench.model("m", v1=missing)
    await bench.settle(model)
    assert "no such file or folder" in bench.agent.ledger.loaded()[0].reason
    bench.source("late", "here")
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "here"}}


async def test_a_new_version_is_served_though_the_former_files_are_gone(bench: Bench) -> None:
    former = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=former))
    shutil.rmtree(bench.root / "sources" / "a")
    await bench.settle(bench.model("m", v1=former, v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
    assert {item.state for item in bench.agent.ledger.loaded()} == {LoadState.READY}


async def test_what_fails_is_reported_with_the_step_at_which_it_failed(bench: Bench) -> None:
    good = bench.source("digest", "one")
    wrong = VersionSource(good.uri, "sha256:" + "0" * 64)
    absent = VersionSource((bench.root / "sources" / "nowhere").as_uri())
    await bench.settle(
        bench.model("digest", v1=wrong),
        bench.model("absent", v1=absent),
        bench.model("broken", v1=bench.source("broken", "two", broken=True)),
        bench.model("good", v1=good),
    )
    assert {item.model: item.failure for item in bench.agent.ledger.loaded()} == {
        "digest": FailureKind.DIGEST,
        "absent": FailureKind.FILES,
        "broken": FailureKind.LOAD,
        "good": None,
    }


async def test_only_the_version_whose_files_are_missing_is_at_fault(bench: Bench) -> None:
    absent = VersionSource((bench.root / "sources" / "nowhere").as_uri())
    await bench.settle(bench.model("m", v1=absent, v2=bench.source("a", "two")))
    failures = {item.version: item.failure for item in bench.agent.ledger.loaded()}
    assert failures == {1: FailureKind.FILES, 2: FailureKind.DOWNLOAD}


async def test_a_candidate_whose_files_are_missing_leaves_the_version_next_to_it_as_it_is(bench: Bench) -> None:
    one = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=one))
    absent = VersionSource((bench.root / "sources" / "nowhere").as_uri())
    await bench.settle(bench.model("m", v1=one, v2=absent))
    reported = {item.version: item for item in bench.agent.ledger.loaded()}
    assert reported[2].failure is FailureKind.FILES
    assert "correct spec.storageUri, or put the files there" in reported[2].reason
    assert reported[1].answers
    assert bench.fake.loaded == {"m": {1: "one"}}


async def test_an_archive_that_is_none_is_the_fault_of_its_version(bench: Bench) -> None:
    torn = bench.model("torn", v1=bench.source("b", "no archive"))
    (bench.root / "sources" / "b" / "weights").rename(bench.root / "sources" / "b" / "weights.zip")
    await bench.settle(torn)
    assert [item.failure for item in bench.agent.ledger.loaded()] == [FailureKind.FILES]


async def test_a_disk_that_is_full_counts_as_a_failed_download(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    model = bench.model("m", v1=bench.source("a", "one"))
    with monkeypatch.context() as patched:
        patched.setattr("argosy_agent.folder.repository.write_version", full)
        await bench.settle(model)
    (reported,) = bench.agent.ledger.loaded()
    assert (reported.state, reported.failure) == (LoadState.UNAVAILABLE, FailureKind.DOWNLOAD)
    assert "No space left on device" in reported.reason
    bench.now = 60.0
    await bench.settle(model)
    assert bench.fake.loaded == {"m": {1: "one"}}


async def test_a_fault_of_ours_is_reported_and_tried_again_after_a_pause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise KeyError("nobody thought of it")

    monkeypatch.setattr("argosy_agent.folder.repository.write_version", fault)
    await bench.settle(bench.model("m", v1=bench.source("a", "one")))
    (reported,) = bench.agent.ledger.loaded()
    assert reported.reason == "KeyError: 'nobody thought of it'"
    assert bench.agent.ledger.failures["m"].attempts == 1


@pytest.mark.parametrize("uri", ["https://[x/y", "file:///a\0b"])
async def test_a_uri_that_is_none_holds_up_no_other_model(bench: Bench, uri: str) -> None:
    await bench.settle(bench.model("bad", v1=VersionSource(uri)), bench.model("good", v1=bench.source("a", "one")))
    assert bench.fake.loaded == {"good": {1: "one"}}
    (reported,) = [item for item in bench.agent.ledger.loaded() if item.model == "bad"]
    assert (reported.state, reported.failure) == (LoadState.UNAVAILABLE, FailureKind.DOWNLOAD)
    assert reported.reason


async def test_files_that_came_complete_and_are_wrong_are_seldom_fetched_again(bench: Bench) -> None:
    wrong = bench.model("digest", v1=VersionSource(bench.source("a", "one").uri, "sha256:" + "0" * 64))
    torn = bench.model("torn", v1=bench.source("b", "no archive"))
    (bench.root / "sources" / "b" / "weights").rename(bench.root / "sources" / "b" / "weights.zip")
    models = {"digest": wrong, "torn": torn}
    await bench.settle(*models.values())
    tried = {}
    for _ in range(12):
        failures = bench.agent.ledger.failures
        tried = {name: failures[name].retry_at - bench.now for name in models}
        bench.now += max(tried.values())
        await bench.settle(*models.values())
    assert tried == {"digest": 1800.0, "torn": 1800.0}
    assert {bench.agent.ledger.failures[name].attempts for name in models} == {13}
    right = bench.model("digest", v1=bench.source("a", "one"))
    await bench.settle(right)
    assert bench.fake.loaded == {"digest": {1: "one"}}


def test_no_password_is_reported(bench: Bench) -> None:
    folder = bench.root / "server/repository/m"
    reported = f"failed: {folder}/1/model.onnx is not there"
    assert "hunter2" not in load_failure(reported, folder, {1: "https://me:hunter2@host/x.zip?sig=abc"}, "")
    assert "https://host/x.zip" in load_failure(reported, folder, {1: "https://me:hunter2@host/x.zip?sig=abc"}, "")
