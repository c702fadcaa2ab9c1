"""What a pool's objects are made from, beside its resources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.fleet.plan import ServerPlan
from argosy.fleet.validation.runtimes import Variant, choose_variant
from argosy_runtime.agent.contract import RenderedRepository

KubernetesObject = Mapping[str, Any]
"""An object as the API server takes it: JSON values."""
Served = Mapping[str, tuple[int, ...]]
"""Versions by model or ensemble."""


@dataclass(frozen=True, slots=True)
class Images:
    """The release's images: the servers' by runtime, and the one with the agent.

    `triton` is NVIDIA's standard image; `triton_vllm` and `triton_trtllm` are its variants with those backends.
    """

    argosy: str
    triton: str
    agent: str
    pull_policy: str = "IfNotPresent"
    triton_vllm: str = ""
    triton_trtllm: str = ""

    def serving(self, pool: ServingPool, models: Iterable[InferenceModel]) -> "Images":
        """The same, with that variant for `triton` which these models of a pool need."""
        variant = choose_variant(pool, (model for model in models if model.pool_key == pool.key)).variant
        variants = {Variant.VLLM: self.triton_vllm, Variant.TENSORRT_LLM: self.triton_trtllm}
        return replace(self, triton=variants.get(variant, "") or self.triton)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the API server offers.

    `pdb_version`: of PodDisruptionBudget; before 1.21 policy/v1beta1. `evicts_unready`: whether a budget can say that
    Pods which are not ready may always be evicted; from 1.27.
    """

    pdb_version: str = "policy/v1"
    evicts_unready: bool = False


@dataclass(frozen=True, slots=True)
class ServerWorkload:
    """One server: where it runs, what it should hold, and which versions it had ready when it was last heard of.

    A server that is leaving has a plan without placements and the repository that it still serves.
    """

    plan: ServerPlan
    repository: RenderedRepository
    served: Served = field(default_factory=dict)
