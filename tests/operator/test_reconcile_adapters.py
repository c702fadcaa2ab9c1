"""Adapters of a model: each is loaded on every server of the model, by its own files, and never makes it reload."""

from typing import Any

import pytest
from tests.operator.planning.declared import gpu_node, model, model_body, pool
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.api import InferenceModel, parse_body
from argosy.planning.validation.references import check_set
from argosy_runtime.modelconfig import parse_text
from argosy_runtime.modelconfig.parameters.variants import variant_routing

ONE = {"name": "sql-v1", "storageUri": "s3://b/one"}
TWO = {"name": "sql-v2", "storageUri": "s3://b/two"}


def base(*adapters: dict[str, Any], **spec: Any) -> InferenceModel:
    return model("m", modelFormat={"name": "vllm"}, adapters=list(adapters), inputs=None, outputs=None, **spec)


def repository(cluster: Cluster) -> dict[str, Any]:
    (server,) = cluster.servers.values()
    return server.loaded


def test_an_adapter_is_a_model_of_its_base_on_the_same_server() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    outcome = cluster.settle([pool(), base(ONE, TWO)])
    loaded = repository(cluster)
    assert loaded.keys() == {"m", "sql-v1", "sql-v2"}
    config = parse_text(loaded["sql-v1"].config_text)
    assert (config.backend, config.parameters["base"].string_value) == ("adapter", "m")
    assert (loaded["sql-v1"].base, loaded["sql-v1"].versions[1].uri) == ("m", "s3://b/one")
    parameters = parse_text(loaded["m"].config_text).parameters
    arguments = {name: parameters[name].string_value for name in ("enable_lora", "max_lora_rank", "max_loras")}
    assert arguments == {"enable_lora": "true", "max_lora_rank": "64", "max_loras": "4"}
    status = outcome.statuses["InferenceModel default/m"]
    assert status.ready
    assert [(item.name, item.state) for item in status.adapters] == [("sql-v1", "Serving"), ("sql-v2", "Serving")]
    assert outcome.valid.keys() == {"ServingPool default/p", "InferenceModel default/m"}


def test_further_and_fewer_adapters_do_not_reload_the_model() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), base(ONE)])
    before = repository(cluster)["m"]
    for adapters in ([ONE, TWO], [TWO], [{**TWO, "storageUri": "s3://b/other"}]):
        for _ in range(20):
            cluster.tick([pool(), base(*adapters)])
            assert cluster.routed()["m"] == {"p-0"}
        cluster.settle([pool(), base(*adapters)])
        assert repository(cluster).keys() == {"m", *(adapter["name"] for adapter in adapters)}
        assert repository(cluster)["m"].config_text == before.config_text
    assert repository(cluster)["sql-v2"].versions[1].uri == "s3://b/other"


def test_replicas_and_placements_are_the_models() -> None:
    cluster = Cluster((gpu_node("a", memory=30), gpu_node("b", memory=30)))
    outcome = cluster.settle([pool(), base(ONE, minReplicas=2)])
    assert all({p.model for p in step.plan.placements} == {"m", "m--sql-v1"} for step in outcome.steps[POOL])
    assert len(outcome.steps[POOL]) == 2


def test_an_adapter_that_does_not_load_is_named_and_the_model_serves() -> None:
    cluster = Cluster((gpu_node("a"),), refuses=frozenset({("sql-v1", 1)}))
    outcome = cluster.settle([pool(), base(ONE, TWO)])
    status = outcome.statuses["InferenceModel default/m"]
    assert status.ready
    assert [(item.state, "does not load" in item.message) for item in status.adapters] == [
        ("Failed", True),
        ("Serving", False),
    ]


def test_an_alias_routes_by_weight() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), base({**ONE, "alias": "sql", "weight": 9}, {**TWO, "alias": "sql"})])
    routing = variant_routing(parse_text(repository(cluster)["sql"].config_text))
    assert [(item.model, item.weight) for item in routing.variants] == [("sql-v1", 9), ("sql-v2", 1)]


VARIANTS = [{"name": "few", "maxConcurrency": 4}, {"name": "many"}]


