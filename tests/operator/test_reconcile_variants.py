"""Models with variants: each variant is placed, loaded and versioned like a model, and the model routes to them."""

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, model_body, pool
from tests.operator.planning.simulated_cluster import POOL, START, Cluster

from argosy.api import ConditionType, InferenceModel, parse_body
from argosy.autoscaling.metrics.signals import CrossoverSignals, VariantSignals
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.validation.references import check_set
from argosy.planning.variants import RoutedModel, declared, expanded
from argosy.render.config.configrules import check_together
from argosy.status.findings.variants import regime_status, suited
from argosy_runtime.modelconfig import parse_text
from argosy_runtime.modelconfig.parameters.variants import variant_routing

NAME = "InferenceModel default/m"
LOW, HIGH = {"name": "low", "maxConcurrency": 8}, {"name": "high"}


def routed(version: int = 1, *variants: dict[str, Any], **spec: Any) -> InferenceModel:
    return model("m", version, variants=list(variants or (LOW, HIGH)), **spec)


def configs(cluster: Cluster) -> dict[str, Any]:
    (server,) = cluster.servers.values()
    return {name: parse_text(item.config_text) for name, item in server.loaded.items()}


def test_variants_are_models_on_the_same_server() -> None:
    cluster = Cluster((gpu_node("a", 2, 30),))
    outcome = cluster.settle([pool(), routed(routing={"minDwell": "2s", "idleTimeout": "0s"}, modelName="Chat")])
    loaded = configs(cluster)
    assert loaded.keys() == {"Chat", "Chat--low", "Chat--high"}
    routing = variant_routing(loaded["Chat"])
    assert [(v.model, v.version, v.max_concurrency) for v in routing.variants] == [
        ("Chat--low", 1, 8),
        ("Chat--high", 1, None),
    ]
    assert (routing.hysteresis, routing.min_dwell_seconds, routing.idle_timeout_seconds) == (0.1, 2.0, 0.0)
    (step,) = outcome.steps[POOL]
    gpus = {placement.model: placement.gpus for placement in step.plan.placements}
    assert gpus == {"m--low": (0,), "m--high": (1,)} or gpus == {"m--low": (1,), "m--high": (0,)}
    assert outcome.valid.keys() == {"ServingPool default/p", "InferenceModel default/m"}
    status = outcome.statuses["InferenceModel default/m"]
    assert status.ready
    assert (status.url, status.replicas) == ("http://p-0/v2/models/Chat", 1)
    assert [(v.name, v.model, v.state) for v in status.variants] == [
        ("low", "Chat--low", "Serving"),
        ("high", "Chat--high", "Serving"),
    ]
    assert status.regime.crossover == "8"


def test_a_new_version_takes_over_once_every_variant_of_it_is_ready() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    cluster.settle([pool(), routed()])
    changed = [pool(), routed(2)]
    seen = set()
    for _ in range(40):
        cluster.tick(changed)
        assert cluster.routed()["m"] == {"p-0"}
        if "m" in (loaded := configs(cluster)):
            seen.add(tuple(variant.version for variant in variant_routing(loaded["m"]).variants))
    assert seen == {(1, 1), (2, 2)}
    assert cluster.settle(changed).statuses["InferenceModel default/m"].active_version == 2


def test_a_variant_that_does_not_load_is_named_and_the_other_serves() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),), refuses=frozenset({("m--low", 1)}))
    outcome = cluster.settle([pool(), routed()])
    assert cluster.message("m").startswith("LoadFailed: variant low: version 1 is loaded on 0 of 1 server")
    status = outcome.statuses["InferenceModel default/m"]
    assert [variant.state for variant in status.variants] == ["Failed", "Serving"]
    (server,) = cluster.servers.values()
    assert server.step.repository.model("m").alternatives
    assert not status.ready


