"""A simulated cluster with a model that is released in steps, and what of it a test looks at."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from google.protobuf import text_format
from tests.operator.planning import declared
from tests.operator.planning.declared import pool
from tests.operator.planning.simulated_cluster import POOL, Cluster
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import ConditionType, InferenceModel, InferenceModelStatus, Resource
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.rollout.state import Phase, RolloutState
from argosy.rollout.verdict import Outcome, Verdict
from argosy_runtime.modelconfig.parameters.traffic import version_traffic

MODEL = "InferenceModel default/m"
STEPS = [{"traffic": "10%", "pause": "30s"}, {"traffic": "50%", "pause": "30s"}]


def model(version: int, memory: int = 20, *, annotations: dict[str, str] | None = None, **spec: Any) -> InferenceModel:
    """Return `m`, whose new versions get 10 % and then 50 % of the requests."""
    metadata = {"annotations": annotations} if annotations else None
    rollout = spec.pop("rollout", {"steps": STEPS})
    return declared.model("m", version, memory, metadata, rollout=rollout, **spec)


class Rolling:
    """A cluster on which `m` is released. Times are virtual."""

    def __init__(self, cluster: Cluster, **pool_spec: Any) -> None:
        self.cluster, self.pool = cluster, pool(**pool_spec)
        self.others: Sequence[Resource] = ()

    def tick(self, member: InferenceModel, rounds: int = 1) -> None:
        """Run rounds of a second each."""
        for _ in range(rounds):
            self.cluster.tick([self.pool, *self.others, member])

    def until(self, member: InferenceModel, phase: Phase, rounds: int = 200) -> None:
        """Run rounds until the rollout is in a phase."""
        for _ in range(rounds):
            self.tick(member)
            if self.state.phase is phase:
                return
        raise AssertionError(f"it is not {phase} after {rounds} s: {self.state}")

    def settle(self, member: InferenceModel) -> None:
        """Run rounds until nothing changes any more."""
        self.cluster.settle([self.pool, *self.others, member])

    def judge(self, outcome: Outcome, requests: int = 1000, traffic: float | None = None) -> None:
        """Let the analysis of the present step come to a verdict."""
        verdict = Verdict(outcome, self.state.analysis, "ErrorRate", "12 of 400 requests failed")
        evidence = {MODEL: CandidateEvidence(verdict, requests, traffic)}
        self.cluster.snapshot = replace(self.cluster.snapshot, evidence=evidence)

    def pass_steps(self, member: InferenceModel, rounds: int = 200) -> None:
        """Let each step pass until the rollout ends."""
        for _ in range(rounds):
            self.judge(Outcome.SUCCESSFUL)
            self.tick(member)
            if not self.state.under_way:
                return
        raise AssertionError(f"it does not end: {self.state}")

    @property
    def state(self) -> RolloutState:
        """The state of the rollout."""
        assert self.cluster.outcome is not None
        return self.cluster.outcome.rollouts.members[MODEL].state

    @property
    def status(self) -> InferenceModelStatus:
        """The model's status."""
        assert self.cluster.outcome is not None
        status = self.cluster.outcome.statuses[MODEL]
        assert isinstance(status, InferenceModelStatus)
        return status

    def condition(self, kind: str) -> tuple[str, str]:
        """Return the status and the reason of a condition."""
        condition = self.status.condition(ConditionType(kind))
        assert condition is not None
        return condition.status, condition.reason

    def weights(self) -> list[dict[int, int]]:
        """Return how each server is to divide requests, in hundredths."""
        assert self.cluster.outcome is not None
        configs = [step.repository.model("m") for step in self.cluster.outcome.steps[POOL]]
        return [hundredths(model.config_text) for model in configs if model is not None]

    def desired(self) -> list[set[int]]:
        """Return the versions that each server is to have."""
        assert self.cluster.outcome is not None
        models = [step.repository.model("m") for step in self.cluster.outcome.steps[POOL]]
        return [set(model.versions) for model in models if model is not None]

    def loaded(self) -> list[set[int]]:
        """Return the versions that each server has loaded."""
        servers = self.cluster.servers.values()
        return [set(server.loaded["m"].versions) for server in servers if "m" in server.loaded]


def hundredths(text: str) -> dict[int, int]:
    traffic = version_traffic(text_format.Parse(text, ModelConfig()))
    return {version: weight // 10_000 for version, weight in traffic.weights.items() if weight} if traffic else {}