def test_adapters_of_a_model_with_variants_are_loaded_through_it() -> None:
    cluster = Cluster((gpu_node("a"), gpu_node("b")))
    declared = base({**ONE, "alias": "sql"}, {**TWO, "alias": "sql"}, variants=VARIANTS)
    outcome = cluster.settle([pool(), declared])
    loaded = repository(cluster)
    assert loaded.keys() == {"m", "m--few", "m--many", "sql-v1", "sql-v2", "sql"}
    config = parse_text(loaded["sql-v1"].config_text)
    assert (config.backend, config.parameters["base"].string_value, loaded["sql-v1"].base) == ("adapter", "m", "m")
    for name in ("m--few", "m--many"):
        parameters = parse_text(loaded[name].config_text).parameters
        assert parameters["enable_lora"].string_value == "true"
    status = outcome.statuses["InferenceModel default/m"]
    assert status.ready
    assert [(item.name, item.state, item.available_replicas) for item in status.adapters] == [
        ("sql-v1", "Serving", 1),
        ("sql-v2", "Serving", 1),
    ]
    assert cluster.routed()["m--sql-v1"] == {"p-0"}
    before = {name: loaded[name].config_text for name in ("m", "m--few", "m--many")}
    cluster.settle([pool(), base(ONE, variants=VARIANTS)])
    loaded = repository(cluster)
    assert loaded.keys() == {"m", "m--few", "m--many", "sql-v1"}
    assert {name: loaded[name].config_text for name in before} == before


def test_a_variant_that_takes_no_adapters_is_named() -> None:
    cluster = Cluster((gpu_node("a"),))
    variants = [{"name": "plain", "modelFormat": {"name": "onnx"}, "maxConcurrency": 4}, {"name": "many"}]
    outcome = cluster.settle([pool(), base(ONE, variants=variants)])
    status = outcome.statuses["InferenceModel default/m"]
    (valid,) = (item for item in status.conditions if item.type == "Valid")
    assert "spec.adapters: plain gets no requests for adapters" in valid.message
    assert status.adapters[0].state == "Serving"


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"modelFormat": {"name": "onnx"}, "adapters": [ONE]}, "spec.adapters", "load adapters, and onnxruntime runs"),
        ({"adapters": [ONE, ONE]}, "spec.adapters[1].name", "two adapters 'sql-v1'"),
        ({"adapters": [{**ONE, "weight": 1}]}, "spec.adapters[0].weight", "set alias"),
        ({"adapters": [{**ONE, "alias": "sql-v2"}, TWO]}, "spec.adapters[0].alias", "is the name of an adapter"),
        ({"adapters": [{**ONE, "alias": "sql", "weight": 0}]}, "spec.adapters[0].weight", "have weight 0"),
        (
            {
                "modelFormat": {"name": "onnx"},
                "adapters": [ONE],
                "variants": [{"name": "a"}, {"name": "b", "maxBatchSize": 4}],
            },
            "spec.adapters",
            "onnxruntime runs its variants",
        ),
    ],
)
def test_wrong_adapters_are_named_by_their_fields(spec, path, message) -> None:
    declared = {"modelFormat": {"name": "vllm"}, "inputs": None, "outputs": None, **spec}
    _, problems = parse_body(model_body("m", **declared))
    assert [problem.path for problem in problems] == [path]
    assert message in problems[0].message


def test_a_model_that_takes_the_name_of_an_adapter_is_refused_before_it_happens() -> None:
    (problem,) = check_set([pool(), base(ONE), model("z", modelName="sql-v1")])
    assert (problem.resource, problem.path) == ("InferenceModel default/z", "spec.modelName")
    assert "know an adapter or alias of InferenceModel default/m, which comes first, as 'sql-v1'" in problem.message


@pytest.mark.parametrize(
    ("others", "spec", "path", "message"),
    [
        ([model("a", modelName="sql-v1")], {}, "spec.adapters[0].name", "as 'sql-v1'; choose another"),
        ([], {"runtime": {"name": "triton"}}, "spec.adapters[0].name", "loads no adapters while it runs"),
    ],
)
def test_problems_with_other_resources_are_the_models(others, spec, path, message) -> None:
    problems = check_set([*others, pool(**spec), base(ONE)])
    assert [(problem.resource, problem.path) for problem in problems] == [("InferenceModel default/m", path)]
    assert message in problems[0].message
