"""A model with an engine over time: what is built, what serves meanwhile, and its status."""

from dataclasses import replace

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
from tests.operator.planning.simulated_cluster import POOL

from argosy.api import ConditionType
from argosy_agent.contract.builds import AccuracyReport, BuildFailure

ENGINE, ACCURATE, PLACED = ConditionType.ENGINE_READY, ConditionType.ACCURACY_VERIFIED, ConditionType.PLACED


def uris(fleet: Fleet, name: str = "m") -> set[str]:
    return {uri for versions in loaded(fleet, name).values() for uri in versions.values()}


def test_a_model_is_built_first_and_then_served_by_its_engine() -> None:
    fleet, resources = Fleet((hopper(),)), [pool(), built("m")]
    outcome = fleet.tick(resources)
    (build,) = outcome.builds[POOL]
    assert (build.start, build.node, build.gpus, build.owners) == (True, "h", (0,), ("InferenceModel default/m",))
    assert (build.request.architecture, build.request.store, build.image) == ("9.0", STORE, "argosy-runtime:1")
    assert says(outcome, ENGINE) == ("False", "BuildPending")
    outcome = fleet.tick(resources)
    assert says(outcome, ENGINE) == ("False", "Building")
    assert says(outcome) == ("False", "Progressing")
    assert says(outcome, PLACED) == ("False", "Building")
    assert "compile 25 %" in condition(outcome, ENGINE).message
    assert fleet.servers == {}
    assert [(version.version, version.state) for version in status(outcome).versions] == [(1, "Building")]
    outcome = fleet.settle(resources)
    assert uris(fleet) == {f"{STORE}/{build.name}-key/a"}
    assert says(outcome) == ("True", "Serving")
    assert says(outcome, ENGINE) == ("True", "EngineBuilt")
    (engine,) = status(outcome).engines
    assert (engine.state, engine.serving, engine.size, engine.build_seconds) == ("Ready", True, 1000, 12.2)
    assert [build.is_over for build in outcome.builds[POOL]] == [True]
    assert len(fleet.ever) == 1


def test_a_new_version_takes_over_once_its_engine_is_there() -> None:
    fleet = Fleet((hopper(gpus=2),))
    fleet.settle([pool(), built("m")])
    before, resources = uris(fleet), [pool(), built("m", 2, metadata={"generation": 2})]
    for _ in range(3):
        outcome = fleet.tick(resources)
        assert uris(fleet) == before
        assert says(outcome)[0] == "False"
        assert says(outcome, ConditionType.LOADED)[0] == "True"
    assert "; until then the former form goes on, version 1" in condition(outcome, ENGINE).message
    assert [(version.version, version.state) for version in status(outcome).versions] == [
        (2, "Building"),
        (1, "Serving"),
    ]
    outcome = fleet.settle(resources)
    assert status(outcome).ready
    assert uris(fleet) == {status(outcome).engines[0].storage_uri} != before
    assert [engine.version for engine in status(outcome).engines] == [2]


def test_a_failed_build_leaves_what_serves_serving() -> None:
    fleet = Fleet((hopper(gpus=2),), fails={"s3://b/m/2": failed(BuildFailure.OUT_OF_MEMORY, "killed at 31 GiB")})
    fleet.settle([pool(), built("m")])
    before, resources = uris(fleet), [pool(), built("m", 2)]
    outcome = fleet.settle(resources)
    assert uris(fleet) == before
    assert says(outcome, ENGINE) == ("False", "BuildFailed")
    assert condition(outcome, ENGINE).message == (
        "OutOfMemory: killed at 31 GiB. Raise spec.engine.memory. Until then the former form goes on, version 1."
    )
    assert says(outcome) == ("False", "BuildFailed")
    assert says(outcome, ConditionType.STALLED) == ("True", "BuildFailed")
    assert [(version.version, version.state) for version in status(outcome).versions] == [(2, "Failed"), (1, "Serving")]
    outcome = fleet.settle([pool(), built("m", 2, storageUri="s3://b/m/right")])
    assert status(outcome).ready