def test_variants_that_fit_on_no_server_together_are_unplaced_with_their_model() -> None:
    cluster = Cluster((gpu_node("a", 1, 30),))
    outcome = cluster.settle([pool(), routed()])
    assert not outcome.steps[POOL]
    assert "0 of 1 replicas are placed" in cluster.message("m", ConditionType.PLACED)


def test_replicas_are_the_models() -> None:
    cluster = Cluster(tuple(gpu_node(name, 1, 60) for name in "abc"))
    outcome = cluster.settle([pool(), routed(minReplicas=2)])
    assert outcome.statuses["InferenceModel default/m"].replicas == 2
    assert len(outcome.steps[POOL]) == 2
    outcome = cluster.settle([pool(), routed(replicas=0)])
    assert not outcome.steps[POOL]
    assert cluster.message("m", ConditionType.READY).startswith("ScaledToZero")


def test_without_a_crossover_the_status_says_what_is_missing() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    outcome = cluster.settle([pool(), routed(1, {"name": "low"}, HIGH)])
    status = outcome.statuses["InferenceModel default/m"]
    assert status.ready
    assert status.regime.crossover == "Unknown"
    assert cluster.message("m", ConditionType.VALID) == (
        "CrossoverUnknown: spec.variants[0].maxConcurrency: the crossover of low and high is not declared, so requests "
        "go to the first variant that can answer; measure both with argosy bench, and set the field to the crossover "
        "that it prints"
    )


MEASURED = {
    "time": "2026-05-04T14:00:00+02:00",
    "hardware": "1x H100",
    "concurrency": 8.31,
    "low": 7.5,
    "high": 9.2,
    "promptTokens": 256,
    "outputTokens": 64,
}


def test_the_status_says_when_and_on_what_a_crossover_was_measured() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    regime = cluster.settle([pool(), routed(1, LOW | {"measurement": MEASURED}, HIGH)]).statuses[NAME].regime
    assert (regime.crossover, regime.measured_at) == ("8", "2026-05-04T12:00:00Z")
    assert regime.measured == (
        "low up to 8.31 in flight (95 %: 7.5 to 9.2), 256 tokens in and 64 out, on 1x H100, 2026-05-04T14:00:00+02:00"
    )


def test_the_status_gives_no_time_where_a_crossover_is_only_declared() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    middle = {"name": "middle", "maxConcurrency": 30}
    regime = cluster.settle([pool(), routed(1, LOW | {"measurement": MEASURED}, middle, HIGH)]).statuses[NAME].regime
    assert (regime.crossover, regime.measured_at) == ("8, 30", None)
    assert regime.measured.startswith("low up to 8.31 in flight")
    regime = cluster.settle([pool(), routed()]).statuses[NAME].regime
    assert (regime.measured_at, regime.measured) == (None, "")


@pytest.mark.parametrize(
    ("variant", "field", "words"),
    [
        ({"maxConcurrency": 9}, "measurement", "is of a crossover of 8, which maxConcurrency is not"),
        ({"maxConcurrency": None}, "measurement", "is of a crossover of 8, which maxConcurrency is not"),
        ({"measurement": MEASURED | {"time": "2026-13-04T12:00:00Z"}}, "measurement.time", "is no time of RFC 3339"),
        ({"measurement": MEASURED | {"time": "yesterday"}}, "measurement.time", "is not a time of RFC 3339"),
        ({"measurement": MEASURED | {"concurrency": 0.5}}, "measurement.concurrency", "1.0 or more"),
    ],
)
def test_a_measurement_of_another_crossover_is_refused(variant: dict[str, Any], field: str, words: str) -> None:
    low = LOW | {"measurement": MEASURED} | variant
    (problem,) = parse_body(model_body("m", 1, variants=[low, HIGH]))[1]
    assert (problem.path, words in problem.message) == (f"spec.variants[0].{field}", True), problem


