"""What is foretold of the size of a server's documents, held against what is rendered; and servers of many models."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, gpu_node, model, pool

from argosy.api import InferenceModel, Resource
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.pool.allocations import scaled_resource
from argosy.planning.demand.footprint import DocumentSize
from argosy.planning.demand.members import Members
from argosy.planning.facts import Gpu, Node
from argosy.reconcile import RoundOutcome, reconcile
from argosy.render import sizes
from argosy.render.config.model_config import model_config
from argosy.render.sizes import document_sizes
from argosy.render.workloads.configmaps import desired_configmap
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract import FailureKind, LoadedModel, LoadState, RenderedRepository
from argosy_agent.contract.documents import AgentState, repository_text, state_text
from argosy_agent.contract.sizes import PLACED_BYTES, REASON_BYTES

KEY = PoolKey("default/p")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CPU_NODE = Node("c", (Gpu(0, 64 << 30, is_cpu=True),))
DIGEST = "listing:" + "a" * 64
FULL = 1 << 20


def planned(nodes: Sequence[Node], *resources: Resource, **spec: Any) -> RoundOutcome:
    """Return the outcome of one round of a pool that has nothing yet."""
    outcome = reconcile(FleetSnapshot((pool(**spec), *resources), tuple(nodes)), NOW)
    assert outcome.problems == ()
    return outcome


def size(text: str) -> int:
    return len(text.encode())


def state(repository: RenderedRepository, ready: bool) -> AgentState:
    """Return the longest state that is reported of what is applied, ready or failed."""
    reason, digest = ("", DIGEST) if ready else ("r" * (REASON_BYTES - 2), "")
    models = tuple(
        LoadedModel(
            model.declared_name,
            version,
            LoadState.READY if ready else LoadState.UNAVAILABLE,
            reason,
            None if ready else FailureKind.DEVICE,
            not ready,
            digest,
            0 if ready else 10**9,
        )
        for model in repository.models
        for version in model.versions
    )
    return AgentState(models=models, applied=repository)


EMPTY = RenderedRepository("")
BASE = size(state_text(AgentState()))
SPANS = "a backend that spans GPUs"
OUTER = {
    "steps": [
        {"model": "e", "inputs": {"T0": "T0"}, "outputs": {"T2": "T1"}},
        {"model": "b", "inputs": {"X": "T1"}, "outputs": {"Y": "T2"}},
    ]
}
CASES: dict[str, tuple[Resource, ...]] = {
    "on the CPU": (model("m", memory=0),),
    "on a GPU": (model("m"),),
    "several GPUs": (model("m", footprint={"gpus": 4}, instanceGroups=[{"kind": "KIND_GPU", "count": 2}]),),
    SPANS: (
        model("m", footprint={"gpus": 2}, modelFormat={"name": "vllm"}, inputs=[], outputs=[], storageUri="s3://b/m"),
    ),
    "instances": (model("m", memory=1, instances=16),),
    "groups": (model("m", memory=1, instanceGroups=[{"count": 3, "name": "a"}, {"count": 2, "kind": "KIND_CPU"}]),),
    "another name": (model("m", modelName="M_v2.1"),),
    "batching": (
        model("m", maxBatchSize=8, batching={"maxQueueDelayMicroseconds": 5000, "preferredBatchSizes": [4, 8]}),
    ),
    "config": (model("m", config={"parameters": {'a"b': {"string_value": 'é"\\\n' * 200}}}),),
    "versions": (
        model(
            "m",
            version=None,
            storageUri=None,
            versions=[{"version": 3, "storageUri": "s3://b/3"}, {"version": 123456, "storageUri": "s3://bucket/other"}],
        ),
    ),
    "an ensemble": (model("a"), model("b", modelName="B"), ensemble("e", "a", "b", modelName="E")),
    "ensembles in one another": (model("a"), model("b"), ensemble("e", "a", "b"), ensemble("f", "e", "b", **OUTER)),
}


@pytest.mark.parametrize("name", CASES)
def test_rendered_documents_are_about_as_large_as_predicted(name: str) -> None:
    resources = CASES[name]
    runtime = {"name": "triton"} if name == SPANS else {}
    outcome = planned([gpu_node("a", 4, nvlink=(frozenset(range(4)),))], *resources, runtime=runtime)
    (step,) = outcome.steps[KEY]
    foretold = document_sizes(Members.of(KEY, resources))
    assert foretold.keys() == {model.declared_name for model in step.repository.models} == {r.name for r in resources}
    real = max(size(state_text(state(step.repository, ready))) for ready in (True, False)) - BASE
    most = sum(item.declared for item in foretold.values())
    assert size(repository_text(step.repository)) - size(repository_text(EMPTY)) < real <= most < 1.4 * real + 300
    (facts,) = outcome.facts
    assert sum(group.size for group in facts.groups) >= most


def test_what_scaling_decides_is_rendered_for_its_size_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = []
    real = model_config
    monkeypatch.setattr(sizes, "model_config", lambda *arguments: rendered.append(arguments) or real(*arguments))
    declared = model("only-here", memory=1, maxBatchSize=64, batching={}, scaling={}, minReplicas=0, maxReplicas=9)
    assert isinstance(declared, InferenceModel)
    result = set[DocumentSize]()
    for instances in (1, 7, 16):
        revision = scaled_resource(declared, Allocation(instances, instances, 0.0123 * instances, 7), 0)
        result.add(document_sizes(Members.of(KEY, (revision,)))["only-here"])
        real_size = (
            size(state_text(state(planned([gpu_node("a", 9)], revision).steps[KEY][0].repository, ready=False))) - BASE
        )
        assert real_size <= max(item.declared for item in result)
    assert len(result) == 1
    assert len(rendered) == 2, "once with GPUs and once without"


@pytest.mark.parametrize("count", [1000, 5000])
def test_many_small_models_go_to_servers_whose_documents_fit(count: int) -> None:
    models = [model(f"model-{number:05}", memory=0, storageUri=f"s3://b/{number:05}") for number in range(count)]
    outcome = planned([CPU_NODE], *models)
    (facts,), servers = outcome.facts, outcome.steps[KEY]
    assert sum(len(server.repository.models) for server in servers) == count
    assert outcome.plan.pools[0].unplaced == ()
    fewest = -(-sum(group.size for group in facts.groups) // PLACED_BYTES)
    assert len(servers) == fewest
    for server in servers:
        for ready in (True, False):
            assert size(state_text(state(server.repository, ready))) <= PLACED_BYTES + BASE
        desired = desired_configmap(pool(), server)
        assert sum(map(size, desired["data"].values())) <= PLACED_BYTES
        assert sum(size(key) + size(value) for key, value in desired["metadata"]["annotations"].items()) < FULL / 4


def test_what_no_server_has_space_for_says_so() -> None:
    large = {"parameters": {"text": {"string_value": "x" * 400_000}}}
    models = [model(name, memory=0, config=large) for name in ("a", "b", "c")]
    outcome = planned([CPU_NODE], *models, maxServers=1)
    (unplaced,) = outcome.plan.pools[0].unplaced
    assert (unplaced.group, unplaced.reason) == ("c", "NoRoomForConfig")
    for words in ("takes up to", "950 KB", "raise the pool's maxServers"):
        assert words in unplaced.message
    assert "add a" not in unplaced.message


def test_where_another_server_needs_another_gpu_that_is_reported() -> None:
    large = {"parameters": {"text": {"string_value": "x" * 400_000}}}
    models = [model(name, memory=1, config=large) for name in ("a", "b", "c")]
    (unplaced,) = planned([gpu_node("a", 1)], *models).plan.pools[0].unplaced
    assert unplaced.reason == "NoRoomForConfig"
    assert "Let there be another server: add a GPU; or" in unplaced.message
    (unplaced,) = planned([gpu_node("a", 1)], *models, maxServers=1).plan.pools[0].unplaced
    assert "raise the pool's maxServers (or replicas, where that is set) and add a GPU; or" in unplaced.message


def test_what_is_larger_than_a_configmap_says_so() -> None:
    huge = {"parameters": {"text": {"string_value": "x" * 960_000}}}
    (unplaced,) = planned([CPU_NODE], model("a", memory=0, config=huge)).plan.pools[0].unplaced
    assert unplaced.reason == "ConfigTooLarge"
    assert "the configuration of a takes up to" in unplaced.message
    assert "Shorten spec.config" in unplaced.message