def test_what_failed_without_a_former_revision_is_not_placed() -> None:
    fleet = Fleet((hopper(),), fails={"s3://b/m/1": failed(BuildFailure.UNSUPPORTED_MODEL, "no kernel for NonZero")})
    outcome = fleet.settle([pool(), built("m")])
    assert says(outcome, PLACED) == ("False", "BuildFailed")
    assert fleet.servers == {}
    assert len(fleet.ever) == 1


def test_an_accuracy_that_is_too_low_blocks_and_shows_both_numbers() -> None:
    low = AccuracyReport(
        "perplexity_ratio", 1.3, False, 64, "sha256:d", "2026-01-01T00:00:00Z", 6.0, 7.8, 1.8, maximum=1.05
    )
    fleet = Fleet((hopper(gpus=2),), fails={"s3://b/m/2": failed(BuildFailure.ACCURACY_TOO_LOW, accuracy=low)})
    fleet.settle([pool(), built("m")])
    gate = {"precision": "int8", "accuracy": {"dataUri": "s3://b/d", "metric": "perplexity_ratio", "max": 1.05}}
    outcome = fleet.settle([pool(), built("m", 2, engine=gate)])
    assert says(outcome, ACCURATE) == ("False", "AccuracyTooLow")
    message = condition(outcome, ACCURATE).message
    assert "perplexity_ratio 1.3, at most 1.05 is required; engine 7.8, baseline 6 (64 samples)" in message
    assert says(outcome) == ("False", "AccuracyTooLow")
    blocked = next(engine for engine in status(outcome).engines if engine.version == 2)
    assert blocked.accuracy is not None
    assert (blocked.accuracy.delta, blocked.accuracy.data_digest, blocked.serving) == (1.8, "sha256:d", False)
    assert says(outcome, ConditionType.LOADED)[0] == "True"


def test_a_version_that_is_not_accurate_enough_blocks_no_other() -> None:
    low = AccuracyReport("cosine_similarity", 0.5, False, 64, "sha256:d", "2026-01-01T00:00:00Z", minimum=0.9)
    fleet = Fleet((hopper(),), fails={"s3://b/m/2": failed(BuildFailure.ACCURACY_TOO_LOW, accuracy=low)})
    gate = {"precision": "int8", "accuracy": {"dataUri": "s3://b/d", "min": 0.9}}
    both = [{"version": n, "storageUri": f"s3://b/m/{n}"} for n in (1, 2)]
    model = built("m", None, versions=both, engine=gate, storageUri=None)  # type: ignore[arg-type]
    outcome = fleet.settle([pool(), model])
    assert [list(model) for model in loaded(fleet).values()] == [[1]]
    assert says(outcome, ACCURATE) == ("False", "AccuracyTooLow")
    assert [(version.version, version.state) for version in status(outcome).versions] == [(2, "Failed"), (1, "Serving")]


def test_a_skipped_comparison_stands_in_the_status() -> None:
    skip = {"precision": "int8", "accuracy": {"skip": "measured by the vendor"}}
    outcome = Fleet((hopper(),)).settle([pool(), built("m", engine=skip)])
    assert says(outcome, ACCURATE) == ("True", "AccuracySkipped")
    assert condition(outcome, ACCURATE).message == "nothing was compared: measured by the vendor"
    assert status(outcome).engines[0].accuracy_skipped == "measured by the vendor"


def test_what_was_measured_stands_in_the_status() -> None:
    good = AccuracyReport("cosine_similarity", 0.99, True, 64, "sha256:d", "2026-01-01T00:00:00Z", minimum=0.9)
    fleet = Fleet((hopper(),), accuracy=good)
    gate = {"precision": "int8", "accuracy": {"dataUri": "s3://b/d", "min": 0.9}}
    outcome = fleet.settle([pool(), built("m", engine=gate)])
    assert says(outcome, ACCURATE) == ("True", "AccuracyVerified")
    assert "cosine_similarity 0.99, at least 0.9 is required (64 samples)" in condition(outcome, ACCURATE).message


def test_two_models_of_one_request_share_one_build() -> None:
    fleet = Fleet((hopper(gpus=2),))
    resources = [pool(), built("m", storageUri="s3://b/x"), built("n", storageUri="s3://b/x")]
    outcome = fleet.settle(resources)
    assert len(fleet.ever) == 1
    assert fleet.ever[0].owners == ("InferenceModel default/m", "InferenceModel default/n")
    assert uris(fleet, "m") == uris(fleet, "n")
    assert status(outcome, "m").ready
    assert status(outcome, "n").ready


