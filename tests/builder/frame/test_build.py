"""One engine, from its request to the store, with a builder that copies."""

import errno
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from argosy_agent.contract.builds import AccuracyReport, BuildFailure, BuildState, DataSource, Gate, engine_key
from argosy_agent.engines.store import EngineStore
from argosy_agent.transfer.errors import FullError, StorageError
from argosy_agent.transfer.localfiles import digest_of
from argosy_builder.contract import BuildError, BuildJob

from .conftest import Frame

ALL = ["convert", "quantize", "compile", "check"]


def test_an_engine_is_built_and_published(frame: Frame, tmp_path: Path) -> None:
    report = frame.run()

    assert (report.state, report.percent, report.cached) == (BuildState.READY, 100, False)
    assert report.key == engine_key(frame.request, digest_of(frame.model), "", "copier 1.0")
    assert report.uri.startswith(f"file://{tmp_path}/store/{report.key}/")
    assert Path(report.uri.removeprefix("file://"), "engine.bin").read_text() == "weights>convert>quantize>compile"
    assert (report.shape, report.compiler) == (frame.builder.shape(None), "copier 1.0")  # type: ignore[arg-type]
    assert report.seconds > 0


def test_how_far_it_is_only_grows_and_names_every_phase(frame: Frame) -> None:
    frame.run()

    percents = [report.percent for report in frame.reports]
    phases = list(dict.fromkeys(report.phase for report in frame.reports))
    assert percents == sorted(percents)
    assert phases == ["", "fetch", "convert", "quantize", "compile", "check", "publish"]
    assert "half of quantize" in {report.line for report in frame.reports}
    assert {report.state for report in frame.reports if report.phase in ("check", "publish")} == {BuildState.VERIFYING}


def test_what_is_there_is_not_built_again(frame: Frame) -> None:
    first = frame.run()
    shutil.rmtree(frame.workspace)
    again = frame.run()

    assert frame.builder.ran == ALL
    assert again.cached
    assert (again.uri, again.digest, again.size) == (first.uri, first.digest, first.size)


def test_a_declared_digest_spares_the_fetch(frame: Frame) -> None:
    source = DataSource(f"file://{frame.model}", digest_of(frame.model))
    frame.run(model=source)
    shutil.rmtree(frame.model)

    assert frame.run(model=source).cached


@pytest.mark.parametrize(("least", "passes"), [(0.8, True), (0.9, False)])
def test_a_measured_engine_is_compared_with_the_present_bounds(frame: Frame, least: float, passes: bool) -> None:
    built = frame.run()
    frame.store.add_accuracy(built.key, AccuracyReport("cosine_similarity", 0.85, True, 7, "sha256:d", "2026-01-01"))
    model = DataSource(frame.request.model.uri, digest_of(frame.model))
    gate = Gate(DataSource("file:///nothing", "sha256:d"), "cosine_similarity", minimum=least, samples=7)
    if passes:
        report = frame.run(model=model, gate=gate)
        assert report.accuracy is not None
        assert (report.state, report.accuracy.minimum) == (BuildState.READY, least)
        return
    with pytest.raises(BuildError, match=r"cosine_similarity is 0\.85 .* where min is 0\.9") as caught:
        frame.run(model=model, gate=gate)
    assert caught.value.failure is BuildFailure.ACCURACY_TOO_LOW


def test_models_of_equal_files_share_an_engine(frame: Frame, tmp_path: Path) -> None:
    shutil.copytree(frame.model, tmp_path / "other")
    first = frame.run()

    assert frame.run(model=DataSource(f"file://{tmp_path}/other")).uri == first.uri


@pytest.mark.parametrize("changes", [{"options": {"a": 1}}, {"precision": "int8"}, {"architecture": "arm64"}])
def test_what_decides_the_files_is_another_engine(frame: Frame, changes: dict[str, object]) -> None:
    first = frame.run()

    assert frame.run(**changes).uri != first.uri


@pytest.mark.parametrize("phase", ALL[:3])
@pytest.mark.parametrize("workspace", ["kept", "lost"])
def test_another_try_goes_on_behind_the_last_finished_phase(frame: Frame, phase: str, workspace: str) -> None:
    """Also in a Pod on another node, which has nothing but the store."""
    frame.builder.fails[phase] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        frame.run()
    frame.builder.fails.clear()
    frame.builder.ran.clear()
    if workspace == "lost":
        shutil.rmtree(frame.workspace)

    report = frame.run()

    assert frame.builder.ran == ALL[ALL.index(phase) :]
    assert report.state is BuildState.READY
    assert not list((frame.workspace / "builds" / report.key).glob("*")), "what phases left is gone"
    assert not (frame.folder / "store" / report.key / "phases").exists()


def test_an_engine_that_is_not_what_was_requested_is_never_published(frame: Frame) -> None:
    frame.builder.fails["check"] = BuildError(BuildFailure.ENGINE_DIFFERS, "engine.precision: requested int8, got fp32")

    assert frame.error().failure is BuildFailure.ENGINE_DIFFERS
    assert not list(frame.store.list())