def test_a_new_measurement_of_the_same_crossover_loads_nothing() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    cluster.settle([pool(), routed()])
    before = {name: config.SerializeToString() for name, config in configs(cluster).items()}
    cluster.settle([pool(), routed(1, LOW | {"measurement": MEASURED}, HIGH)])
    assert {name: config.SerializeToString() for name, config in configs(cluster).items()} == before


def test_the_status_has_the_regime_the_shares_and_what_sleeps() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    resources = [pool(), routed()]
    cluster.settle(resources)
    measured = (
        VariantSignals("m--high", 30, 12, regime=1, ready=1, regime_s=90.0),
        VariantSignals("m--low", 10, 0, asleep=1),
    )
    report = VariantsReport(START, measured, START - timedelta(seconds=90))
    cluster.snapshot = cluster.snapshot.__class__(
        **{name: getattr(cluster.snapshot, name) for name in cluster.snapshot.__dataclass_fields__}
        | {"variants": {"InferenceModel default/m": report}}
    )
    status = cluster.tick(resources).statuses["InferenceModel default/m"]
    assert (status.regime.variant, status.regime.servers, status.regime.since) == ("high", 1, "2025-12-31T23:58:30Z")
    assert [(v.state, v.share, v.in_flight) for v in status.variants] == [("Asleep", 250, 0), ("Serving", 750, 12)]


@pytest.mark.parametrize(
    ("arrivals", "latency", "servers", "advice"),
    [
        (4.0, 2.0, 1, "4 requests a second x 2 s = 8 in flight on average, no more than 8: low suits them"),
        (4.0, 3.0, 1, "4 requests a second x 3 s = 12 in flight on average, more than 8: high suits them"),
        (4.0, 3.0, 2, "4 requests a second x 3 s / 2 servers = 6 in flight on average, no more than 8: low suits them"),
        (0.0, None, 1, ""),
    ],
)
def test_the_advice_follows_from_the_measured_traffic(arrivals, latency, servers, advice) -> None:
    report = VariantsReport(START, (), arrivals=arrivals, latency=latency, servers=servers)
    assert suited(routed().spec.variants, report) == advice


def test_an_ensemble_may_run_a_model_with_variants() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    outcome = cluster.settle([pool(), routed(), ensemble("e", "m")])
    assert all(status.ready for status in outcome.statuses.values())
    assert configs(cluster)["e"].ensemble_scheduling.step[0].model_name == "m"


def test_a_removed_variant_is_unloaded_while_the_other_serves() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    cluster.settle([pool(), routed()])
    changed = [pool(), routed(1, HIGH)]
    for _ in range(20):
        cluster.tick(changed)
        assert cluster.routed()["m"] == {"p-0"}
    cluster.settle(changed)
    assert configs(cluster).keys() == {"m", "m--high"}


OTHERS = ({"name": "a", "maxConcurrency": 8}, {"name": "b"})
SEPARATE = {"placement": "Separate"}


@pytest.mark.parametrize(
    "after",
    [model("m"), routed(1, *OTHERS), routed(1, *OTHERS, routing=SEPARATE)],
    ids=["no variants", "all renamed", "all renamed, and separate"],
)
@pytest.mark.parametrize("before", [routed(), routed(routing=SEPARATE)], ids=["same server", "separate"])
def test_a_model_whose_variants_are_all_removed_serves_with_them_until_it_is_loaded(before, after) -> None:
    cluster = Cluster(tuple(gpu_node(name, 1, 60) for name in "abc"))
    cluster.settle([pool(), before])
    cluster.keep_routed([pool(), after], ["m"])
    serving = cluster.serving()
    names = {"m"} | {f"m--{variant.name}" for variant in after.spec.variants}
    assert serving.keys() == names, "the former variants are gone"


