"""What a status says beyond plan and loading: refusals, addresses, deletions, faults that are told once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL

from argosy.api import ConditionType, Problem, Resource
from argosy.api.status import Status
from argosy.planning.facts import Refusal, ServerReport
from argosy.reconcile import RoundOutcome, reconcile
from argosy.render.config.configrules import check_together
from argosy.snapshot import FleetSnapshot, PoolSnapshot
from argosy_agent.contract import FailureKind, LoadedModel, LoadState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODES = (gpu_node("a", 2),)
READY = ServerReport(
    "p-0",
    True,
    (LoadedModel("m", 1, LoadState.READY),),
    "http://10.0.0.1:8000",
    takes_requests=True,
    routes=frozenset({"m"}),
)


def described(status: Status, kind: ConditionType = ConditionType.READY) -> tuple[str, str, str]:
    condition = status.condition(kind)
    assert condition is not None
    return condition.status.value, str(condition.reason), condition.message


def of(outcome: RoundOutcome, identity: str = "InferenceModel default/m") -> Status:
    return outcome.statuses[identity]


def decide(
    *resources: Resource,
    holds: bool = False,
    reports: tuple[ServerReport, ...] = (READY,),
    previous: RoundOutcome | None = None,
    refusals: tuple[Refusal, ...] = (),
    now: datetime = NOON,
) -> RoundOutcome:
    steps = previous.steps[POOL] if previous else ()
    servers, reserved = previous.servers(POOL) if previous else (), tuple(step.repository for step in steps)
    snapshot = FleetSnapshot(
        resources,
        NODES,
        {POOL: PoolSnapshot(servers, reports, reserved, holds=holds)},
        statuses=previous.statuses if previous else {},
        valid=previous.valid if previous else {},
        refusals=refusals,
        urls={"InferenceModel default/m": "http://m.default.svc:8000/v2/models/m"},
        grpc_addresses={"InferenceModel default/m": "m.default.svc:8001"},
        selectors={"InferenceModel default/m": "serves.argosy.dev/m=true"},
    )
    return reconcile(snapshot, now)


REFUSED = {
    "spec.config.model_repository_agents": {
        "config": {"model_repository_agents": {"agents": [{"name": "checksum"}]}},
    },
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_the_bundled_server_cannot_load_is_refused(field: str) -> None:
    refused = decide(pool(), model("m", **REFUSED[field]))
    assert described(of(refused), ConditionType.VALID)[:2] == ("False", "UnsupportedFormat")
    assert field in described(of(refused), ConditionType.VALID)[2]
    assert not any(server.placements for server in refused.plan.pools[0].servers)
    triton = decide(pool(runtime={"name": "triton"}), model("m", **REFUSED[field]))
    assert described(of(triton), ConditionType.VALID)[0] == "True"


def test_an_object_that_was_refused_stalls_its_resource_until_it_is_not() -> None:
    words = "exists and is not Argosy's; rename the model, or remove the Service"
    refusal = Refusal("InferenceModel default/m", "Service default/m", words)
    outcome = decide(pool(), model("m"), refusals=(refusal,))
    assert described(of(outcome)) == ("False", "NotApplied", f"Service default/m: {words}")
    assert described(of(outcome), ConditionType.STALLED)[:2] == ("True", "NotApplied")
    assert described(of(outcome), ConditionType.LOADED)[0] == "True"
    again = decide(
        pool(),
        model("m"),
        refusals=(refusal,),
        previous=outcome,
        now=NOON + timedelta(hours=1),
    )
    assert again.statuses == outcome.statuses
    assert described(of(decide(pool(), model("m"))))[0] == "True"


@pytest.mark.parametrize(
    ("spec", "holds", "url"),
    [
        ({"minReplicas": 0}, True, "http://m.default.svc:8000/v2/models/m"),
        ({"minReplicas": 0}, False, ""),
        ({"minReplicas": 1}, True, ""),
    ],
    ids=["held", "nothing holds", "never at zero"],
)
def test_the_url_is_there_where_requests_wait_for_the_first_server(spec: dict[str, Any], holds: bool, url: str) -> None:
    status = of(decide(pool(), model("m", **spec, replicas=0), reports=(), holds=holds))
    assert (status.url, bool(status.grpc_address)) == (url, bool(url))


@pytest.mark.parametrize("own_url", ["http://10.0.0.1:8000", ""], ids=["a server with a URL", "one without"])
def test_the_url_stands_once_it_answers_and_stays(own_url: str) -> None:
    answering = replace(READY, url=own_url)
    silent = replace(answering, models=())
    before = decide(pool(), model("m"), reports=(silent,))
    assert (of(before).url, of(before).grpc_address) == ("", "")
    assert of(before).selector == "serves.argosy.dev/m=true"
    up = decide(pool(), model("m"), reports=(answering,))
    assert (of(up).url, of(up).grpc_address) == ("http://m.default.svc:8000/v2/models/m", "m.default.svc:8001")
    down = decide(pool(), model("m"), reports=(silent,), previous=up)
    assert (of(down).url, of(down).grpc_address) == (of(up).url, of(up).grpc_address)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (FailureKind.DOWNLOAD, "DownloadFailed"),
        (FailureKind.DIGEST, "DigestMismatch"),
        (FailureKind.FILES, "DownloadFailed"),
        (FailureKind.LOAD, "LoadFailed"),
        (FailureKind.DEVICE, "DeviceError"),
        (None, "LoadFailed"),
    ],
)
def test_the_step_that_failed_is_the_reason(kind: FailureKind | None, reason: str) -> None:
    failed = replace(READY, models=(LoadedModel("m", 1, LoadState.UNAVAILABLE, "403 from s3", kind),))
    outcome = decide(pool(), model("m"), reports=(failed,))
    assert described(of(outcome), ConditionType.LOADED)[1] == reason
    assert described(of(outcome), ConditionType.STALLED)[:2] == ("True", reason)
    assert "p-0: 403 from s3" in described(of(outcome))[2]


def test_what_answers_in_its_former_revision_is_routed() -> None:
    reloading = replace(READY, models=(LoadedModel("m", 1, LoadState.LOADING, "loading", former=True),))
    outcome = decide(pool(), model("m"), reports=(reloading,))
    (step,) = outcome.steps[POOL]
    assert step.routes == {"m"}
    assert "loading (its former files and config go on serving)" in described(of(outcome), ConditionType.LOADED)[2]
    loading = replace(READY, models=(LoadedModel("m", 1, LoadState.LOADING, "loading"),))
    (step,) = decide(pool(), model("m"), reports=(loading,)).steps[POOL]
    assert step.routes == frozenset()


def test_a_resource_that_is_being_deleted_takes_no_part() -> None:
    going = model("m")
    gone = going.model_copy(
        update={"metadata": going.metadata.model_copy(update={"deletion_timestamp": "2026-01-01T11:00:00Z"})}
    )
    outcome = decide(pool(), gone, model("n"))
    assert described(of(outcome))[:2] == ("False", "Deleting")
    assert [placement.model for server in outcome.plan.pools[0].servers for placement in server.placements] == ["n"]


def test_a_wrong_pool_is_reported_once() -> None:
    problems = check_together([pool(), model("m"), model("n"), ensemble("e", "m", "n", poolRef={"name": "q"})])
    assert [(problem.resource, problem.path) for problem in problems] == [("Ensemble default/e", "spec.poolRef.name")]


@pytest.mark.parametrize(("ensemble_at", "loser"), [("10", "InferenceModel"), ("11", "Ensemble"), ("12", "Ensemble")])
def test_of_two_that_share_a_name_the_older_keeps_it_whatever_the_pools(ensemble_at: str, loser: str) -> None:
    def at(resource: Resource, hour: str) -> Resource:
        stamp = {"creation_timestamp": f"2026-01-01T{hour}:00:00Z"}
        return resource.model_copy(update={"metadata": resource.metadata.model_copy(update=stamp)})

    both = [at(model("m"), "11"), at(ensemble("m", "n", poolRef={"name": "q"}), ensemble_at)]
    problems = check_together([pool(), pool("q"), model("n", poolRef={"name": "q"}), *both])
    assert [problem.resource for problem in problems] == [f"{loser} default/m"]
    keeper = "Ensemble" if loser == "InferenceModel" else "InferenceModel"
    assert f"rename this {loser}, or delete {keeper} default/m" in problems[0].message


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"model_metrics": {"metric_control": [{}]}}, "spec.config.model_metrics.metric_control[0]"),
        ({"batch_input": [{"kind": "BATCH_ELEMENT_COUNT"}]}, "spec.config.batch_input[0].source_input"),
        (
            {"response_cache": {"enable": True}, "model_transaction_policy": {"decoupled": True}},
            "spec.config.response_cache.enable",
        ),
    ],
)
def test_triton_s_finer_rules_are_reported_with_the_field(config: dict[str, Any], path: str) -> None:
    first, *_ = check_together([pool(runtime={"name": "triton"}), model("m", config=config)])
    assert first.path == path


def test_a_faulty_resource_without_a_valid_revision_gets_a_status() -> None:
    right = decide(pool(), model("m"))
    (step,) = right.steps[POOL]
    problem = Problem("", "InferenceModel default/m", "spec.version", "expected a whole number; found 'x'")
    before = PoolSnapshot(right.servers(POOL), (READY,), (step.repository,))
    snapshot = FleetSnapshot((pool(),), NODES, {POOL: before}, (problem,), (model("m"),), right.statuses)
    outcome = reconcile(snapshot, NOON)
    assert described(of(outcome))[:2] == ("False", "InvalidSpec")
    (left,) = outcome.steps[POOL]
    assert (left.plan.name, left.draining, set(left.routes)) == ("p-0", True, {"m"})
    assert left.repository == step.repository


def test_a_name_that_another_pool_has_takes_a_model_out() -> None:
    taken = Problem("", "InferenceModel default/m", "metadata.name", "there is also an Ensemble 'm'")
    outcome = reconcile(FleetSnapshot((pool(), model("m"), model("n")), NODES, problems=(taken,)), NOON)
    assert described(of(outcome))[:2] == ("False", "NameConflict")
    assert [placement.model for server in outcome.plan.pools[0].servers for placement in server.placements] == ["n"]


def test_an_unchanged_round_changes_no_status() -> None:
    first = decide(pool(), model("m"), ensemble("e", "m"))
    second = decide(
        pool(),
        model("m"),
        ensemble("e", "m"),
        previous=first,
        now=NOON + timedelta(minutes=1),
    )
    assert second.statuses == first.statuses
    assert first.problems == ()


def test_a_model_with_an_engine_needs_storage_for_engines() -> None:
    outcome = decide(pool(), model("m", engine={"builder": "onnxruntime"}), model("n"))
    assert described(of(outcome))[:2] == ("False", "EngineNotBuilt")
    assert described(of(outcome), ConditionType.STALLED)[:2] == ("True", "EngineNotBuilt")
    assert described(of(outcome), ConditionType.ENGINE_READY)[:2] == ("False", "EngineNotBuilt")
    assert "spec.storage.engineCache" in described(of(outcome))[2]
    (step,) = outcome.steps[POOL]
    assert [model.name for model in step.repository.models] == ["n"]


def test_what_served_before_an_engine_was_requested_goes_on_serving() -> None:
    before = decide(pool(), model("m"))
    requested = decide(pool(), model("m", engine={"builder": "onnxruntime"}), previous=before)
    assert described(of(requested))[:2] == ("False", "EngineNotBuilt")
    assert described(of(requested), ConditionType.ENGINE_READY)[1] == "EngineNotBuilt"
    assert described(of(requested), ConditionType.LOADED)[0] == "True"
    assert requested.steps[POOL][0].repository == before.steps[POOL][0].repository


def test_a_format_that_the_runtime_cannot_run_is_a_reason() -> None:
    outcome = decide(pool(runtime={"name": "triton"}), model("m", modelFormat={"name": "huggingface"}))
    assert described(of(outcome))[:2] == ("False", "UnsupportedFormat")


def test_a_checkpoint_without_an_engine_is_refused_with_the_way_out() -> None:
    engine = {"builder": "tensorrt_llm", "options": {"backend": "pytorch"}}
    nvidias = pool(runtime={"name": "triton"}, storage={"engineCache": {"storageUri": "s3://b/e"}})
    outcome = decide(nvidias, model("m", modelFormat={"name": "huggingface"}, engine=engine))
    status, reason, message = described(of(outcome))
    assert (status, reason) == ("False", "UnsupportedFormat")
    assert "spec.engine.options.backend" in message
    assert "use a pool with runtime.name argosy" in message
