"""The resource Ensemble: a DAG of models that clients call as one model."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from argosy.api.model.chat import Chat, TensorName, chat_rule
from argosy.api.model.configfields import ENSEMBLE_GOVERNED, ConfigFields, check_config
from argosy.api.model.placement import SPREAD_RULE, Affinity, AntiAffinity, NodeSelector, TopologySpread
from argosy.api.model.rollout.rollout import MemberRollout, tolerances_rule
from argosy.api.model.scaling.scale import (
    MaxReplicas,
    MinReplicas,
    Priority,
    Replicas,
    fewest_of,
    most_of,
    replicas_in_order,
)
from argosy.api.model.scaling.scaling import Scaling, scheduled_bounds
from argosy.api.model.scaling.slo import Slo
from argosy.api.status import EnsembleStatus
from argosy.api.values.base import ApiModel, Fault, Int, Rule
from argosy.api.values.meta import ModelName, Name, PoolMember, PoolReference, RevisionHistoryLimit
from argosy.api.values.tensors import BY_NAME, MAX_TENSORS, InputTensor, OutputTensor, unique_names
from argosy.api.values.versions import Version


class Step(ApiModel):
    """One model of an ensemble, and the tensors that it reads and writes."""

    model: Name = Field(description="The InferenceModel or Ensemble to run, by name, in the same pool.")
    version: Version | None = Field(
        default=None, description="The version of the model to pin. Default: the one that it serves."
    )
    inputs: dict[TensorName, TensorName] = Field(
        min_length=1,
        max_length=MAX_TENSORS,
        description="The ensemble's tensor for each of the model's inputs.",
    )
    outputs: dict[TensorName, TensorName] = Field(
        min_length=1,
        max_length=MAX_TENSORS,
        description="The ensemble's tensor for each of the model's outputs that it uses.",
    )


def _plain_tensors(spec: "EnsembleSpec") -> Iterator[Fault]:
    for field, tensors in (("inputs", spec.inputs), ("outputs", spec.outputs)):
        for index, tensor in enumerate(tensors):
            if tensor.reshape is not None:
                yield Fault(
                    "an ensemble cannot reshape its tensors; reshape the step's model's",
                    (field, index, "reshape"),
                )


def _config_fields(spec: "EnsembleSpec") -> Iterator[Fault]:
    for fault in check_config(spec.config, ENSEMBLE_GOVERNED):
        yield Fault(fault.message, ("config", *fault.path))


class EnsembleSpec(ApiModel):
    """The desired state of an ensemble."""

    pool_ref: PoolReference = Field(description="The ServingPool that serves it, in the same namespace.")
    model_name: ModelName | None = Field(
        default=None,
        description="Its name for clients, such as Bert_v2.1, unique in the pool. Default: metadata.name.",
    )
    version: Version = Field(default=1, description="The version of the ensemble, 1 or more. Default: 1.")
    inputs: tuple[InputTensor, ...] = Field(
        min_length=1,
        max_length=MAX_TENSORS,
        description="The tensors of a request.",
        json_schema_extra=BY_NAME,
    )
    outputs: tuple[OutputTensor, ...] = Field(
        min_length=1,
        max_length=MAX_TENSORS,
        description="The tensors of a response.",
        json_schema_extra=BY_NAME,
    )
    max_batch_size: Int = Field(
        default=0,
        ge=0,
        le=2**31 - 1,
        description="The largest batch. Default: 0, tensors have no batch dimension.",
    )
    replicas: Replicas = None
    min_replicas: MinReplicas = None
    max_replicas: MaxReplicas = None
    steps: tuple[Step, ...] = Field(
        min_length=1, max_length=64, description="The models to run; a step waits for the tensors it reads."
    )
    max_inflight_requests: Int | None = Field(
        default=None,
        ge=1,
        le=2**32 - 1,
        description="The most requests in flight at each step, of all requests to the ensemble together; further ones "
        "wait, and a step that sends several responses with them. Default: no limit.",
    )
    node_selector: NodeSelector = Field(default_factory=dict)
    topology_spread: TopologySpread = ()
    affinity: Affinity = ()
    anti_affinity: AntiAffinity = ()
    chat: Chat | None = Field(
        default=None,
        description="The tensors of a chat, which make it a chat model of the bundled server's OpenAI API. Default: it "
        "is none.",
    )
    slo: Slo | None = Field(
        default=None,
        description="Service level objectives, for which Argosy scales replicas and the instances of the limiting "
        "step. Default: none.",
    )
    scaling: Scaling | None = Field(
        default=None,
        description="How replicas are scaled. Default: with slo or maxReplicas, by the defaults of its fields.",
    )
    priority: Priority = 0
    rollout: MemberRollout = None
    config: ConfigFields = Field(default_factory=dict)
    revision_history_limit: RevisionHistoryLimit = 10

    rules: ClassVar[tuple[Rule, ...]] = (
        replicas_in_order("min_replicas", "max_replicas"),
        Rule(("scaling", "max_replicas"), scheduled_bounds),
        unique_names("inputs", "inputs"),
        unique_names("outputs", "outputs"),
        Rule(("inputs", "outputs"), _plain_tensors),
        Rule(("config",), _config_fields),
        chat_rule(),
        tolerances_rule(),
        SPREAD_RULE,
    )

    @property
    def default_version(self) -> int:
        """The version that answers requests that name none."""
        return self.version

    @property
    def fewest_replicas(self) -> int:
        """`replicas` if it is set, else `minReplicas`."""
        return fewest_of(self.replicas, self.least_replicas)

    @property
    def least_replicas(self) -> int:
        """`minReplicas`; 1 if it is not set."""
        return 1 if self.min_replicas is None else self.min_replicas

    @property
    def most_replicas(self) -> int:
        """`replicas` or else `maxReplicas`; if neither is set, `minReplicas`, and at least 1."""
        return most_of(self.replicas, self.least_replicas, self.max_replicas)


class Ensemble(PoolMember):
    """A DAG of models that is placed on one server, versioned as a whole, and called as one model."""

    api_version: Literal["argosy.dev/v1alpha1"] = Field(
        default="argosy.dev/v1alpha1", description="The API's group and version."
    )
    kind: Literal["Ensemble"] = Field(default="Ensemble", description="Ensemble.")
    spec: EnsembleSpec = Field(description="The desired state. The operator never writes it.")
    status: EnsembleStatus | None = Field(default=None, description="The observed state, written by the operator.")
