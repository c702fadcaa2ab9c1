"""`modelName` is what clients ask for; all that Kubernetes and the plan know goes by `metadata.name`."""

from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import POOL, Cluster

from argosy.api import Resource
from argosy.planning.validation.references import check_set
from argosy.render.workloads.services import member_url
from argosy_runtime.modelconfig import parse_text

NAMED: list[Resource] = [pool(), model("m", modelName="Bert_v2.1"), ensemble("e", "m", modelName="Search.1")]


def texts(cluster: Cluster) -> dict[str, Any]:
    (server,) = cluster.servers.values()
    return {name: parse_text(item.config_text) for name, item in server.loaded.items()}


def test_folders_configs_steps_and_addresses_have_the_served_name() -> None:
    cluster = Cluster((gpu_node("a"),))
    outcome = cluster.settle(NAMED)
    configs = texts(cluster)
    assert {name: config.name for name, config in configs.items()} == {"Bert_v2.1": "Bert_v2.1", "Search.1": "Search.1"}
    assert [step.model_name for step in configs["Search.1"].ensemble_scheduling.step] == ["Bert_v2.1"]
    (server,) = cluster.servers.values()
    assert {model.name: dict(model.steps) for model in server.step.repository.models} == {
        "Bert_v2.1": {},
        "Search.1": {"Bert_v2.1": 1},
    }
    result = {identity: status.url for identity, status in outcome.statuses.items() if not identity.startswith("Serv")}
    assert result == {
        "InferenceModel default/m": "http://p-0/v2/models/Bert_v2.1",
        "Ensemble default/e": "http://p-0/v2/models/Search.1",
    }
    assert all(status.ready for status in outcome.statuses.values())
    _, named, _ = NAMED
    assert member_url(named).startswith("http://m.default.svc:")  # type: ignore[arg-type]
    assert member_url(named).endswith("/v2/models/Bert_v2.1")  # type: ignore[arg-type]


def test_the_plan_and_the_routes_go_by_the_resources_names() -> None:
    cluster = Cluster((gpu_node("a"),))
    outcome = cluster.settle(NAMED)
    (step,) = outcome.steps[POOL]
    assert step.routes == {"m", "e"}
    assert [placement.model for placement in step.plan.placements] == ["m"]
    assert step.served == {"m": (1,), "e": (1,)}


def test_a_new_version_under_a_served_name_interrupts_no_one() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle(NAMED)
    changed = [pool(), model("m", version=2, modelName="Bert_v2.1"), NAMED[2]]
    for _ in range(40):
        cluster.tick(changed)
        assert cluster.routed() == {"m": {"p-0"}, "e": {"p-0"}}
    outcome = cluster.settle(changed)
    assert all(status.ready for status in outcome.statuses.values())
    (server,) = cluster.servers.values()
    assert set(server.loaded["Bert_v2.1"].versions) == {2}
    assert server.loaded["Search.1"].steps == {"Bert_v2.1": 2}


def test_a_restarted_server_gets_back_what_served_under_its_name() -> None:
    cluster = Cluster((gpu_node("a"),), refuses=frozenset({("Bert_v2.1", 2)}))
    cluster.settle(NAMED[:2])
    changed = [pool(), model("m", version=2, modelName="Bert_v2.1")]
    cluster.settle(changed)
    cluster.restart("p-0")
    cluster.settle(changed)
    assert cluster.routed() == {"m": {"p-0"}}
    (server,) = cluster.servers.values()
    assert set(server.loaded["Bert_v2.1"].versions) == {1}


def test_another_served_name_is_another_folder() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle(NAMED)
    outcome = cluster.settle([pool(), model("m", modelName="Bert-3"), NAMED[2]])
    assert set(texts(cluster)) == {"Bert-3", "Search.1"}
    assert [step.model_name for step in texts(cluster)["Search.1"].ensemble_scheduling.step] == ["Bert-3"]
    assert all(status.ready for status in outcome.statuses.values())


def test_a_name_that_was_freed_may_be_taken_at_once() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), model("m", modelName="Bert")])
    outcome = cluster.settle([pool(), model("n", modelName="Bert")])
    assert set(texts(cluster)) == {"Bert"}
    assert outcome.statuses["InferenceModel default/n"].ready
    assert cluster.routed() == {"n": {"p-0"}}


OLD, NEW = {"creationTimestamp": "2026-01-01T00:00:00Z"}, {"creationTimestamp": "2026-01-02T00:00:00Z"}


@pytest.mark.parametrize(
    ("resources", "result"),
    [
        ([model("a", metadata=NEW, modelName="X"), model("b", metadata=OLD, modelName="X")], ("a", "spec.modelName")),
        ([model("a", metadata=OLD, modelName="b"), model("b", metadata=NEW)], ("b", "metadata.name")),
        ([model("a", modelName="X"), ensemble("e", "a", modelName="X")], ("e", "spec.modelName")),
        ([model("a", modelName="X"), model("b", modelName="x")], None),
        ([model("a", modelName="X"), model("b", poolRef={"name": "q"}, modelName="X")], None),
    ],
)
def test_two_of_a_pool_with_one_served_name_are_refused_at_the_younger(
    resources: list[Resource], result: tuple[str, str] | None
) -> None:
    problems = check_set([pool(), pool("q"), *resources])
    assert [(problem.resource.rpartition("/")[2], problem.path) for problem in problems] == ([result] if result else [])
    assert all("clients of pool 'p' know" in problem.message for problem in problems)
