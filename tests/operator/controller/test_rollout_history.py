"""A process of the operator in the middle of a rollout: the objects that it writes, and another one that goes on."""

from dataclasses import replace
from typing import Any

from tests.operator.controller.bodies import model, pool
from tests.operator.controller.test_reconciler import KEY, serving
from tests.operator.controller.test_revisions import Process

from argosy.api import InferenceModelStatus
from argosy.controller.resources.parsed_body import parsed_body
from argosy.render.workloads import OUTCOME, ROLLOUT_REVISION, Images, LatestRevisions

STEPS = {"steps": [{"traffic": "10%", "pause": "1m"}]}
UID = "uid-m"


async def begun(process: Process) -> None:
    """Let version 1 serve, and version 2 be proven."""
    process.cluster.cache.views[KEY] = serving("p-0")
    await process.declare(pool(), model(rollout=STEPS))
    await process.declare(model(generation=2, version=2, rollout=STEPS))
    await process.reconciler.reconcile(KEY)


def status(process: Process) -> InferenceModelStatus:
    written = process.cluster.statuses["InferenceModel n/m"]
    assert isinstance(written, InferenceModelStatus)
    return written


def restarted(process: Process, body: dict[str, Any]) -> Process:
    """Return another process, which read what the first one wrote."""
    again, recorded = Process(process.cluster), LatestRevisions()
    recorded.add(process.cluster.stands.values())
    for revision in recorded.bodies():
        again.store.restore(parsed_body(revision))
    for uid, revisions in recorded.of_rollouts().items():
        again.store.record(uid, revisions)
    again.store.put(parsed_body(pool()))
    written = status(process).model_dump(mode="json", by_alias=True, exclude_none=True)
    again.store.put(parsed_body({**body, "status": written}))
    return again


async def test_the_specs_of_a_rollout_are_recorded_with_their_revisions() -> None:
    process = Process()
    await begun(process)
    rollout = status(process).rollout
    assert rollout is not None
    assert rollout.stable is not None
    assert rollout.candidate is not None
    mine = [stand for stand in process.cluster.stands.values() if stand["data"]["spec"].get("rollout")]
    names = {stand["data"]["spec"]["version"]: stand["metadata"]["annotations"][ROLLOUT_REVISION] for stand in mine}
    assert names == {1: rollout.stable.revision, 2: rollout.candidate.revision}


async def test_another_process_serves_the_stable_spec_and_goes_on_with_the_candidate() -> None:
    process = Process()
    await begun(process)
    body = model(generation=2, version=2, rollout=STEPS)
    again = restarted(process, body)
    await again.reconciler.reconcile(KEY)
    before, after = status(process).rollout, status(again).rollout
    assert before is not None
    assert after is not None
    assert (after.number, after.stable, after.candidate) == (before.number, before.stable, before.candidate)
    assert status(again).placement[0].version == 1


async def test_what_came_of_a_revision_is_noted_on_it() -> None:
    process = Process()
    await begun(process)
    await process.declare(model(generation=3, version=1, rollout=STEPS))
    await process.reconciler.reconcile(KEY)
    (noted,) = (stand for stand in process.cluster.stands.values() if stand["data"]["spec"].get("version") == 2)
    assert noted["metadata"]["annotations"][OUTCOME] == "Withdrawn"


async def test_a_stable_spec_is_retained_beyond_the_limit_of_earlier_revisions() -> None:
    process = Process()
    await begun(process)
    for version in range(3, 6):
        changed = model(generation=version, version=version, rollout=STEPS, revisionHistoryLimit=1)
        await process.declare(changed)
    assert process.cluster.versions() == [5, 4, 1]


async def test_servers_have_an_image_that_opens_both_revisions() -> None:
    """A candidate with another framework takes nothing from the stable revision, which is loaded next to it."""
    images = replace(Images("argosy", "triton", "agent"), argosy_vllm="argosy-vllm")
    process = Process(images=images)
    process.cluster.cache.views[KEY] = serving("p-0")
    language = model(
        rollout=STEPS, modelFormat={"name": "vllm"}, inputs=None, outputs=None, footprint={"device": "CPU"}
    )
    await process.declare(pool(), language)
    await process.declare(model(generation=2, version=2, rollout=STEPS))
    await process.reconciler.reconcile(KEY)
    rollout = status(process).rollout
    assert rollout is not None
    assert rollout.candidate is not None
    assert rollout.candidate.version == 2
    containers = process.cluster.bodies["Deployment n/p-0"]["spec"]["template"]["spec"]["containers"]
    assert "argosy-vllm" in {container["image"] for container in containers}
