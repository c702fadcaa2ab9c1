"""A process of the operator in the middle of a rollout: the objects that it writes, and another one that goes on."""

from dataclasses import replace
from typing import Any

from google.protobuf import text_format
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.test_reconciler import KEY, serving
from tests.operator.controller.test_revisions import Process
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import InferenceModelStatus
from argosy.api.values.identity import PoolKey
from argosy.controller.resources.parsed_body import parsed_body
from argosy.planning.facts import CurrentServer, ServerReport
from argosy.render.workloads import OUTCOME, ROLLOUT_REVISION, Images, LatestRevisions
from argosy_agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.documents import DESIRED_KEY, parse_repository
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER, VersionTraffic, traffic_text, version_traffic

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


async def test_a_member_takes_its_rollout_along_to_another_pool() -> None:
    process = Process()
    await begun(process)
    before = status(process).rollout
    assert before is not None
    moved = model(generation=3, version=2, rollout=STEPS, poolRef={"name": "q"})
    await process.declare(pool("q"), moved, key=PoolKey("n/q"))
    after = status(process).rollout
    assert after is not None
    assert (after.number, after.stable, after.candidate) == (before.number, before.stable, before.candidate)
    assert status(process).placement[0].version == 1


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


async def test_a_server_that_waits_for_its_new_template_divides_requests_at_once() -> None:
    """Its Pod is of the former template, and a bad version loses its requests there, too."""
    process = Process()
    await begun(process)
    weighted = VersionTraffic(weights={1: 900_000, 2: 100_000})
    loaded = RenderedModel("m", _config(weighted), {version: VersionSource(f"s3://b/{version}") for version in (1, 2)})
    report = (LoadedModel("m", 1, LoadState.READY), LoadedModel("m", 2, LoadState.READY))
    one = serving("p-0")
    process.cluster.cache.views[KEY] = replace(
        one,
        current=(*one.current, CurrentServer("p-1", "a", ())),
        reports=(replace(one.reports[0], models=report), ServerReport("p-1", False)),
        repositories=(RenderedRepository("p-0", (loaded,)),),
        templates={"p-0": "former"},
    )
    process.store.put(parsed_body(pool(minServers=2)))
    await process.declare(model(generation=3, version=1, rollout=STEPS))
    assert "Deployment n/p-0" not in process.cluster.bodies
    (entry,) = parse_repository(process.cluster.bodies["ConfigMap n/p-0"]["data"][DESIRED_KEY]).models
    assert entry.versions.keys() == {1, 2}
    traffic = version_traffic(text_format.Parse(entry.config_text, ModelConfig()))
    assert traffic is not None
    assert {version for version, weight in traffic.weights.items() if weight} == {1}


def _config(traffic: VersionTraffic) -> str:
    config = ModelConfig(name="m", backend="python")
    config.parameters[PARAMETER].string_value = traffic_text(traffic)
    return text_format.MessageToString(config)