@pytest.mark.parametrize(
    ("others", "spec", "path", "message"),
    [
        ([model("m--low")], {}, "spec.variants[0].name", "the name of InferenceModel default/m--low"),
        ([], {"runtime": {"name": "triton"}}, "spec.variants", "does not choose a model by requests in flight"),
    ],
)
def test_problems_with_other_resources_are_the_models(others, spec, path, message) -> None:
    problems = check_set([pool(**spec), routed(), *others])
    assert [(problem.resource, problem.path) for problem in problems] == [("InferenceModel default/m", path)]
    assert message in problems[0].message


@pytest.mark.parametrize(
    ("kind", "younger", "problem"),
    [
        (ensemble, True, ("Ensemble default/m--low", "metadata.name")),
        (ensemble, False, ("InferenceModel default/m", "spec.variants[0].name")),
        (model, True, ("InferenceModel default/m--low", "metadata.name")),
    ],
)
def test_of_a_variant_and_a_resource_of_one_name_the_younger_is_to_be_renamed(kind, younger, problem) -> None:
    created = {"creationTimestamp": f"202{7 if younger else 5}-01-01T00:00:00Z"}
    older = routed(metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    steps = ["x"] if kind is ensemble else []
    problems = check_set([pool(), model("x"), older, kind("m--low", *steps, metadata=created)])
    assert [(one.resource, one.path) for one in problems] == [problem]
    assert "Variant " not in problems[0].message


@pytest.mark.parametrize("of_variant", [True, False])
def test_what_a_server_would_not_load_is_at_the_field_that_sets_it(of_variant) -> None:
    config = {"model_metrics": {"metric_control": [{}]}}
    wrong = routed(1, {**LOW, "config": config}, HIGH) if of_variant else routed(config=config)
    problems = check_together([pool(), wrong])
    prefix = "spec.variants[0].config." if of_variant else "spec.config."
    assert problems
    assert {problem.resource for problem in problems} == {"InferenceModel default/m"}
    assert all(problem.path.startswith(f"{prefix}model_metrics.metric_control[0]") for problem in problems)


def test_specs_of_variants_stay_the_same_objects_and_fold_back() -> None:
    resources = [pool(), routed()]
    first, second = expanded(resources), expanded(resources)
    assert [one.spec is other.spec for one, other in zip(first, second, strict=True)] == [True] * 4
    assert list(declared(first)) == resources
    assert expanded(first) == first


def test_a_variant_with_a_format_of_its_own_inherits_no_engine_and_no_config() -> None:
    engine = {"builder": "onnxruntime"}
    spec = routed(
        1, LOW, {"name": "high", "modelFormat": {"name": "python"}, "storageUri": "s3://b/high"}, engine=engine
    )
    _, low, high = expanded([spec])
    assert (low.spec.engine is not None, low.spec.backend, low.spec.storage_uri) == (True, "onnxruntime", "s3://b/m/1")
    assert (high.spec.engine, high.spec.backend, high.spec.storage_uri) == (None, "python", "s3://b/high")
    assert json.loads(high.spec.model_dump_json(by_alias=True))["variants"] == []


@pytest.mark.parametrize(
    ("variants", "spec", "path", "message"),
    [
        ([LOW, LOW, HIGH], {}, "spec.variants[1].name", "there are two variants 'low'"),
        (
            [{"name": "a", "maxConcurrency": 8}, {"name": "b", "maxConcurrency": 8}, HIGH],
            {},
            "spec.variants[1].maxConcurrency",
            "no more than that of variant 0 ('a')",
        ),
        ([LOW, {**HIGH, "maxConcurrency": 9}], {}, "spec.variants[1].maxConcurrency", "the last variant takes all"),
        (
            [{**LOW, "engine": {"builder": "tensorrt_llm"}}, HIGH],
            {},
            "spec.variants[0].engine.builder",
            "tensorrt_llm compiles models of format",
        ),
        (
            [{**LOW, "footprint": {"gpus": 2, "gpuMemory": "1Gi"}, "parallelism": {"tensor": 4}}, HIGH],
            {},
            "spec.variants[0].footprint.gpus",
            "is 2, but parallelism",
        ),
        ([LOW, HIGH], {"versions": [{"version": 1, "storageUri": "s3://b/1"}]}, "spec.versions", "has one version"),
    ],
)
def test_wrong_variants_are_named_by_their_fields(variants, spec, path, message) -> None:
    _, problems = parse_body(model_body("m", variants=variants, **spec))
    assert path in [problem.path for problem in problems]
    assert message in next(problem.message for problem in problems if problem.path == path)


@pytest.mark.parametrize(("format_name", "memory", "sleeps"), [("vllm", 4, "true"), ("vllm", 0, ""), ("python", 4, "")])
def test_an_idle_variant_on_vllm_sleeps_in_its_process(format_name: str, memory: int, sleeps: str) -> None:
    high = {"name": "high", "modelFormat": {"name": format_name}, "storageUri": "s3://b/high"}
    cluster = Cluster((gpu_node("a", 2, 30),))
    cluster.settle([pool(), routed(1, LOW, high, memory=memory, maxBatchSize=0)])
    assert configs(cluster)["m--high"].parameters["enable_sleep_mode"].string_value == sleeps
    assert "enable_sleep_mode" not in configs(cluster)["m--low"].parameters


@pytest.mark.parametrize(("routing", "sleeps"), [({"idleTimeout": "0s"}, ""), ({"placement": "Separate"}, "true")])
def test_only_a_variant_that_may_sleep_is_started_for_it(routing: dict[str, str], sleeps: str) -> None:
    high = {"name": "high", "modelFormat": {"name": "vllm"}, "storageUri": "s3://b/high"}
    cluster = Cluster((gpu_node("a", 1, 100),))
    cluster.settle([pool(), routed(1, LOW, high, maxBatchSize=0, routing=routing)])
    assert configs(cluster).keys() == {"m", "m--low", "m--high"}, "also those that are separate may share a server"
    assert configs(cluster)["m--high"].parameters["enable_sleep_mode"].string_value == sleeps


def test_the_configuration_of_a_variant_may_turn_its_sleep_off() -> None:
    spec = {"config": {"parameters": {"enable_sleep_mode": {"string_value": "false"}}}}
    high = {"name": "high", "modelFormat": {"name": "vllm"}, "storageUri": "s3://b/high", **spec}
    cluster = Cluster((gpu_node("a", 2, 30),))
    cluster.settle([pool(), routed(1, LOW, high, maxBatchSize=0)])
    assert configs(cluster)["m--high"].parameters["enable_sleep_mode"].string_value == "false"


@pytest.mark.parametrize(
    ("crossover", "observed", "message"),
    [
        (None, ("", 0), ""),
        (CrossoverSignals(7.0, 9.0, 412.4, fits=True), ("7.94", 412), ""),
        (
            CrossoverSignals(None, 5.66, 412.4, fits=False),
            ("at most 5.66", 412),
            (
                "spec.variants[0].maxConcurrency is 8, and by 412 requests the crossover of low and high is at most "
                "5.66: measure it with argosy bench"
            ),
        ),
        (CrossoverSignals(16.0, None, 60.0, fits=None), ("at least 16", 60), ""),
        (CrossoverSignals(None, None, 60.0, fits=None), ("unknown", 60), ""),
    ],
)
def test_the_status_says_whether_a_crossover_still_fits(crossover, observed, message) -> None:
    model = next(part for part in expanded([routed()]) if isinstance(part, RoutedModel))
    variants = (VariantSignals("m--high"), VariantSignals("m--low", crossover=crossover))
    regime = regime_status(model, VariantsReport(START, variants))
    assert (regime.observed_crossover, regime.observed_requests) == observed
    assert regime.observed_message == message
    assert regime.crossover == "8"


def test_nothing_is_observed_without_measurements() -> None:
    model = next(part for part in expanded([routed()]) if isinstance(part, RoutedModel))
    assert regime_status(model, None).observed_crossover == ""
