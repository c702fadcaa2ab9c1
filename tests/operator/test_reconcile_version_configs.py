"""Revisions of a model that differ in more than their files are served next to each other, each as it was released."""

from collections.abc import Mapping
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning import declared
from tests.operator.planning.declared import gpu_node, pool
from tests.operator.planning.rolling import MODEL, Rolling, model
from tests.operator.planning.simulated_cluster import POOL, Cluster
from tests.properties import examples
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import InferenceModel
from argosy.planning.demand.members import Members
from argosy.render.sizes import document_sizes
from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome
from argosy_agent.contract import RenderedModel
from argosy_agent.contract.sizes import config_bytes, entry_bytes
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER

OLD: Mapping[str, Any] = {"maxBatchSize": 4}
NEW: Mapping[str, Any] = {"maxBatchSize": 8, "config": {"parameters": {"threads": {"string_value": "2"}}}}


def rendered(cluster: Cluster) -> RenderedModel:
    """Return `m` as the server is to have it."""
    assert cluster.outcome is not None
    (step,) = cluster.outcome.steps[POOL]
    desired = step.repository.model("m")
    assert desired is not None
    return desired


def effective(desired: RenderedModel, version: int) -> ModelConfig:
    """Return what a version is loaded by: without what decides between versions."""
    config = text_format.Parse(desired.config_of(version).text, ModelConfig())
    config.ClearField("version_policy")
    config.parameters.pop(PARAMETER, None)
    return config


