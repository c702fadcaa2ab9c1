"""Requests, failures, nodes and turns of builds, each by itself."""

import json
from dataclasses import replace

import pytest
from tests.operator.planning import declared
from tests.operator.planning.builds.simulated_builds import (
    STORE,
    Fleet,
    built,
    condition,
    cpu,
    failed,
    hopper,
    loaded,
    pool,
    says,
    status,
)
from tests.operator.planning.simulated_cluster import POOL, START

from argosy.api import ConditionType, InferenceModel, Resource, ServingPool, parse_body
from argosy.planning.builds.build import JobState, ObservedBuild, ScheduledBuild
from argosy.planning.builds.failures import WAYS_OUT, failure_message
from argosy.planning.builds.images import BuildImages
from argosy.planning.builds.requests import requests
from argosy.planning.facts import DraDevice, Gpu
from argosy.planning.nodes.slices import dra_index
from argosy.planning.validation.accept import accept, defer
from argosy.reconcile import reconcile
from argosy.render.config.configrules import check_together
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy_agent.contract.builddocuments import parse_request, request_text
from argosy_agent.contract.builds import (
    BuildFailure,
    BuildReport,
    BuildState,
    DataSource,
    Gate,
    TensorSpec,
)


def test_a_request_says_all_that_decides_the_engine_and_its_gate() -> None:
    model = built(
        "m",
        2,
        engine={
            "precision": "int8",
            "image": "builder:7",
            "options": {"graph_optimization_level": "all"},
            "calibration": {"dataUri": "s3://b/cal", "samples": 64},
            "accuracy": {"dataUri": "s3://b/val", "metric": "top1_agreement", "min": 0.99, "samples": 500},
        },
        storage={"secretName": "mine"},
        storageUri="s3://b/net.onnx",
        digest="sha256:" + "a" * 64,
        maxBatchSize=16,
        batching={"preferredBatchSizes": [4, 8]},
        inputs=[{"name": "X", "dataType": "TYPE_FP32", "dims": [1], "reshape": {"shape": []}}],
    )
    assert isinstance(model, InferenceModel)
    location = pool()
    assert isinstance(location, ServingPool)
    (request,) = requests(model, location, "9.0", BuildImages("argosy:1")).values()
    assert (request.builder, request.precision, request.compiler, request.store) == (
        "onnxruntime",
        "int8",
        "builder:7",
        STORE,
    )
    assert request.model == DataSource("s3://b/net.onnx", "sha256:" + "a" * 64, "mine")
    assert request.filename == "model.onnx"
    assert (request.max_batch_size, request.batch_sizes) == (16, (4, 8))
    assert request.inputs == (TensorSpec("X", "TYPE_FP32", ()),)
    assert (request.calibration, request.calibration_samples) == (DataSource("s3://b/cal", secret="mine"), 64)
    assert request.gate == Gate(
        DataSource("s3://b/val", secret="mine"), "top1_agreement", minimum=0.99, baseline_precision="fp16", samples=500
    )
    assert parse_request(request_text(request)) == request
    json.loads(request_text(request))


@pytest.mark.parametrize("failure", BuildFailure)
def test_every_failure_begins_with_its_word_and_has_a_way_out(failure: BuildFailure) -> None:
    reported = failure_message(ObservedBuild("b", failed(failure, "it stood still.")))
    assert reported == f"{failure}: it stood still. {WAYS_OUT[failure]}."


def test_a_job_that_failed_without_a_word_is_identified_by_what_it_met() -> None:
    build = ObservedBuild("b", job=JobState.FAILED, error="not in the registry", failure=BuildFailure.IMAGE_UNAVAILABLE)
    assert build.state is BuildState.FAILED
    assert failure_message(build).startswith("ImageUnavailable: not in the registry. Correct spec.engine.image")
    assert failure_message(ObservedBuild("b", job=JobState.FAILED)).startswith("BuildFailed. Look into the log")


