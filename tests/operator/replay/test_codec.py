"""A snapshot is what it was after it was written and read; a document that is none says which field is wrong."""

import json
from datetime import UTC, datetime
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples

from argosy.api import Ensemble, InferenceModel, Problem, ServingPool
from argosy.api.model.rollout.analysis import Analysis, AnalysisQuery
from argosy.api.model.rollout.shadow import Shadow
from argosy.api.rolloutstatus import ShadowExampleStatus, ShadowOutputStatus, ShadowStatus
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus
from argosy.api.statusparts import EngineStatus
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Decision
from argosy.planning.migration.bindings import Binding
from argosy.replay.codec import DocumentError, converter, decoded_snapshot, encoded
from argosy.snapshot import FleetSnapshot, PoolSnapshot

RESOURCES: dict[Any, Any] = {
    InferenceModel: [
        model("a"),
        model("b", 2, 0, replicas=2),
        model("c", maxBatchSize=4, batching={"maxQueueDelayMicroseconds": 100}),
    ],
    Ensemble: [ensemble("e", "a"), ensemble("f", "a", "b")],
    ServingPool: [pool(), pool("q", nodeSelector={"zone": "x"})],
}
STATUSES: dict[Any, Any] = {
    InferenceModelStatus: [InferenceModelStatus(), InferenceModelStatus(replicas=2, url="http://a")],
    EnsembleStatus: [EnsembleStatus(), EnsembleStatus(replicas=1)],
    ServingPoolStatus: [ServingPoolStatus(), ServingPoolStatus(replicas=3)],
}


for kind, values in {**RESOURCES, **STATUSES}.items():
    st.register_type_strategy(kind, st.sampled_from(values))
st.register_type_strategy(PoolKey, st.text(max_size=8).map(PoolKey))
SHADOW_EXAMPLE = ShadowExampleStatus(request_id="r", kind="Value", size=0.5)
SHADOW_OUTPUT = ShadowOutputStatus(output="Y", different=1, examples=(SHADOW_EXAMPLE,))
st.register_type_strategy(
    ShadowStatus, st.sampled_from([ShadowStatus(), ShadowStatus(equal=3, different=1, outputs=(SHADOW_OUTPUT,))])
)
QUERY = {"name": "q", "query": "x", "failureCondition": "result > 2"}
ANALYSES = [{}, {"warmUp": "5s", "latency": {"p99": 2}}, {"queries": [QUERY], "confidence": "99%"}]
st.register_type_strategy(Analysis, st.sampled_from([Analysis.model_validate(one) for one in ANALYSES]))
st.register_type_strategy(AnalysisQuery, st.just(AnalysisQuery.model_validate(QUERY)))
st.register_type_strategy(Shadow, st.just(Shadow.model_validate({"traffic": "5%", "minRequests": 7})))
st.register_type_strategy(
    EngineStatus, st.builds(EngineStatus, architecture=st.text(max_size=3), state=st.just("Ready"))
)


def _through_json(value: Any, kind: Any) -> Any:
    return converter().structure(json.loads(json.dumps(converter().unstructure(value, unstructure_as=kind))), kind)


@pytest.mark.parametrize("kind", [FleetSnapshot, PoolSnapshot])
@given(data=st.data())
@examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example])
def test_every_field_of_a_snapshot_survives(kind: type, data: st.DataObject) -> None:
    """A field is drawn by its declared type, so that one that is added later takes part by itself."""
    hints = get_type_hints(kind)
    name = data.draw(st.sampled_from(sorted(hints)))
    value = data.draw(st.from_type(hints[name]))
    assume("nan" not in repr(value))  # equals nothing, itself included
    assert _through_json(value, hints[name]) == value, name


@given(st.builds(Decision))
@examples(30)
def test_a_decision_of_scaling_survives(decision: Decision) -> None:
    assume("nan" not in repr(decision))
    assert _through_json(decision, Decision) == decision
    assert isinstance(decision, msgspec.Struct)


def test_resources_and_statuses_of_several_kinds_keep_their_kind() -> None:
    every = tuple(value for kind in RESOURCES for value in RESOURCES[kind])
    statuses = {f"{at} default/x": status for at, status in enumerate(s for kind in STATUSES for s in STATUSES[kind])}
    snapshot = FleetSnapshot(every, (gpu_node("n", 2),), statuses=statuses)
    again = decoded_snapshot(json.loads(json.dumps(encoded(snapshot))))
    assert again == snapshot
    assert [type(value) for value in again.resources] == [type(value) for value in every]
    assert [type(value) for value in again.statuses.values()] == [type(value) for value in statuses.values()]
    declared: list[BaseModel] = [*again.resources]
    assert [value.model_fields_set for value in declared] == [value.model_fields_set for value in every]


def test_keys_that_are_pairs_are_lists_of_pairs() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    drains: dict[Binding, datetime] = {("s1", "a"): at, ("s0", "b"): at}
    document = encoded(PoolSnapshot(drain_since=drains))
    assert document == {"drain_since": [[["s0", "b"], at.isoformat()], [["s1", "a"], at.isoformat()]]}


def test_equal_snapshots_have_equal_documents() -> None:
    cluster = Cluster((gpu_node("n", 2),))
    cluster.settle([pool(), model("a"), model("b")])
    turned = {name: cluster.snapshot.statuses[name] for name in reversed(list(cluster.snapshot.statuses))}
    assert encoded(cluster.snapshot) == encoded(
        FleetSnapshot(**{**_fields(cluster.snapshot), "statuses": turned}),
    )


def _fields(snapshot: FleetSnapshot) -> dict[str, object]:
    return {name: getattr(snapshot, name) for name in FleetSnapshot.__dataclass_fields__}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"nodes": []}, "resources"),
        ({"resources": [], "nodes": [{"name": "n", "gpus": [{"index": "x"}]}]}, r"snapshot\.nodes\[0\]\.gpus\[0\]\.in"),
        ({"resources": [{"kind": "Pod"}], "nodes": []}, "kind must be one of InferenceModel, Ensemble, ServingPool"),
        ({"resources": [{"kind": "ServingPool", "metadata": {}}], "nodes": []}, "name"),
        ([], "snapshot"),
    ],
)
def test_a_document_that_is_no_snapshot_names_the_field(document: object, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        decoded_snapshot(document)


def test_a_problem_of_a_manifest_survives() -> None:
    problem = Problem("f.yaml", "InferenceModel default/a", "spec.x", "is wrong")
    assert _through_json((problem,), tuple[Problem, ...]) == (problem,)