def test_a_model_that_is_not_there_is_tried_again(frame: Frame, tmp_path: Path) -> None:
    error = frame.error(model=DataSource(f"file://{tmp_path}/nothing"))

    assert (error.failure, error.passes) == (BuildFailure.MODEL_UNAVAILABLE, True)
    assert "spec.storageUri" in error.message


def test_a_model_of_another_digest_is_not(frame: Frame) -> None:
    error = frame.error(model=DataSource(f"file://{frame.model}", "sha256:" + "0" * 64))

    assert (error.failure, error.passes) == (BuildFailure.MODEL_INVALID, False)


def test_calibration_data_that_is_not_there_names_its_field(frame: Frame, tmp_path: Path) -> None:
    error = frame.error(calibration=DataSource(f"file://{tmp_path}/nothing"))

    assert (error.failure, error.passes) == (BuildFailure.CALIBRATION_INVALID, True)
    assert "spec.engine.calibration.dataUri" in error.message


def test_a_full_disk_of_the_build(frame: Frame) -> None:
    frame.builder.fails["quantize"] = OSError(errno.ENOSPC, "No space left on device")

    error = frame.error()

    assert error.failure is BuildFailure.DISK_FULL
    assert "quantize" in error.message


class _Refusing(EngineStore):
    """A store of which one method raises."""

    def __init__(self, store: EngineStore, method: str, error: Exception) -> None:
        self.__dict__.update(store.__dict__)

        def refuse(*_: object) -> None:
            raise error

        setattr(self, method, refuse)


@pytest.mark.parametrize(
    ("method", "error", "failure", "passes"),
    [
        ("lookup", StorageError("the server does not answer"), BuildFailure.STORE_UNAVAILABLE, True),
        ("publish", FullError("the bucket is full"), BuildFailure.STORE_FULL, False),
        ("publish", StorageError("403"), BuildFailure.STORE_UNAVAILABLE, True),
    ],
)
def test_a_store_that_cannot_be_used(
    frame: Frame, method: str, error: Exception, failure: BuildFailure, passes: bool
) -> None:
    raised = frame.error(store=_Refusing(frame.store, method, error))

    assert (raised.failure, raised.passes) == (failure, passes)
    assert "spec.storage.engineCache" in raised.message


def test_a_store_that_takes_no_phases_takes_the_engine(frame: Frame) -> None:
    report = frame.run(store=_Refusing(frame.store, "save_phase", StorageError("quota of small files")))

    assert report.state is BuildState.READY


def test_a_broken_engine_in_the_store_is_rebuilt(frame: Frame) -> None:
    first = frame.run()
    file = Path(first.uri.removeprefix("file://"), "engine.bin")
    file.write_text("cut")

    again = frame.run()

    assert not again.cached
    assert again.digest == first.digest
    assert frame.builder.ran == ALL * 2


def test_the_second_build_gets_the_engine_of_the_first(frame: Frame, tmp_path: Path) -> None:
    """Two Pods build the same key, each with a disk of its own; the second publishes last."""
    slow = frame.builder.check

    def overtaken(job: object, folder: Path) -> None:
        slow(job, folder)  # type: ignore[arg-type]
        frame.builder.check = slow  # type: ignore[method-assign]
        frame.workspace = tmp_path / "faster"
        firsts.append(frame.run())

    firsts: list[object] = []
    frame.builder.check = overtaken  # type: ignore[method-assign,assignment]

    second = frame.run()

    assert second.uri == firsts[0].uri  # type: ignore[attr-defined]
    assert len(list((tmp_path / "store" / second.key).glob("*/engine.bin"))) == 1


def test_a_build_that_runs_loses_nothing_to_a_clean_up(frame: Frame) -> None:
    check, gone = frame.builder.check, list[object]()

    def cleaned_up(job: object, folder: Path) -> None:
        gone.extend(frame.store.collect(None, time.time() + 10**6))
        check(job, folder)  # type: ignore[arg-type]

    frame.builder.check = cleaned_up  # type: ignore[method-assign,assignment]
    assert frame.run().state is BuildState.READY
    assert gone == []
    assert not list(Path(frame.folder, "store").rglob("leases/*"))


def test_two_builds_of_one_engine_in_one_workspace_are_one_after_the_other(frame: Frame) -> None:
    """As argosy build and argosy up on one laptop: the second waits, and finds the first one's engine."""
    begun, go_on = threading.Event(), threading.Event()
    check = frame.builder.check

    def slow(job: BuildJob, folder: Path) -> None:
        begun.set()
        assert go_on.wait(30)
        check(job, folder)

    frame.builder.check = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(frame.run)
        assert begun.wait(30)
        second = pool.submit(frame.run)
        while not any("another build" in report.line for report in frame.reports):
            wait([second], 0.01)
        go_on.set()

    assert not first.result().cached
    assert second.result().cached
    assert frame.builder.ran == ALL