def test_a_change_that_asks_for_no_other_engine_builds_nothing() -> None:
    fleet = Fleet((hopper(gpus=4),))
    fleet.settle([pool(), built("m")])
    outcome = fleet.settle([pool(), built("m", minReplicas=2, slo={"latency": {"p99": "50ms"}})])
    assert len(fleet.ever) == 1
    assert len(loaded(fleet)) == 2
    assert status(outcome).ready


def test_a_model_that_is_deleted_while_it_builds_is_built_no_further() -> None:
    fleet = Fleet((hopper(),), stuck=True)
    fleet.tick([pool(), built("m")])
    assert len(fleet.jobs) == 1
    outcome = fleet.tick([pool()])
    assert outcome.builds[POOL] == ()
    assert fleet.jobs == {}


def test_an_engine_that_is_desired_no_more_gives_way_to_the_files() -> None:
    fleet = Fleet((hopper(gpus=2),))
    fleet.settle([pool(), built("m")])
    outcome = fleet.settle([pool(), declared.model("m")])
    assert uris(fleet) == {"s3://b/m/1"}
    assert says(outcome, ENGINE) == ("True", "EngineNotNeeded")
    assert outcome.builds[POOL] == ()
    assert status(outcome).engines == ()


def test_files_go_on_serving_until_the_engine_that_replaces_them_is_there() -> None:
    fleet = Fleet((hopper(gpus=2),))
    fleet.settle([pool(), declared.model("m")])
    for _ in range(4):
        outcome = fleet.tick([pool(), built("m")])
        assert uris(fleet) == {"s3://b/m/1"}
        assert not status(outcome).ready
    fleet.settle([pool(), built("m")])
    assert uris(fleet) == {f"{STORE}/{fleet.ever[0].name}-key/a"}


def test_a_new_architecture_gets_its_engine_before_models_are_placed_there() -> None:
    fleet = Fleet((hopper("h"),))
    resources = [pool(), built("m", minReplicas=2)]
    fleet.settle(resources)
    assert len(loaded(fleet)) == 1
    fleet.nodes = (*fleet.nodes, hopper("a", compute_capability="8.0"))
    outcome = fleet.tick(resources)
    assert {build.request.architecture for build in outcome.builds[POOL]} == {"8.0", "9.0"}
    assert says(outcome, PLACED) == ("False", "PartiallyPlaced")
    assert "engines for 9.0" in condition(outcome, PLACED).message
    assert {step.plan.node for step in outcome.steps[POOL]} == {"h"}
    outcome = fleet.settle(resources)
    result = {
        fleet.servers[name].step.plan.node: uri for name, versions in loaded(fleet).items() for uri in versions.values()
    }
    names = {item.request.architecture: item.name for item in fleet.ever}
    assert result == {"h": f"{STORE}/{names['9.0']}-key/a", "a": f"{STORE}/{names['8.0']}-key/a"}
    assert status(outcome).ready


def test_a_newer_image_builds_again_while_the_former_engine_serves() -> None:
    fleet, resources = Fleet((hopper(gpus=2),)), [pool(), built("m")]
    fleet.settle(resources)
    before = uris(fleet)
    fleet.image, fleet.stuck = "argosy-runtime:2", True
    fleet.forget()
    for _ in range(3):
        outcome = fleet.tick(resources)
        assert uris(fleet) == before
        assert says(outcome, ENGINE) == ("False", "Building") or says(outcome, ENGINE) == ("False", "BuildPending")
        assert "the former engine goes on" in condition(outcome, ENGINE).message
    fleet.stuck = False
    outcome = fleet.settle(resources)
    assert uris(fleet) != before
    assert status(outcome).ready


def test_an_operator_that_starts_again_goes_on_from_what_is_written_down() -> None:
    fleet, resources = Fleet((hopper(gpus=2),), stuck=True), [pool(), built("m")]
    fleet.tick(resources)
    fleet.forget()
    fleet.tick(resources)
    assert len(fleet.ever) == 1
    fleet.stuck = False
    fleet.settle(resources)
    before, valid = uris(fleet), fleet.snapshot.valid
    fleet.stuck = True
    fleet.tick([pool(), built("m", 2)])
    assert fleet.snapshot.valid == valid
    fleet.reports.clear()
    fleet.snapshot = replace(fleet.snapshot, valid={})
    outcome = fleet.tick([pool(), built("m")])
    assert uris(fleet) == before
    assert status(outcome).engines[0].serving