@pytest.mark.parametrize(
    ("job", "report", "state"),
    [
        (JobState.ABSENT, None, BuildState.PENDING),
        (JobState.ABSENT, BuildReport(BuildState.BUILDING), BuildState.PENDING),
        (JobState.ACTIVE, None, BuildState.BUILDING),
        (JobState.ACTIVE, BuildReport(BuildState.VERIFYING), BuildState.VERIFYING),
        (JobState.ACTIVE, BuildReport(BuildState.FAILED), BuildState.FAILED),
        (JobState.COMPLETE, None, BuildState.PENDING),
        (JobState.COMPLETE, BuildReport(BuildState.READY), BuildState.READY),
        (JobState.FAILED, BuildReport(BuildState.BUILDING), BuildState.FAILED),
        (JobState.FAILED, BuildReport(BuildState.READY), BuildState.READY),
    ],
)
def test_a_final_report_is_the_last_word(job: JobState, report: BuildReport | None, state: BuildState) -> None:
    assert ObservedBuild("b", report, job).state is state


def test_models_take_turns_and_a_build_that_runs_keeps_its_slot() -> None:
    fleet = Fleet((hopper(gpus=2),), stuck=True)
    many = [{"version": n, "storageUri": f"s3://b/a/{n}"} for n in (1, 2, 3)]
    old = built("a", None, versions=many, storageUri=None, metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})  # type: ignore[arg-type]
    young = built("b", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    first = fleet.tick([pool(), old, young])
    begun = {build.owners[0].rpartition("/")[2]: build for build in first.builds[POOL] if build.start}
    assert begun.keys() == {"a", "b"}
    older = built("z", metadata={"creationTimestamp": "2025-01-01T00:00:00Z"})
    outcome = fleet.tick([pool(), old, young, older])
    again = {build.name: build for build in outcome.builds[POOL] if build.start}
    assert again.keys() == {item.name for item in begun.values()}
    assert {item.node for item in again.values()} == {"h"}
    assert sorted(gpu for item in again.values() for gpu in item.gpus) == [0, 1]
    fleet.stuck = False
    while len(fleet.ever) < 3:
        fleet.tick([pool(), old, young, older])
    assert fleet.ever[2].owners == ("InferenceModel default/z",)


def test_a_build_of_several_gpus_goes_to_the_node_that_is_left_with_least() -> None:
    fleet = Fleet((hopper("big", 4), hopper("small", 2)), stuck=True)
    llm = {"modelFormat": {"name": "huggingface"}, "engine": {"builder": "tensorrt_llm"}, "footprint": {}}
    triton = pool(runtime={"name": "triton"})
    outcome = fleet.tick([triton, built("m", parallelism={"tensor": 2}, **llm)])
    (build,) = outcome.builds[POOL]
    assert (build.node, build.gpus) == ("small", (0, 1))
    outcome = Fleet((hopper("a"), hopper("b"))).tick([triton, built("m", parallelism={"tensor": 2}, **llm)])
    assert "needs 2 GPUs of compute capability 9.0 on one node, and 1 can be had" in outcome.builds[POOL][0].waits


def test_a_build_has_a_gpu_that_pods_have_by_resource_claims_and_no_part_of_one() -> None:
    device = DraDevice("gpu.nvidia.com", "h", "gpu-0", "gpu.nvidia.com", "true")
    llm = {"modelFormat": {"name": "huggingface"}, "engine": {"builder": "tensorrt_llm"}, "footprint": {}}

    def scheduled(index: int) -> ScheduledBuild:
        published = replace(hopper(), gpus=(Gpu(index, 80 << 30, device=device),))
        (build,) = Fleet((published,)).tick([pool(runtime={"name": "triton"}), built("m", **llm)]).builds[POOL]
        return build

    index = dra_index("gpu.nvidia.com", "true", part=False)
    assert (scheduled(index).start, scheduled(index).gpus) == (True, (index,))
    assert not scheduled(dra_index("mig.nvidia.com", "true", part=True)).start


def test_a_build_whose_node_is_gone_begins_on_others() -> None:
    fleet = Fleet((hopper("a"), hopper("b")), stuck=True)
    resources = [pool(), built("m")]
    (build,) = fleet.tick(resources).builds[POOL]
    fleet.lose(build.node)
    (moved,) = fleet.tick(resources).builds[POOL]
    assert {build.node, moved.node} == {"a", "b"}
    assert moved.start


def test_an_engine_for_gpus_alone_is_not_built_for_a_cpu() -> None:
    model = built("m", engine={"builder": "tensorrt"})
    outcome = Fleet((cpu(),)).tick([pool(runtime={"name": "triton"}), model])
    assert outcome.builds[POOL] == ()
    assert says(outcome, ConditionType.PLACED) == ("False", "NoEngineForArchitecture")
    assert "tensorrt compiles for GPUs" in condition(outcome, ConditionType.ENGINE_READY).message


def test_a_cpus_architecture_is_its_nodes_label() -> None:
    fleet = Fleet((cpu("x", "arm64"), cpu("y")))
    fleet.settle([pool(), built("m", memory=0, minReplicas=2)])
    assert {item.request.architecture for item in fleet.ever} == {"amd64", "arm64"}
    assert len({uri for have in loaded(fleet).values() for uri in have.values()}) == 2


def test_a_node_that_is_cordoned_keeps_the_engine_that_serves_there() -> None:
    fleet, resources = Fleet((hopper("a"),)), [pool(), built("m")]
    fleet.settle(resources)
    fleet.nodes = (replace(fleet.nodes[0], schedulable=False), hopper("b", compute_capability="8.0"))
    outcome = fleet.settle(resources)
    assert {server.step.plan.node for server in fleet.servers.values()} == {"a"}
    assert status(outcome).ready


def test_what_fails_on_one_architecture_serves_on_the_other() -> None:
    fleet = Fleet((hopper("a"), hopper("b", compute_capability="8.0")), stuck=True)
    resources = [pool(), built("m")]
    outcome = fleet.tick(resources)
    lame = next(build for build in outcome.builds[POOL] if build.request.architecture == "8.0")
    fleet.stuck = False
    fleet.reports[lame.name] = failed(BuildFailure.UNSUPPORTED_MODEL, "no fp8 there")
    fleet.jobs.pop(lame.name)
    outcome = fleet.settle(resources)
    assert {server.step.plan.node for server in fleet.servers.values()} == {"a"}
    assert says(outcome, ConditionType.PLACED)[0] == "True"
    assert condition(outcome, ConditionType.ENGINE_READY).message.startswith("UnsupportedModel: no fp8 there.")
    assert "version 1 for 8.0" in condition(outcome, ConditionType.ENGINE_READY).message


def test_what_no_longer_fits_with_a_deferred_revision_gives_way_too() -> None:
    tensors = {"inputs": [{"name": "Z", "dataType": "TYPE_FP32", "dims": [1]}]}
    before = accept([pool(), built("m"), declared.ensemble("e", "m")], [], {}, check_together)
    last: dict[str, Resource] = {item.identity: item for item in before.valid}
    steps = [{"model": "m", "inputs": {"Z": "T0"}, "outputs": {"Y": "T1"}}]
    now = accept([pool(), built("m", 2, **tensors), declared.ensemble("e", "m", steps=steps)], [], last, check_together)
    assert now.problems == ()
    reserved = defer(now, ["InferenceModel default/m"], last, check_together)
    assert {item.identity: item for item in reserved.valid} == {
        item.identity: last[item.identity] for item in reserved.valid
    }
    assert (set(reserved.deferred), set(reserved.still)) == ({"InferenceModel default/m"}, {"Ensemble default/e"})


def test_a_revision_that_fits_no_longer_is_not_gone_back_to() -> None:
    last: dict[str, Resource] = {item.identity: item for item in (built("m"),)}
    now = accept([declared.pool(), declared.model("m", 2)], [], last, check_together)
    reserved = defer(now, ["InferenceModel default/m"], last, check_together)
    assert reserved.deferred == frozenset()
    assert reserved.valid == now.valid


def test_a_build_whose_gpu_somebody_took_before_it_had_it_goes_on_others() -> None:
    fleet = Fleet((hopper("a"), hopper("b")), stuck=True)
    resources = [pool(), built("m")]
    (build,) = fleet.tick(resources).builds[POOL]
    reserved = {node.name: node for node in fleet.nodes}
    taken = replace(reserved[build.node].gpus[0], withheld_by="ServingPool default/other")
    reserved[build.node] = replace(reserved[build.node], gpus=(taken,))
    fleet.nodes = tuple(reserved.values())
    (moved,) = fleet.tick(resources).builds[POOL]
    assert moved.start
    assert {build.node, moved.node} == {"a", "b"}


def test_a_build_whose_pod_counts_withholds_its_gpus_once() -> None:
    nodes = (hopper("a", 2),)
    fleet = Fleet(nodes, stuck=True)
    (build,) = fleet.tick([pool(), built("m")]).builds[POOL]
    pod = replace(nodes[0].gpus[1], withheld_by="Pod default/p-build-x")
    seen = ObservedBuild(build.name, None, JobState.ACTIVE, "a", build.gpus, withheld=True)
    snapshot = FleetSnapshot(
        (pool(), built("m")),
        (replace(nodes[0], gpus=(nodes[0].gpus[0], pod)),),
        {POOL: PoolSnapshot(builds={build.name: seen})},
        build_images=BuildImages(fleet.image),
    )
    outcome = reconcile(snapshot, START)
    (again,) = outcome.builds[POOL]
    assert (again.start, again.node, again.gpus) == (True, "a", build.gpus)
    assert outcome.plan.pools[0].withheld == {"Pod default/p-build-x": 1}


@pytest.mark.parametrize("scheme", ["hf", "oci", "http", "https"])
def test_engines_are_not_retained_where_nothing_can_be_written(scheme: str) -> None:
    cache = {"engineCache": {"storageUri": f"{scheme}://b/e"}}
    body = {"apiVersion": "argosy.dev/v1alpha1", "kind": "ServingPool", "metadata": {"name": "p"}}
    _, (problem,) = parse_body({**body, "spec": {"storage": cache}})
    assert problem.path == "spec.storage.engineCache.storageUri"
    assert problem.message.startswith(f"{scheme} is only read from")


def test_a_status_with_many_engines_stays_small() -> None:
    """Sixty-four versions on four architectures, with URIs as long as they may be, all of which failed at length."""
    versions = [{"version": n, "storageUri": f"s3://b/{n}/{'x' * 1900}"} for n in range(1, 65)]
    nodes = tuple(hopper(f"n{kind}", compute_capability=f"{kind}.0") for kind in (7, 8, 9, 10))
    model = built("m", None, versions=versions, storageUri=None)  # type: ignore[arg-type]
    first = reconcile(FleetSnapshot((pool(), model), nodes), START)
    words = failed(BuildFailure.CRASHED, "CUDA error; " * 900, line="l" * 5000)
    builds = {build.name: ObservedBuild(build.name, words) for build in first.builds[POOL]}
    assert len(builds) == 256
    outcome = reconcile(FleetSnapshot((pool(), model), nodes, {POOL: PoolSnapshot(builds=builds)}), START)
    written = status(outcome)
    assert (len(written.engines), written.remaining_engines) == (50, 206)
    assert len(written.model_dump_json(by_alias=True, exclude_none=True)) < 256 * 1024


def test_a_build_is_identified_by_the_name_of_its_request() -> None:
    fleet = Fleet((hopper(),))
    fleet.settle([pool(), built("m")])
    (engine,) = fleet.tick([pool(), built("m")]).statuses["InferenceModel default/m"].engines  # type: ignore[union-attr]
    assert engine.build == fleet.ever[0].request.name
