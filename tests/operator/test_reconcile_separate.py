"""Variants with servers of their own: each is planned and scaled by itself, and requests go to the servers of one."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, model_body, pool
from tests.operator.planning.simulated_cluster import POOL, START, Cluster

from argosy.api import ConditionType, InferenceModel, Reason, parse_body
from argosy.autoscaling.decision import Allocation, Decision
from argosy.autoscaling.metrics.signals import VariantSignals
from argosy.autoscaling.pool.regimes import FleetRegime
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.local.manifests.this_machine import for_this_machine, without_effect
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.validation.references import check_names, check_set
from argosy.reconcile import RoundOutcome
from argosy_common.regimes import RegimeState
from argosy_runtime.modelconfig import parse_text
from argosy_runtime.modelconfig.parameters.variants import variant_routing

NAME = "InferenceModel default/m"
LOW, HIGH = {"name": "low", "maxConcurrency": 8}, {"name": "high"}
SMALL = (gpu_node("a", 1, 30), gpu_node("b", 1, 30))
"""Nodes that take one variant each."""


def separate(*variants: dict[str, Any], **spec: Any) -> InferenceModel:
    return model("m", variants=list(variants or (LOW, HIGH)), routing={"placement": "Separate"}, **spec)


def chosen(cluster: Cluster, variant: str) -> None:
    """Let the load ask for a variant."""
    regime = FleetRegime(variant, RegimeState(0, 1_767_225_600_000_000_000, 1), why="9 in flight")
    cluster.snapshot = replace(cluster.snapshot, regimes={NAME: regime})


def decided(cluster: Cluster, replicas: int, *names: str) -> None:
    """Let scaling have decided on these, and on nothing else."""
    decision = Decision(Allocation(replicas), replicas, Reason.SCALED_UP, "It is so.")
    cluster.snapshot = replace(cluster.snapshot, decisions=dict.fromkeys(names, decision))


def choice(outcome: RoundOutcome) -> VariantChoice:
    return outcome.choices[POOL]["m"]


def servers_of(cluster: Cluster, name: str) -> set[str]:
    return cluster.serving().get(name, set())


def variants_in(cluster: Cluster, server: str) -> list[str]:
    return [v.model for v in variant_routing(parse_text(cluster.servers[server].loaded["m"].config_text)).variants]


def test_variants_that_fit_on_no_server_together_have_servers_that_answer_for_the_model() -> None:
    cluster = Cluster(SMALL)
    outcome = cluster.settle([pool(), separate()])
    (low,), (high,) = servers_of(cluster, "m--low"), servers_of(cluster, "m--high")
    assert cluster.routed() == {"m": {low, high}, "m--low": {low}, "m--high": {high}}
    assert (variants_in(cluster, low), variants_in(cluster, high)) == (["m--low"], ["m--high"])
    assert choice(outcome) == VariantChoice("m--low", "m--low", frozenset({low}), frozenset({high}))
    status = outcome.statuses[NAME]
    assert status.ready
    assert (status.replicas, status.regime.variant, status.regime.servers) == (1, "low", 1)
    assert [(v.name, v.state, v.replicas, v.available_replicas) for v in status.variants] == [
        ("low", "Serving", 1, 1),
        ("high", "Serving", 1, 1),
    ]
    assert outcome.valid.keys() == {"ServingPool default/p", NAME}


def test_the_regime_of_the_load_chooses_whose_servers_requests_go_to() -> None:
    cluster = Cluster(SMALL)
    resources = [pool(), separate()]
    cluster.settle(resources)
    chosen(cluster, "high")
    outcome = cluster.settle(resources)
    (low,), (high,) = servers_of(cluster, "m--low"), servers_of(cluster, "m--high")
    assert choice(outcome) == VariantChoice("m--high", "m--high", frozenset({high}), frozenset({low}))
    regime = outcome.statuses[NAME].regime
    assert (regime.variant, regime.servers, regime.since, regime.message) == (
        "high",
        1,
        "2026-01-01T00:00:00Z",
        "9 in flight",
    )
    assert regime.crossover == "8"


def test_a_variant_that_cannot_answer_is_not_routed_to_until_it_can() -> None:
    cluster = Cluster(SMALL)
    resources = [pool(), separate()]
    cluster.settle(resources)
    chosen(cluster, "high")
    (low,), (high,) = servers_of(cluster, "m--low"), servers_of(cluster, "m--high")
    cluster.unready = frozenset({high})
    outcome = cluster.tick(resources)
    assert choice(outcome) == VariantChoice("m--low", "m--high", frozenset({low}), frozenset({high}))
    regime = outcome.statuses[NAME].regime
    assert (regime.variant, regime.since) == ("low", None)
    assert regime.message == "no server of high answers, so requests go to low until one does"
    cluster.unready = frozenset({low, high})
    outcome = cluster.tick(resources)
    assert choice(outcome).others == frozenset(), "all stay where none can answer"
    assert outcome.statuses[NAME].regime.message == "no server of any variant answers"
    cluster.unready = frozenset()
    assert choice(cluster.tick(resources)).variant == "m--high"


def test_every_variant_has_the_models_replicas() -> None:
    cluster = Cluster(tuple(gpu_node(name, 1, 30) for name in "abcd"))
    outcome = cluster.settle([pool(), separate(minReplicas=2)])
    assert [(v.replicas, v.available_replicas) for v in outcome.statuses[NAME].variants] == [(2, 2), (2, 2)]
    status = outcome.statuses[NAME]
    assert (status.replicas, status.available_replicas, status.scaling.replicas) == (2, 2, 2), "as spec.replicas counts"
    assert len(choice(outcome).servers) == len(choice(outcome).others) == 2


def test_variants_that_fit_together_may_share_a_server_which_then_chooses() -> None:
    cluster = Cluster((gpu_node("a", 1, 100),))
    outcome = cluster.settle([pool(maxServers=1), separate()])
    assert variants_in(cluster, "p-0") == ["m--low", "m--high"]
    assert choice(outcome).others == frozenset()


def test_an_unplaced_variant_is_reported_and_the_other_serves() -> None:
    cluster = Cluster((gpu_node("a", 1, 30),))
    outcome = cluster.settle([pool(), separate()])
    assert len(cluster.servers) == 1
    assert "1 of 2 replicas are placed" in cluster.message("m", ConditionType.PLACED)
    assert not outcome.statuses[NAME].ready
    assert cluster.routed()["m"] == {"p-0"}
    assert choice(outcome).servers == {"p-0"}


def test_a_new_version_of_every_variant_takes_over_on_its_own_servers() -> None:
    cluster = Cluster((gpu_node("a", 1, 60), gpu_node("b", 1, 60)))
    first = [pool(maxGpusPerServer=1), separate(footprint={"gpuMemory": "28Gi"})]
    cluster.settle(first)
    second = [pool(maxGpusPerServer=1), separate(footprint={"gpuMemory": "28Gi"}, version=2, storageUri="s3://b/m/2")]
    cluster.keep_routed(second, ["m"])
    outcome = cluster.settle(second)
    assert outcome.statuses[NAME].active_version == 2
    assert outcome.statuses[NAME].ready


def test_placement_changes_between_both_while_something_serves() -> None:
    cluster = Cluster((gpu_node("a", 1, 60), gpu_node("b", 1, 30)))
    together = [pool(), model("m", variants=[LOW, HIGH])]
    cluster.settle(together)
    apart = [pool(), separate()]
    cluster.keep_routed(apart, ["m"])
    cluster.keep_routed(together, ["m"])
    assert len(servers_of(cluster, "m")) == 1


def test_a_change_of_placement_keeps_the_replicas_that_scaling_decided() -> None:
    cluster = Cluster(tuple(gpu_node(name, 1, 60) for name in "abcdef"))
    scaled = {"minReplicas": 1, "maxReplicas": 3}
    together, apart = [pool(), model("m", variants=[LOW, HIGH], **scaled)], [pool(), separate(**scaled)]
    decided(cluster, 3, NAME)
    cluster.settle(together)
    decided(cluster, 3)
    outcome = cluster.settle(apart)
    assert [v.scaling.replicas for v in outcome.statuses[NAME].variants] == [3, 3]
    third = [pool(), separate(LOW, {"name": "middle", "maxConcurrency": 9}, HIGH, **scaled)]
    assert [v.scaling.replicas for v in cluster.tick(third).statuses[NAME].variants] == [3, 3, 3]
    decided(cluster, 2, "Variant default/m--low", "Variant default/m--high")
    cluster.settle(apart)
    decided(cluster, 2)
    outcome = cluster.settle(together)
    assert (outcome.statuses[NAME].scaling.replicas, outcome.statuses[NAME].replicas) == (2, 2)


def test_the_replicas_that_an_autoscaler_reads_are_those_it_sets() -> None:
    cluster = Cluster(tuple(gpu_node(name, 1, 30) for name in "abcdef"))
    for replicas in (1, 3):
        status = cluster.settle([pool(), separate(replicas=replicas)]).statuses[NAME]
        assert (status.replicas, status.available_replicas, status.scaling.replicas) == (replicas,) * 3


def test_a_model_that_is_suspended_lacks_no_server() -> None:
    cluster = Cluster(SMALL)
    cluster.settle([pool(), separate()])
    status = cluster.settle([pool(), separate(replicas=0)]).statuses[NAME]
    assert cluster.message("m", ConditionType.PLACED).startswith("ScaledToZero: spec.replicas is 0")
    assert (status.replicas, status.regime.servers, status.regime.message) == (0, 0, "")


def test_the_advice_shares_the_load_among_the_servers_that_requests_go_to() -> None:
    cluster = Cluster(SMALL)
    resources = [pool(), separate()]
    cluster.settle(resources)
    measured = (VariantSignals("m--high", 0, 0, ready=1), VariantSignals("m--low", 10, 4, ready=1))
    report = VariantsReport(START, measured, arrivals=4.0, latency=3.0, servers=2)
    cluster.snapshot = replace(cluster.snapshot, variants={NAME: report})
    status = cluster.tick(resources).statuses[NAME]
    assert status.regime.advice.startswith("4 requests a second x 3 s = 12 in flight on average, more than 8")
    assert [(v.share, v.in_flight) for v in status.variants] == [(1000, 4), (0, 0)]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"minReplicas": 0}, "spec.minReplicas"),
        (
            {
                "maxReplicas": 2,
                "scaling": {"schedules": [{"name": "night", "start": "22:00", "end": "06:00", "minReplicas": 0}]},
            },
            "spec.scaling.schedules[0].minReplicas",
        ),
    ],
)
def test_a_variant_that_may_have_no_server_is_refused(spec: dict[str, Any], path: str) -> None:
    body = model_body("m", variants=[LOW, HIGH], routing={"placement": "Separate"}, **spec)
    problems = parse_body(body)[1]
    assert [problem.path for problem in problems] == [path], problems
    assert "need a server each" in problems[0].message
    assert not parse_body(model_body("m", variants=[LOW, HIGH], **spec))[1]


def test_adapters_of_such_a_model_are_refused() -> None:
    adapters = [{"name": "legal", "storageUri": "s3://b/legal"}]
    spec = {
        "modelFormat": {"name": "vllm"},
        "adapters": adapters,
        "footprint": {"gpus": 1},
        "inputs": [],
        "outputs": [],
    }
    body = model_body("m", variants=[LOW, HIGH], routing={"placement": "Separate"}, **spec)
    assert [problem.path for problem in parse_body(body)[1]] == ["spec.adapters"]
    assert not parse_body(body | {"spec": body["spec"] | {"routing": {}}})[1]


@pytest.mark.parametrize(
    ("routing", "path", "message"),
    [
        ({"minDwell": "5s"}, "spec.routing.minDwell", "is 5s, and requests change from server to server after 15s"),
        ({"idleTimeout": "1m"}, "spec.routing.idleTimeout", "with routing.placement Separate none sleeps"),
    ],
)
def test_routing_without_effect_between_servers_is_refused(routing: dict[str, str], path: str, message: str) -> None:
    body = model_body("m", variants=[LOW, HIGH], routing={"placement": "Separate"} | routing)
    (problem,) = parse_body(body)[1]
    assert problem.path == path
    assert message in problem.message
    assert not parse_body(model_body("m", variants=[LOW, HIGH], routing=routing))[1]


@pytest.mark.parametrize("routing", [{"placement": "Separate"}, {"minDwell": "5s"}, {"hysteresis": "20%"}])
def test_routing_without_variants_is_refused(routing: dict[str, str]) -> None:
    (problem,) = parse_body(model_body("m", routing=routing))[1]
    assert problem.path == "spec.routing"
    assert "list some in spec.variants" in problem.message
    assert not parse_body(model_body("m", routing={}))[1]


def test_an_ensemble_that_runs_such_a_model_is_refused() -> None:
    (problem,) = check_set([pool(), separate(), ensemble("e", "m")])
    assert (problem.resource, problem.path) == ("Ensemble default/e", "spec.steps[0].model")
    assert "set SameServer there" in problem.message


@pytest.mark.parametrize("placement", ["Separate", "SameServer"])
def test_a_resource_of_another_pool_has_no_name_of_a_service(placement) -> None:
    created, later = ({"creationTimestamp": f"{year}-01-01T00:00:00Z"} for year in (2026, 2027))
    other = model("m--low", metadata=later, poolRef={"name": "other"})
    declared = model("m", variants=[LOW, HIGH], routing={"placement": placement}, metadata=created)
    problems = check_names([declared, other])
    refused = [("InferenceModel default/m--low", "metadata.name")] if placement == "Separate" else []
    assert [(problem.resource, problem.path) for problem in problems] == refused


@pytest.mark.parametrize("check", [check_set, check_names])
def test_an_ensemble_with_the_name_of_such_a_model_is_refused(check) -> None:
    (problem,) = check([pool(), model("x"), separate(), ensemble("m", "x")])
    assert (problem.resource, problem.path) == ("Ensemble default/m", "metadata.name")


def test_on_one_machine_variants_share_a_server() -> None:
    (here,) = for_this_machine([separate()], 2)
    assert isinstance(here, InferenceModel)
    assert here.spec.routing.placement == "SameServer"
    (line,) = without_effect([separate()], 1)
    assert line == f"{NAME}: spec.routing.placement: variants share a server, which chooses one for each request"