def test_a_build_takes_no_gpu_that_serves_and_says_what_it_waits_for() -> None:
    fleet = Fleet((hopper(gpus=1),))
    fleet.settle([pool(), declared.model("other", memory=60)])
    outcome = fleet.settle([pool(), declared.model("other", memory=60), built("m")])
    (build,) = outcome.builds[POOL]
    assert not build.start
    assert says(outcome, ENGINE) == ("False", "BuildPending")
    assert "needs 1 GPU of compute capability 9.0" in condition(outcome, ENGINE).message
    assert "of the pool's 1 servers hold 1, others 0" in condition(outcome, ENGINE).message
    assert loaded(fleet, "other")
    fleet.nodes = (*fleet.nodes, hopper("i"))
    outcome = fleet.settle([pool(), declared.model("other", memory=60), built("m")])
    assert status(outcome).ready


def test_what_a_build_holds_is_not_planned_with() -> None:
    fleet = Fleet((hopper(gpus=1),), stuck=True)
    fleet.tick([pool(), built("m")])
    resources = [pool(), built("m"), declared.model("other", memory=60)]
    for _ in range(3):
        outcome = fleet.tick(resources)
        assert outcome.steps[POOL] == ()
        assert fleet.jobs
    assert "build " in condition(outcome, PLACED, "other").message
    fleet.stuck = False
    fleet.settle(resources)
    assert loaded(fleet, "other")


def test_builds_on_cpus_run_two_at_once_the_oldest_models_first() -> None:
    fleet, slow = Fleet((cpu(),), stuck=True), {"footprint": {"device": "CPU"}}
    models = [
        built(name, metadata={"creationTimestamp": f"2026-01-0{day}T00:00:00Z"}, **slow)
        for day, name in ((3, "a"), (1, "b"), (2, "c"))
    ]
    outcome = fleet.tick([pool(), *models])
    begun = {build.owners[0].rpartition("/")[2] for build in outcome.builds[POOL] if build.start}
    assert begun == {"b", "c"}
    assert {build.request.architecture for build in outcome.builds[POOL]} == {"amd64"}
    assert {build.node for build in outcome.builds[POOL]} == {""}
    outcome = fleet.tick([pool(), *models])
    assert "2 builds run at once" in condition(outcome, ENGINE, "a").message
    fleet.stuck = False
    outcome = fleet.settle([pool(), *models])
    assert all(status(outcome, name).ready for name in "abc")


def test_a_suspended_pool_builds_nothing() -> None:
    fleet = Fleet((hopper(),), stuck=True)
    fleet.tick([pool(), built("m")])
    outcome = fleet.tick([pool(suspend=True), built("m")])
    assert fleet.jobs == {}
    assert [build.waits for build in outcome.builds[POOL]] == ["the pool is suspended; set its spec.suspend to false"]


def test_a_node_that_does_not_say_what_gpus_it_has_is_named() -> None:
    outcome = Fleet((hopper(compute_capability=""),)).tick([pool(), built("m")])
    assert says(outcome, PLACED) == ("False", "NoEngineForArchitecture")
    assert "node h does not say which GPUs it has" in condition(outcome, ENGINE).message


def test_an_ensemble_waits_with_its_model_and_what_else_it_runs_goes_on() -> None:
    fleet = Fleet((hopper(gpus=2),), stuck=True)
    fleet.settle([pool(), declared.model("x")])
    resources = [pool(), declared.model("x"), built("m"), declared.ensemble("e", "x", "m")]
    for _ in range(6):
        outcome = fleet.tick(resources)
        assert "x" in fleet.serving()
    assert outcome.statuses["Ensemble default/e"].condition(PLACED).reason in ("Building", "PartiallyPlaced")  # type: ignore[union-attr]
    fleet.stuck = False
    outcome = fleet.settle(resources)
    assert outcome.statuses["Ensemble default/e"].ready