class ConfigWatch:
    """A rollout, and what each version was configured by in each round of it."""

    def __init__(self) -> None:
        self.rolling = Rolling(Cluster((gpu_node("a"),)))
        self.seen: dict[int, list[ModelConfig]] = {}
        self.rolling.settle(model(1, **OLD))

    def tick(self, member: Any, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.rolling.tick(member)
            desired = rendered(self.rolling.cluster)
            self.check_size(desired)
            for version in desired.versions:
                configs = self.seen.setdefault(version, [])
                config = effective(desired, version)
                if not configs or configs[-1] != config:
                    configs.append(config)

    def check_size(self, desired: RenderedModel) -> None:
        """Check that it is no larger than what packing counted."""
        assert self.rolling.cluster.outcome is not None
        rollouts = self.rolling.cluster.outcome.rollouts.members
        members = Members.of(POOL, [rollouts[MODEL].acted_upon], rollouts=rollouts)
        most = document_sizes(members)["m"].with_versions(len(desired.versions))
        config = config_bytes(desired.config_text)
        assert entry_bytes(desired.name, "", config, desired.versions, desired.steps, len(desired.gpus)) <= most

    def sizes(self) -> dict[int, list[int]]:
        """Return the batch sizes that each version had, in order."""
        return {version: [config.max_batch_size for config in configs] for version, configs in self.seen.items()}

    def until(self, member: Any, phase: Phase) -> None:
        for _ in range(200):
            self.tick(member)
            if self.rolling.state.phase is phase:
                return
        raise AssertionError(f"it is not {phase}: {self.rolling.state}")


@pytest.fixture
def watched() -> ConfigWatch:
    """Return a cluster on which version 1 serves batches of 4."""
    return ConfigWatch()


def test_a_candidate_has_its_own_configuration_and_the_stable_one_keeps_its_own(watched: ConfigWatch) -> None:
    watched.until(model(2, **NEW), Phase.STEPPING)
    desired = rendered(watched.rolling.cluster)
    assert (desired.versions[1].own, effective(desired, 1).max_batch_size) == (None, 4)
    assert desired.versions[2].own is not None
    assert effective(desired, 2).max_batch_size == 8
    assert watched.rolling.weights() == [{1: 90, 2: 10}]


def test_no_version_is_configured_otherwise_while_it_is_promoted(watched: ConfigWatch) -> None:
    new = model(2, **NEW)
    watched.until(new, Phase.STEPPING)
    for _ in range(100):
        watched.rolling.judge(Outcome.SUCCESSFUL)
        watched.tick(new)
    assert watched.rolling.state.phase is Phase.PROMOTED
    assert watched.rolling.loaded() == [{2}]
    assert watched.sizes() == {1: [4], 2: [8]}
    assert watched.rolling.status.ready
    desired = rendered(watched.rolling.cluster)
    assert "backend" not in desired.config_text
    watched.until(model(3, maxBatchSize=2), Phase.STEPPING)
    assert watched.sizes() == {1: [4], 2: [8], 3: [2]}


def test_a_former_version_that_the_policy_retains_stays_as_it_was(watched: ConfigWatch) -> None:
    policy = {"versionPolicy": {"latest": {"numVersions": 2}}}
    new = model(2, **NEW, **policy)
    watched.until(new, Phase.STEPPING)
    for _ in range(100):
        watched.rolling.judge(Outcome.SUCCESSFUL)
        watched.tick(new)
    assert watched.rolling.loaded() == [{1, 2}]
    assert watched.sizes() == {1: [4], 2: [8]}


def test_a_candidate_that_is_taken_back_leaves_the_stable_one_as_it_was(watched: ConfigWatch) -> None:
    new = model(2, **NEW)
    watched.until(new, Phase.STEPPING)
    watched.rolling.judge(Outcome.FAILED)
    watched.until(new, Phase.HELD)
    watched.tick(new, 20)
    assert watched.rolling.loaded() == [{1}]
    assert watched.sizes() == {1: [4], 2: [8]}
    assert rendered(watched.rolling.cluster).versions[1].own is None


def test_both_revisions_follow_the_number_of_instances(watched: ConfigWatch) -> None:
    watched.until(model(2, **NEW), Phase.STEPPING)
    watched.tick(model(2, **NEW, instances=2), 20)
    desired = rendered(watched.rolling.cluster)
    assert watched.rolling.loaded() == [{1, 2}]
    counts = [effective(desired, version).instance_group[0].count for version in (1, 2)]
    assert counts == [2, 2]
    assert watched.sizes()[1] == [4, 4]


def test_a_replaced_server_gets_both_revisions(watched: ConfigWatch) -> None:
    new = model(2, **NEW)
    watched.until(new, Phase.STEPPING)
    watched.rolling.cluster.restart("p-0")
    watched.tick(new, 20)
    desired = rendered(watched.rolling.cluster)
    assert {version: effective(desired, version).max_batch_size for version in desired.versions} == {1: 4, 2: 8}


def plain(version: int, **spec: Any) -> Any:
    return declared.model("m", version, **spec)


def test_without_a_rollout_too_the_version_that_serves_is_not_loaded_again() -> None:
    cluster = Cluster((gpu_node("a"),))
    cluster.settle([pool(), plain(1, **OLD)])
    cluster.tick([pool(), plain(2, **NEW)])
    desired = rendered(cluster)
    assert {version: effective(desired, version).max_batch_size for version in desired.versions} == {1: 4, 2: 8}
    cluster.settle([pool(), plain(2, **NEW)])
    assert rendered(cluster).versions.keys() == {2}
    assert rendered(cluster).versions[2].own is None


def test_nvidias_server_has_one_configuration_for_all_versions() -> None:
    cluster, triton = Cluster((gpu_node("a"),)), pool(runtime={"name": "triton"})
    cluster.settle([triton, plain(1, **OLD)])
    cluster.tick([triton, plain(2, **NEW)])
    assert [source.own for source in rendered(cluster).versions.values()] == [None, None]


EVENTS = st.one_of(
    st.tuples(st.just("push"), st.integers(1, 4)),
    st.tuples(st.just("judge"), st.sampled_from([Outcome.SUCCESSFUL, Outcome.FAILED])),
    st.tuples(st.just("wait"), st.integers(1, 40)),
    st.tuples(st.just("replace"), st.just(0)),
    st.tuples(st.just("forget"), st.just(0)),
)


def release(version: int, staged: bool) -> InferenceModel:
    """Return a version, each of which takes batches of its own size."""
    settings = {} if staged else {"rollout": {"strategy": "Auto"}}
    return model(version, 5, maxBatchSize=version, **settings)


@examples(12)
@given(st.booleans(), st.lists(EVENTS, max_size=12))
def test_whatever_happens_a_version_has_the_configuration_that_it_was_released_with(
    staged: bool, events: list[tuple[str, Any]]
) -> None:
    rolling, member = Rolling(Cluster((gpu_node("a"),))), release(1, staged)
    rolling.settle(member)
    for event, value in events:
        match event:
            case "push":
                member = release(value, staged)
            case "judge" if staged:
                rolling.judge(value)
            case "replace":
                rolling.cluster.restart("p-0")
            case "forget":
                rolling.cluster.forget()
        for _ in range(value if event == "wait" else 2):
            rolling.tick(member)
            desired = rendered(rolling.cluster)
            assert {v: effective(desired, v).max_batch_size for v in desired.versions} == {
                v: v for v in desired.versions
            }
