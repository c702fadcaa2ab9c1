"""Builds as processes of this machine: one at a time, tried again, ended by pid, started again where files change."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from argosy.api.values.identity import PoolKey
from argosy.local.builds import build as module
from argosy.local.builds.command import inputs_digest
from argosy.local.builds.runner import LocalBuilds
from argosy.planning.builds.build import JobState, ObservedBuild, ScheduledBuild
from argosy.planning.facts import Gpu, Node
from argosy_agent.contract.builds import BuildFailure, BuildRequest, BuildState, DataSource, Gate

POOL = PoolKey("default/p")
NODE = Node("here", (Gpu(0, 1 << 30, uuid="GPU-a"), Gpu(1, 1 << 30, uuid="GPU-b")))
PROGRAM = (sys.executable, str(Path(__file__).with_name("fake_builder.py")))


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_FIRST_S", 0.01)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_text("a model")
    return path


@pytest.fixture
async def builds(tmp_path: Path) -> AsyncIterator[LocalBuilds]:
    local_builds = LocalBuilds(tmp_path / "builds", NODE, PROGRAM)
    yield local_builds
    await local_builds.stop()


def planned(model: Path, name: str = "m", gpus: tuple[int, ...] = (), **options: Any) -> ScheduledBuild:
    options.setdefault("engine", str(model.parent / "engines" / name))
    source = DataSource(model.as_uri())
    request = BuildRequest("onnxruntime", "amd64", "local", "file:///e", source, options=options)
    return ScheduledBuild(request, (f"InferenceModel default/{name}",), 60_000, start=True, node="here", gpus=gpus)


class Loop:
    """What `argosy up` does of builds, round by round."""

    def __init__(self, builds: LocalBuilds) -> None:
        self.builds, self.now = builds, 0.0

    async def round(self, *desired: ScheduledBuild) -> dict[str, ObservedBuild]:
        self.now += 1.0
        result = self.builds.observe(self.now).get(POOL, {})
        await self.builds.converge({POOL: desired}, self.now)
        return result

    async def until(
        self, what: Callable[[dict[str, ObservedBuild]], bool], *desired: ScheduledBuild
    ) -> dict[str, ObservedBuild]:
        async with asyncio.timeout(60):
            while True:
                if what(result := await self.round(*desired)):
                    return result
                await asyncio.sleep(0.02)


def edit(model: Path) -> None:
    model.write_text("another model")


def remove(engine: ScheduledBuild) -> None:
    Path(engine.request.options["engine"]).rmdir()


def is_over(one: ScheduledBuild) -> Callable[[dict[str, ObservedBuild]], bool]:
    return lambda result: one.name in result and result[one.name].is_over


def is_under_way(one: ScheduledBuild) -> Callable[[dict[str, ObservedBuild]], bool]:
    return lambda result: one.name in result and result[one.name].report is not None


def pid_of(result: ObservedBuild) -> int:
    assert result.report is not None
    return int(result.report.line.removeprefix("pid "))


async def test_a_build_ends_ready_and_leaves_its_report_alone(builds: LocalBuilds, model: Path, tmp_path: Path) -> None:
    one = planned(model)
    result = (await Loop(builds).until(is_over(one), one))[one.name]
    assert (result.state, result.job) == (BuildState.READY, JobState.COMPLETE)
    assert not (tmp_path / "builds" / one.name / "workspace").exists()
    assert not builds.is_busy


async def test_an_engine_that_is_ready_is_not_built_again_by_the_next_up(
    builds: LocalBuilds, model: Path, tmp_path: Path
) -> None:
    one = planned(model)
    await Loop(builds).until(is_over(one), one)
    again = LocalBuilds(tmp_path / "builds", NODE, ("/no/such/program",))
    result = (await Loop(again).until(is_over(one), one))[one.name]
    assert result.state is BuildState.READY


async def test_one_build_runs_at_a_time_and_the_other_says_so(builds: LocalBuilds, model: Path, tmp_path: Path) -> None:
    hold = tmp_path / "go"
    one, other = planned(model, "a", hold=str(hold)), planned(model, "b")
    loop = Loop(builds)
    result = await loop.until(is_under_way(one), one, other)
    assert result[one.name].state is BuildState.BUILDING
    assert (result[other.name].job, result[other.name].report) == (JobState.ABSENT, None)
    assert "one build runs at a time" in result[other.name].error
    (row,) = (row for row in builds.rows() if row.name == one.name)
    assert (row.models, row.engine, row.phase, row.percent) == ("a", "onnxruntime amd64", "quantize", 40)
    assert builds.doing() == {"InferenceModel default/a": "quantize 40 %"}
    hold.touch()
    result = await loop.until(lambda result: all(is_over(item)(result) for item in (one, other)), one, other)
    assert {item.state for item in result.values()} == {BuildState.READY}


async def test_a_build_has_the_gpus_that_are_planned_and_holds_them(
    builds: LocalBuilds, model: Path, tmp_path: Path
) -> None:
    hold = tmp_path / "go"
    one = planned(model, gpus=(1,), hold=str(hold))
    result = (await Loop(builds).until(is_under_way(one), one))[one.name]
    assert (result.node, result.gpus) == ("here", (1,))
    assert (tmp_path / "builds" / one.name / "workspace" / "tries").read_text() == "GPU-b\n"
    await builds.stop()


async def test_a_builder_that_crashes_is_started_again(builds: LocalBuilds, model: Path) -> None:
    one = planned(model, does="crash once")
    result = (await Loop(builds).until(is_over(one), one))[one.name]
    assert result.state is BuildState.READY


async def test_a_builder_that_goes_on_crashing_fails_with_its_last_words(builds: LocalBuilds, model: Path) -> None:
    one = planned(model, does="crash")
    result = (await Loop(builds).until(is_over(one), one))[one.name]
    assert (result.state, result.failure) == (BuildState.FAILED, BuildFailure.CRASHED)
    assert "was ended by SIGSEGV" in result.error
    assert "a word before the end" in result.error


@pytest.mark.parametrize("does", ["crash", "fail"])
async def test_a_failed_build_is_tried_again_when_its_files_change(builds: LocalBuilds, model: Path, does: str) -> None:
    one, loop = planned(model, does=does), Loop(builds)
    await loop.until(is_over(one), one)
    edit(model)
    assert not (await loop.round(one))[one.name].is_over
    assert builds.is_busy


async def test_a_failure_is_final_until_the_next_up(builds: LocalBuilds, model: Path, tmp_path: Path) -> None:
    one = planned(model, does="fail")
    result = (await Loop(builds).until(is_over(one), one))[one.name]
    assert result.report is not None
    assert (result.state, result.report.message) == (BuildState.FAILED, "0.5 is less than 0.9")
    again = LocalBuilds(tmp_path / "builds", NODE, PROGRAM)
    await Loop(again).round(one)
    assert again.is_busy
    await again.stop()


async def test_what_no_one_asks_for_any_more_is_ended_and_removed(
    builds: LocalBuilds, model: Path, tmp_path: Path
) -> None:
    one, loop = planned(model, hold="/never"), Loop(builds)
    result = (await loop.until(is_under_way(one), one))[one.name]
    process = psutil.Process(pid_of(result))
    await loop.until(lambda _: not builds.is_busy)
    assert not process.is_running()
    assert list((tmp_path / "builds").iterdir()) == []


async def test_stopping_ends_the_builder_and_leaves_nothing_half_written(
    builds: LocalBuilds, model: Path, tmp_path: Path
) -> None:
    one = planned(model, hold="/never")
    result = (await Loop(builds).until(is_under_way(one), one))[one.name]
    process = psutil.Process(pid_of(result))
    await builds.stop()
    assert not process.is_running()
    assert not list((tmp_path / "builds").rglob("*.partial"))


async def test_a_builder_that_a_killed_up_left_is_ended(builds: LocalBuilds, model: Path, tmp_path: Path) -> None:
    hold = tmp_path / "go"
    one = planned(model, hold=str(hold))
    result = (await Loop(builds).until(is_under_way(one), one))[one.name]
    left = psutil.Process(pid_of(result))
    again = LocalBuilds(tmp_path / "builds", NODE, PROGRAM)
    await Loop(again).round(one)
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE
    await builds.stop()
    hold.touch()
    result = (await Loop(again).until(is_over(one), one))[one.name]
    assert result.state is BuildState.READY


async def test_files_that_change_under_a_ready_engine_rebuild_it(builds: LocalBuilds, model: Path) -> None:
    one, loop = planned(model), Loop(builds)
    await loop.until(is_over(one), one)
    edit(model)
    result = await loop.round(one)
    assert result[one.name].report is None
    assert (await loop.until(is_over(one), one))[one.name].state is BuildState.READY


async def test_files_that_change_while_they_are_read_restart_it(
    builds: LocalBuilds, model: Path, tmp_path: Path
) -> None:
    hold = tmp_path / "go"
    one, loop = planned(model, hold=str(hold)), Loop(builds)
    first = pid_of((await loop.until(is_under_way(one), one))[one.name])
    edit(model)
    result = await loop.until(lambda result: is_under_way(one)(result) and pid_of(result[one.name]) != first, one)
    assert pid_of(result[one.name]) != first
    await builds.stop()


async def test_an_engine_that_somebody_removed_is_rebuilt(builds: LocalBuilds, model: Path) -> None:
    one, loop = planned(model), Loop(builds)
    await loop.until(is_over(one), one)
    remove(one)
    result = await loop.round(one)
    assert result[one.name].report is None


async def test_a_builder_that_hangs_is_killed_after_its_time(
    builds: LocalBuilds, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, loop = replace(planned(model, hold="/never"), timeout=1000), Loop(builds)
    await loop.until(is_under_way(one), one)
    loop.now += module.OVERDUE_S + 2
    result = (await loop.round(one))[one.name]
    assert (result.state, result.failure) == (BuildState.FAILED, BuildFailure.DEADLINE_EXCEEDED)


def test_inputs_are_those_of_this_machine_alone(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    data.write_text("1")
    source = DataSource(model.as_uri())
    request = BuildRequest(
        "b", "amd64", "c", "s3://b", source, calibration=DataSource("s3://b/c"), gate=Gate(DataSource(data.as_uri()))
    )
    before = inputs_digest(request)
    assert before == inputs_digest(request)
    os.utime(data, ns=(1, 1))
    assert inputs_digest(request) != before
    data.unlink()
    assert inputs_digest(request) == ""
