"""Statuses: what is so, why, since when; Ready only when it is; no setting passed over in silence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.operator.fleet.declared import facts_of

from argosy.api import Condition, ConditionType, Problem, Resource, parse_body
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus, VersionState
from argosy.fleet.demand.members import Members
from argosy.fleet.facts import Gpu, Node, ServerReport
from argosy.fleet.migration.observed import Observed
from argosy.fleet.migration.state import Places, PoolState
from argosy.fleet.packing.pools import pack_fleet
from argosy.fleet.plan import PoolPlan
from argosy.fleet.status.statuses import Situation, Status, statuses
from argosy_agent.contract import LoadedModel, LoadState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
GIB = 1 << 30
NODES = (Node("a", (Gpu(0, 80 * GIB), Gpu(1, 80 * GIB))),)
READY, LOADING, FAILED = LoadState.READY, LoadState.LOADING, LoadState.UNAVAILABLE


def resource(kind: str, name: str, generation: int = 1, **spec: Any) -> Resource:
    metadata = {"name": name, "generation": generation}
    found, problems = parse_body(
        {"apiVersion": "argosy.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    )
    assert found is not None, problems
    return found


def pool(**spec: Any) -> Resource:
    return resource("ServingPool", "p", **spec)


def model(name: str = "m", version: int = 1, generation: int = 1, **spec: Any) -> Resource:
    given = {"poolRef": {"name": "p"}, "modelFormat": {"name": "onnx"}, "storageUri": "s3://b/m", **spec}
    given.setdefault("footprint", {"gpuMemory": "4Gi", "compute": "10%"})
    return resource("InferenceModel", name, generation, version=version, **given)


def ensemble(name: str, *steps: dict[str, Any], **spec: Any) -> Resource:
    tensor = {"name": "t", "dataType": "TYPE_FP32", "dims": [1]}
    ports = {"inputs": {"a": "t"}, "outputs": {"b": "t"}}
    given = {
        "poolRef": {"name": "p"},
        "inputs": [tensor],
        "outputs": [tensor],
        "steps": [{**s, **ports} for s in steps],
    }
    return resource("Ensemble", name, **given, **spec)


def report(server: str, *models: LoadedModel, ready: bool = True) -> ServerReport:
    return ServerReport(server, ready, models, f"http://{server}", grpc_address=f"{server}:8001")


def loaded(name: str, version: int = 1, state: LoadState = READY, reason: str = "") -> LoadedModel:
    return LoadedModel(name, version, state, reason)


def situation(
    resources: Sequence[Resource],
    reports: Sequence[ServerReport] = (),
    previous: Mapping[str, Status] | None = None,
    problems: Sequence[Problem] = (),
) -> Situation:
    plans = pack_fleet(facts_of(resources, NODES)).pools
    states = {each.pool: state_of(each, resources, reports) for each in plans}
    return Situation(resources, problems, states, previous or {})


def state_of(plan: PoolPlan, resources: Sequence[Resource], reports: Sequence[ServerReport]) -> PoolState:
    members = Members.of(plan.pool, resources)
    current = {each.name: each for each in plan.current}
    observed = Observed.of(reports if plan.pool == "default/p" else ())
    return PoolState(plan, members, Places.of(plan, members), observed, current, {node.name: node for node in NODES})


def of_model(found: Mapping[str, Status], name: str = "m") -> InferenceModelStatus:
    status = found[f"InferenceModel default/{name}"]
    assert isinstance(status, InferenceModelStatus)
    return status


def of_ensemble(found: Mapping[str, Status], name: str = "e") -> EnsembleStatus:
    status = found[f"Ensemble default/{name}"]
    assert isinstance(status, EnsembleStatus)
    return status


def of_pool(found: Mapping[str, Status]) -> ServingPoolStatus:
    status = found["ServingPool default/p"]
    assert isinstance(status, ServingPoolStatus)
    return status


def said(status: Status, kind: str) -> tuple[str, str]:
    condition = condition_of(status, kind)
    return condition.status.value, str(condition.reason)


def condition_of(status: Status, kind: str) -> Condition:
    condition = status.condition(ConditionType(kind))
    assert condition is not None
    return condition


def test_a_model_that_is_loaded_everywhere_is_ready() -> None:
    status = of_model(statuses(situation([pool(), model()], [report("p-0", loaded("m"))]), NOON))
    kinds = [str(condition.type) for condition in status.conditions]
    assert len(kinds) == len(set(kinds))
    assert {kind: said(status, kind)[0] for kind in kinds} == {
        "Ready": "True",
        "Reconciling": "False",
        "Stalled": "False",
        "Valid": "True",
        "Placed": "True",
        "EngineReady": "True",
        "AccuracyVerified": "True",
        "Loaded": "True",
        "Scaling": "True",
    }
    assert status.ready
    assert (status.replicas, status.available_replicas, status.active_version) == (1, 1, 1)
    assert (status.url, status.grpc_address) == ("http://p-0/v2/models/m", "p-0:8001")
    assert condition_of(status, "Placed").message == "p-0 on node a, GPU 0"
    assert [(p.server, p.node, p.gpus) for p in status.placement] == [("p-0", "a", (0,))]
    assert [(v.version, v.state, v.traffic_percent) for v in status.versions] == [(1, VersionState.SERVING, 100)]


def test_a_model_that_is_still_loading_reconciles() -> None:
    for reports in ([], [report("p-0", ready=False)], [report("p-0", loaded("m", state=LOADING))]):
        status = of_model(statuses(situation([pool(), model()], reports), NOON))
        assert said(status, "Loaded") == ("False", "Loading")
        assert said(status, "Ready") == ("False", "Progressing")
        assert said(status, "Reconciling") == ("True", "Progressing")
        assert said(status, "Stalled")[0] == "False"
        assert "waiting for p-0" in condition_of(status, "Ready").message


def test_a_model_that_cannot_load_is_stalled_with_the_servers_words() -> None:
    reports = [report("p-0", loaded("m", state=FAILED, reason="no such file"))]
    status = of_model(statuses(situation([pool(), model()], reports), NOON))
    assert said(status, "Loaded") == ("False", "LoadFailed")
    assert said(status, "Stalled") == ("True", "LoadFailed")
    assert "p-0: no such file" in condition_of(status, "Ready").message
    assert status.versions[0].state is VersionState.FAILED


def test_some_replicas_are_not_all() -> None:
    reports = [report("p-0", loaded("m")), report("p-1", loaded("m", state=LOADING))]
    status = of_model(statuses(situation([pool(), model(minReplicas=2)], reports), NOON))
    assert said(status, "Loaded") == ("False", "PartiallyLoaded")
    assert (status.replicas, status.available_replicas, status.ready) == (2, 1, False)


def test_a_model_is_never_ready_while_it_rolls() -> None:
    resources = [pool(), model(version=2, generation=2)]
    old = of_model(statuses(situation(resources, [report("p-0", loaded("m", 1), loaded("m", 2, LOADING))]), NOON))
    assert not old.ready
    assert [(v.version, v.state, v.traffic_percent) for v in old.versions] == [
        (2, VersionState.LOADING, 0),
        (1, VersionState.SERVING, 100),
    ]
    assert old.active_version == 1
    both = of_model(statuses(situation(resources, [report("p-0", loaded("m", 1), loaded("m", 2))]), NOON))
    assert said(both, "Ready") == ("False", "RollingOut")
    assert said(both, "Reconciling") == ("True", "RollingOut")
    assert both.active_version == 2
    new = of_model(statuses(situation(resources, [report("p-0", loaded("m", 2))]), NOON))
    assert said(new, "Ready") == ("True", "Serving")
    assert new.observed_generation == 2


def test_versions_that_a_policy_or_an_ensemble_keeps_are_no_leftovers() -> None:
    both = [report("p-0", loaded("m", 1), loaded("m", 2), loaded("e"))]
    kept = model(version=2, versionPolicy={"latest": {"numVersions": 2}})
    assert of_model(statuses(situation([pool(), kept], both), NOON)).ready
    held = [pool(), model(version=2), ensemble("e", {"model": "m", "version": 1})]
    found = statuses(situation(held, both), NOON)
    assert of_model(found).ready
    assert [(s.model, s.version, s.state) for s in of_ensemble(found).steps] == [("m", 1, VersionState.SERVING)]


def test_what_fits_nowhere_is_stalled_with_the_reason() -> None:
    status = of_model(statuses(situation([pool(), model(footprint={"gpuMemory": "100Gi"})]), NOON))
    assert said(status, "Placed") == ("False", "GpuTooSmall")
    assert said(status, "Stalled") == ("True", "GpuTooSmall")
    assert "largest usable is 64 GiB" in condition_of(status, "Ready").message
    assert status.scaling is not None
    assert status.scaling.desired == 1


def test_some_replicas_without_a_place_are_said() -> None:
    resources = [pool(), model(minReplicas=3)]
    found = statuses(situation(resources, [report("p-0", loaded("m")), report("p-1", loaded("m"))]), NOON)
    assert said(of_model(found), "Placed") == ("False", "PartiallyPlaced")
    assert "2 of 3 replicas are placed" in condition_of(of_model(found), "Placed").message
    assert not of_model(found).ready
    assert said(of_pool(found), "Placed") == ("False", "PartiallyPlaced")
    assert [each.name for each in of_pool(found).unplaced] == ["m"]


def test_nothing_wanted_and_nothing_running_is_as_asked() -> None:
    zero = of_model(statuses(situation([pool(), model(minReplicas=0)]), NOON))
    assert said(zero, "Ready") == ("True", "ScaledToZero")
    found = statuses(situation([pool(suspend=True), model()]), NOON)
    assert said(of_model(found), "Ready") == ("False", "Suspended")
    assert said(of_model(found), "Stalled")[0] == "False"
    assert said(of_pool(found), "Ready") == ("False", "Suspended")
    assert of_pool(found).servers == ()


def test_every_setting_without_effect_is_named() -> None:
    engine = {"builder": "onnxruntime", "precision": "int8", "accuracy": {"dataUri": "s3://b/d", "min": 0.9}}
    status = of_model(
        statuses(
            situation(
                [
                    pool(storage={"engineCache": {"storageUri": "s3://b/e"}}),
                    model(
                        engine=engine,
                        rollout={"steps": [{"traffic": "10%"}]},
                        sequence={"oldest": {"maxCandidateSequences": 4}},
                    ),
                ],
                [report("p-0", loaded("m"))],
            ),
            NOON,
        )
    )
    assert said(status, "EngineReady") == ("False", "BuildPending")
    assert said(status, "AccuracyVerified") == ("False", "AccuracyPending")
    assert said(status, "Ready") == ("False", "Progressing")
    assert said(status, "Valid") == ("True", "SettingWithoutEffect")
    assert "spec.rollout" in condition_of(status, "Valid").message
    assert "spec.sequence" in condition_of(status, "Valid").message


def test_sequence_batching_has_effect_on_nvidias_server() -> None:
    stateful = model(sequence={"oldest": {"maxCandidateSequences": 4}})
    here = [report("p-0", loaded("m"))]
    bundled = of_model(statuses(situation([pool(), stateful], here), NOON))
    assert said(bundled, "Valid") == ("True", "SettingWithoutEffect")
    status = of_model(statuses(situation([pool(runtime={"name": "triton"}), stateful], here), NOON))
    assert said(status, "Valid") == ("True", "Valid")


def test_an_ensembles_settings_without_effect_are_named() -> None:
    asked = {"rollout": {"paused": True}, "maxInflightRequests": 4}
    said_of = {}
    for runtime in ("argosy", "triton"):
        resources = [pool(runtime={"name": runtime}), model("x"), ensemble("e", {"model": "x"}, **asked)]
        status = of_ensemble(statuses(situation(resources, [report("p-0", loaded("x"), loaded("e"))]), NOON))
        assert said(status, "Valid") == ("True", "SettingWithoutEffect")
        assert "spec.rollout" in condition_of(status, "Valid").message
        said_of[runtime] = "spec.maxInflightRequests" in condition_of(status, "Valid").message
    assert said_of == {"argosy": True, "triton": False}


def test_a_pools_settings_without_effect_are_named() -> None:
    settings: dict[str, Any] = {
        "packing": {"consolidate": True},
        "rateLimit": {},
        "cache": {"size": "1Gi"},
    }
    status = of_pool(statuses(situation([pool(**settings)]), NOON))
    assert said(status, "Valid") == ("True", "SettingWithoutEffect")
    for field in ("packing.consolidate", "rateLimit", "cache"):
        assert f"spec.{field}: " in condition_of(status, "Valid").message
    settings["runtime"] = {"name": "triton"}
    status = of_pool(statuses(situation([pool(**settings)]), NOON))
    assert "spec.packing.consolidate" in condition_of(status, "Valid").message
    assert "spec.rateLimit" not in condition_of(status, "Valid").message
    assert "spec.cache" not in condition_of(status, "Valid").message


def test_a_time_changes_only_when_the_status_flips() -> None:
    resources = [pool(), model()]
    first = statuses(situation(resources, [report("p-0", loaded("m", state=LOADING))]), NOON)
    second = statuses(situation(resources, [report("p-0")], first), LATER)
    assert condition_of(of_model(second), "Ready").last_transition_time == "2026-01-01T12:00:00Z"
    third = statuses(situation(resources, [report("p-0", loaded("m"))], second), LATER)
    assert condition_of(of_model(third), "Ready").last_transition_time == "2026-01-01T12:05:00Z"
    assert condition_of(of_model(third), "Placed").last_transition_time == "2026-01-01T12:00:00Z"
    settled = statuses(situation(resources, [report("p-0", loaded("m"))], third), LATER + timedelta(hours=1))
    assert settled == third


def test_an_ensemble_is_ready_when_it_is_loaded_beside_its_steps() -> None:
    resources = [pool(), model("x"), model("y"), ensemble("e", {"model": "x"}, {"model": "y"})]
    models = [loaded("x"), loaded("y")]
    waiting = of_ensemble(statuses(situation(resources, [report("p-0", *models)]), NOON))
    assert said(waiting, "Ready") == ("False", "Progressing")
    done = of_ensemble(statuses(situation(resources, [report("p-0", *models, loaded("e"))]), NOON))
    assert done.ready
    assert (done.replicas, done.available_replicas, done.url) == (1, 1, "http://p-0/v2/models/e")
    assert [(step.model, step.state) for step in done.steps] == [
        ("x", VersionState.SERVING),
        ("y", VersionState.SERVING),
    ]


def test_an_invalid_resource_says_so_and_keeps_what_serves() -> None:
    resources = [pool(), model()]
    served = statuses(situation(resources, [report("p-0", loaded("m"))]), NOON)
    edited = [pool(), model(generation=2)]
    problem = Problem("f.yaml", "InferenceModel default/m", "spec.version", "is older than what serves")
    status = of_model(statuses(situation(edited, [report("p-0", loaded("m"))], served, [problem]), LATER))
    assert said(status, "Valid") == ("False", "InvalidSpec")
    assert said(status, "Ready")[0] == "False"
    assert said(status, "Stalled") == ("True", "InvalidSpec")
    assert said(status, "Loaded") == ("True", "Loaded")
    assert condition_of(status, "Valid").message == "spec.version: is older than what serves"
    assert status.placement == of_model(served).placement
    assert status.observed_generation == 2


def test_a_model_without_its_pool_says_which() -> None:
    lost = replace(situation([pool()]), resources=[model(poolRef={"name": "q"})])
    status = of_model(statuses(lost, NOON))
    assert said(status, "Stalled") == ("True", "UnknownPool")
    assert "no ServingPool 'q' in namespace default" in condition_of(status, "Valid").message


def test_an_ensemble_with_a_broken_graph_is_invalid() -> None:
    broken = Problem("", "Ensemble default/e", "spec.steps[0].model", "there is no model 'z'")
    found = statuses(situation([pool(), ensemble("e", {"model": "z"})], problems=[broken]), NOON)
    assert said(of_ensemble(found), "Valid") == ("False", "InvalidGraph")


def test_a_pool_shows_its_servers_and_counts_its_gpus() -> None:
    resources = [pool(), model("x"), model("y", footprint={"gpus": 1}), model("z", footprint={"device": "CPU"})]
    status = of_pool(statuses(situation(resources, [report("p-0"), report("p-1", ready=False)]), NOON))
    assert status.gpus is not None
    assert (status.gpus.total, status.gpus.used, status.gpus.free, status.gpus.one_per_model) == (2, 2, 0, 3)
    seen = {each.name: (each.node, each.gpus, each.models, each.ready) for each in status.servers}
    assert seen == {"p-0": ("a", (0,), 2, True), "p-1": ("a", (1,), 1, False)}
    assert status.remaining_servers == 0
    assert said(status, "Ready") == ("False", "ServersNotReady")
    assert said(status, "Reconciling")[0] == "True"
    assert (status.replicas, status.available_replicas) == (2, 1)


def test_an_empty_pool_is_ready() -> None:
    assert said(of_pool(statuses(situation([pool()]), NOON)), "Ready") == ("True", "NoModels")


def test_what_nobody_sized_says_that_it_has_a_gpu_of_its_own_and_which_field_to_set() -> None:
    resources = [pool(), model(footprint={}), model("sized"), model("cpu", footprint={"device": "CPU"})]
    found = statuses(situation(resources), NOON)
    message = condition_of(of_model(found), "Placed").message
    assert "GPU 0; it has that GPU for itself" in message
    assert "spec.footprint.gpuMemory" in message
    assert "spec.footprint.device: CPU" in message
    assert "for itself" not in condition_of(of_model(found, "sized"), "Placed").message
    assert "CPU" in condition_of(of_model(found, "cpu"), "Placed").message
    footprints = [of_model(found, name).footprint for name in ("m", "sized", "cpu")]
    assert [(each.gpu_memory, each.gpus) for each in footprints if each] == [(None, 1), (4 * GIB, 0), (None, 0)]


def test_what_nobody_sized_and_finds_no_gpu_is_told_what_to_declare() -> None:
    status = of_model(statuses(situation([pool(), model(minReplicas=3, footprint={})]), NOON))
    assert said(status, "Placed") == ("False", "PartiallyPlaced")
    assert "footprint.gpuMemory would tell" in condition_of(status, "Placed").message


def test_a_rate_limiter_that_no_server_heeds_is_told() -> None:
    limited = model(rateLimiter={"priority": 2})
    triton = {"runtime": {"name": "triton"}}
    limits = {"rateLimit": {"resources": [{"name": "r", "count": 1}]}}
    for spec, reason in (
        ({}, "SettingWithoutEffect"),
        (triton, "SettingWithoutEffect"),
        (limits, "SettingWithoutEffect"),
        ({**triton, **limits}, "Valid"),
    ):
        valid = condition_of(of_model(statuses(situation([pool(**spec), limited]), NOON)), "Valid")
        assert valid.reason == reason
        assert ("spec.rateLimiter: instances run whenever they are free" in valid.message) == (reason != "Valid")


def test_set_replicas_decide_and_the_status_names_the_field() -> None:
    resources = [
        pool(replicas=2, minServers=1, maxServers=1),
        model(replicas=2, minReplicas=1, maxReplicas=1),
        model("off", replicas=0, minReplicas=2),
        model("step", minReplicas=0),
        ensemble("e", {"model": "step"}, replicas=1, minReplicas=0),
    ]
    found = statuses(situation(resources), NOON)
    status = of_model(found)
    assert status.replicas == 2
    assert status.scaling is not None
    assert (status.scaling.desired, status.scaling.reason) == (2, "FixedReplicas")
    assert status.scaling.message.startswith("spec.replicas is 2, and decides")
    assert said(status, "Scaling") == ("True", "FixedReplicas")
    off = of_model(found, "off")
    assert off.replicas == 0
    assert condition_of(off, "Placed").message == "spec.replicas is 0, so it has no replica"
    assert of_ensemble(found).replicas == 1
    assert condition_of(of_ensemble(found), "Scaling").message.startswith("spec.replicas is 1, and decides")
    assert of_pool(found).replicas == 2
    assert condition_of(of_pool(found), "Scaling").message.startswith("spec.replicas is 2, and decides")


def test_unset_replicas_leave_the_bounds_to_decide() -> None:
    found = statuses(situation([pool(minServers=1), model(minReplicas=2)]), NOON)
    assert of_model(found).replicas == 2
    assert condition_of(of_model(found), "Scaling").message.startswith("replicas stay at minReplicas (2)")
    assert "at least minServers (1)" in condition_of(of_pool(found), "Scaling").message


def test_a_pool_of_fixed_servers_says_which_field_holds_it() -> None:
    status = of_model(statuses(situation([pool(replicas=1, maxServers=5), model(minReplicas=2)]), NOON))
    message = condition_of(status, "Placed").message
    assert "the pool may have 1 server. Raise its maxServers (or replicas, where that is set)" in message
