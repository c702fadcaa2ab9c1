"""The loop of `argosy up` with a fleet that only remembers: what it does when something of its own is wrong."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.running import Workspace
from tests.operator.planning.declared import gpu_node
from tests.waiting import until

from argosy.api.problems import Problem
from argosy.api.values.identity import PoolKey
from argosy.local import supervisor as module
from argosy.local.annotations import annotate
from argosy.local.manifests import source
from argosy.local.manifests.checks import local_shapes
from argosy.local.manifests.reading import read_manifests
from argosy.local.state import StateFolder
from argosy.local.supervisor import Goal, Supervisor
from argosy.local.views.rows import Row, ServerRow
from argosy.reconcile import reconcile
from argosy.replay.bundle import Bundle
from argosy.replay.decisions import replayed
from argosy.replay.folder import BundleFolder, read_bundle


@dataclass
class Fleet:
    """Servers that are never up; `rounds` counts what was to be made so."""

    rounds: int = 0
    stopped: bool = False
    busy = progressing = failing = False

    def restored(self) -> dict[str, Any]:
        return {}

    async def observe(self, now: float) -> dict[str, Any]:
        return {}

    def loaded(self) -> dict[str, Any]:
        return {}

    async def converge(self, *_: object) -> None:
        self.rounds += 1

    def doing(self) -> dict[str, str]:
        return {}

    async def tallies(self) -> dict[str, Any]:
        return {}

    def rows(self) -> list[ServerRow]:
        return []

    def metrics_urls(self) -> dict[object, dict[str, str]]:
        return {}

    def record(self, _: object) -> None:
        """Write nothing down."""

    async def stop(self) -> None:
        self.stopped = True


@dataclass
class Shown:
    """What people were told."""

    notes: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def problems(self, problems: Sequence[Problem]) -> None:
        self.notes += map(str, problems)

    def update(self, rows: Sequence[Row], *_: object) -> None:
        self.rows = list(rows)

    def close(self) -> None:
        """Do nothing: nothing is open."""


def recorded(folder: Path) -> list[Bundle]:
    """Return the bundles of a folder, in their order."""
    return [read_bundle(path) for path in sorted(folder.iterdir())]


async def ran_twice(loop: Any, fleet: Fleet) -> None:
    """Run the loop until it has made the fleet so twice, and end it."""
    running = asyncio.create_task(loop.run(Goal()))
    await until(lambda: fleet.rounds > 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_fault_of_ours_stands_on_the_resources_and_ends_nothing(
    workspace: Workspace, documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write(documents("one", 1, "double"))
    monkeypatch.setattr(module, "ROUND_S", 0.01)
    faults = iter([KeyError("gpu-7"), KeyError("gpu-7")])
    working = reconcile

    def sometimes(*arguments: Any, **named: Any) -> Any:
        for fault in faults:
            raise fault
        return working(*arguments, **named)

    monkeypatch.setattr(module, "reconcile", sometimes)
    fleet, view, state = Fleet(), Shown(), StateFolder(tmp_path / "state")
    state.create()
    reported: list[tuple[int, str]] = []
    update = view.update
    monkeypatch.setattr(
        view, "update", lambda rows, *_: (reported.append((fleet.rounds, rows[0].reason)), update(rows))
    )
    record = BundleFolder(tmp_path / "bundles", "0.1.0").record
    loop: Any = Supervisor(workspace.manifests, state, gpu_node("a"), fleet, view, record=record)  # type: ignore[arg-type]
    await ran_twice(loop, fleet)
    first, *others = recorded(tmp_path / "bundles")
    assert first.error == "KeyError: 'gpu-7'"
    assert others
    assert all(replayed(bundle).is_same for bundle in others)
    assert reported[0] == reported[1] == (0, "ReconcileFailed")
    assert fleet.rounds >= 1
    assert reported[-1][1] != "ReconcileFailed"
    assert [note for note in view.notes if "KeyError: 'gpu-7'" in note] == view.notes[:1]
    assert fleet.stopped


async def test_an_edit_made_while_the_manifests_are_first_read_is_seen(
    workspace: Workspace, documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write(documents("one", 1, "double").replace("python", "pyton"))
    view, state, right = Shown(), StateFolder(tmp_path / "state"), asyncio.Event()
    state.create()
    reading = read_manifests

    def read(path: Path) -> Any:
        result = reading(path)
        if result.problems:
            workspace.write(documents("one", 1, "double"))
        return result

    monkeypatch.setattr(source, "read_manifests", read)
    monkeypatch.setattr(view, "problems", lambda problems: problems or right.set())
    loop: Any = Supervisor(workspace.manifests, state, gpu_node("a"), Fleet(), view)  # type: ignore[arg-type]
    running = asyncio.create_task(loop.run(Goal()))
    try:
        async with asyncio.timeout(30):
            await right.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_measurements_that_fail_are_reported_once_and_end_nothing(
    workspace: Workspace, documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write(documents("one", 1, "double"))
    monkeypatch.setattr(module, "ROUND_S", 0.01)

    def fails(*_: Any) -> Any:
        raise OverflowError("too large")

    monkeypatch.setattr(module, "pool_targets", fails)
    fleet, view, state = Fleet(), Shown(), StateFolder(tmp_path / "state")
    state.create()

    async def observe(_: float) -> dict[Any, Any]:
        return {PoolKey("default/p"): ()}

    monkeypatch.setattr(fleet, "observe", observe)
    loop: Any = Supervisor(workspace.manifests, state, gpu_node("a"), fleet, view)  # type: ignore[arg-type]
    await ran_twice(loop, fleet)
    assert [note for note in view.notes if "OverflowError: too large; the last decisions" in note] == view.notes[:1]


async def test_edits_that_cannot_be_read_leave_the_manifests_before_them(
    workspace: Workspace, documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write(documents("one", 1, "double"))
    monkeypatch.setattr(module, "ROUND_S", 0.01)
    fleet, view, state = Fleet(), Shown(), StateFolder(tmp_path / "state")
    state.create()
    loop: Any = Supervisor(workspace.manifests, state, gpu_node("a"), fleet, view)  # type: ignore[arg-type]
    monkeypatch.setattr(fleet, "record", lambda _: workspace.write(documents("two", 1, "double")))
    readings = iter([local_shapes])

    def fails_again(*arguments: Any) -> Any:
        for working in readings:
            return working(*arguments)
        raise KeyError("shape")

    monkeypatch.setattr(source, "local_shapes", fails_again)
    update, shown = view.update, asyncio.Event()

    def show(*arguments: Any) -> None:
        update(*arguments)
        if view.notes:
            shown.set()

    monkeypatch.setattr(view, "update", show)
    running = asyncio.create_task(loop.run(Goal()))
    try:
        async with asyncio.timeout(30):
            await shown.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert "KeyError: 'shape'; the manifests as last read stay in effect" in view.notes[-1]
    assert {row.name for row in view.rows} == {"laptop", "one"}


async def test_annotations_of_commands_are_followed(
    workspace: Workspace, documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write(documents("one", 1, "double"))
    monkeypatch.setattr(module, "ROUND_S", 0.01)
    state, seen = StateFolder(tmp_path / "state"), asyncio.Queue[dict[str, str]]()
    state.create()
    (resource,) = (one for one in read_manifests(workspace.manifests).resources if one.name == "one")
    annotate(state, resource.identity, "argosy.dev/pause", "true")
    working = reconcile

    def observed(snapshot: Any, *arguments: Any, **named: Any) -> Any:
        (one,) = (one for one in snapshot.resources if one.identity == resource.identity)
        seen.put_nowait(one.metadata.annotations)
        return working(snapshot, *arguments, **named)

    monkeypatch.setattr(module, "reconcile", observed)
    loop: Any = Supervisor(workspace.manifests, state, gpu_node("a"), Fleet(), Shown())  # type: ignore[arg-type]
    running = asyncio.create_task(loop.run(Goal()))
    try:
        async with asyncio.timeout(30):
            assert await seen.get() == {"argosy.dev/pause": "true"}
            annotate(state, resource.identity, "argosy.dev/pause", None)
            annotate(state, resource.identity, "argosy.dev/promote", "abc@1")
            while await seen.get() != {"argosy.dev/promote": "abc@1"}:
                pass
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    status = state.read_status()
    assert status is not None
    (body,) = (body for body in status["resources"] if body["kind"] == resource.kind)
    assert body["metadata"]["annotations"] == {"argosy.dev/promote": "abc@1"}
    assert body["metadata"]["generation"] == 1
