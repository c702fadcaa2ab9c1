"""Inputs of a pool's objects, in addition to its resources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.planning.builds.images import BuildImages
from argosy.planning.validation.runtimes import BundledImage, TritonImage, choose_bundled_image, choose_triton_image

KubernetesObject = Mapping[str, Any]
"""An object as the API server takes it: JSON values."""


@dataclass(frozen=True, slots=True)
class Images:
    """The release's images: the servers' by runtime, and the one with the agent.

    `argosy` is the bundled server's for CPUs, and stands in for its other images that are not named: `cuda`, `vllm` and
    `tensorrt_llm`; `bundled_image` is the one that a pool's backends need. `triton` is NVIDIA's standard image;
    `triton_vllm` and `triton_trtllm` are those with these backends. `placeholder` runs nothing.
    `backends`: those of the pool's models, once a pool's images are chosen.
    """

    argosy: str
    triton: str
    agent: str
    pull_policy: str = "IfNotPresent"
    triton_vllm: str = ""
    triton_trtllm: str = ""
    argosy_cuda: str = ""
    argosy_vllm: str = ""
    argosy_tensorrt_llm: str = ""
    placeholder: str = ""
    bundled_image: BundledImage = BundledImage.CPU
    backends: frozenset[str] = frozenset()

    def serving(self, pool: ServingPool, models: Iterable[InferenceModel]) -> "Images":
        """Return the inputs with those of both servers' images that these models of a pool need."""
        mine = [model for model in models if model.pool_key == pool.key]
        special = {TritonImage.VLLM: self.triton_vllm, TritonImage.TENSORRT_LLM: self.triton_trtllm}
        triton = special.get(choose_triton_image(pool, mine).image, "") or self.triton
        bundled = choose_bundled_image(pool, mine).image
        backends = frozenset(model.spec.backend for model in mine)
        return replace(self, triton=triton, bundled_image=bundled, backends=backends)

    @property
    def building(self) -> BuildImages:
        """The images that build engines: those of the bundled server, whose backends open them."""
        return BuildImages(self.argosy, self.argosy_cuda, self.argosy_tensorrt_llm)

    def bundled(self, *, on_gpu: bool) -> str:
        """Return the bundled server's image for a server with or without GPUs; without them it needs no CUDA."""
        kind = BundledImage.CUDA if on_gpu and self.bundled_image is BundledImage.CPU else self.bundled_image
        images = {
            BundledImage.CUDA: self.argosy_cuda,
            BundledImage.VLLM: self.argosy_vllm,
            BundledImage.TENSORRT_LLM: self.argosy_tensorrt_llm,
        }
        return images.get(kind, "") or self.argosy


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the API server offers.

    `pdb_version`: of PodDisruptionBudget; before 1.21 policy/v1beta1. `evicts_unready`: whether a budget can say that
    Pods which are not ready may always be evicted; from 1.27. `ends_jobs`: whether a Job can say how long it stays once
    it is over; from 1.21. `judges_failures`: whether a Job can say which failures of its Pods end it; from 1.26.
    `inference_pools`: whether it has the InferencePools of the Gateway API inference extension.
    `device_claims`: whether it has ResourceSlices and ResourceClaims as v1; `device_taint_rules`: and DeviceTaintRules.
    `build_priority_class`: the PriorityClass of builds' Pods, which the chart makes; empty: the cluster's default.
    `placeholder_priority_class`: that of placeholders, which servers' Pods preempt; empty: there are no placeholders.
    """

    pdb_version: str = "policy/v1"
    evicts_unready: bool = False
    ends_jobs: bool = False
    judges_failures: bool = False
    inference_pools: bool = False
    device_claims: bool = False
    device_taint_rules: bool = False
    build_priority_class: str = ""
    placeholder_priority_class: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """What a Deployment says of its server's own service account.

    `uid`: the account's when it was last seen, empty before. `remade`: that of one which was made after the first Pod;
    a Pod whose account was deleted has a token that is not valid any more, so this stands in the Pod's template.
    """

    uid: str = ""
    remade: str = ""

    def seen(self, uid: str) -> "Account":
        """Return the same, where the account now has this UID; empty where there is none, or it is not known."""
        if uid in ("", self.uid):
            return self
        return Account(uid, uid if self.uid else self.remade)


NO_ACCOUNT = Account()
"""Nothing is known of it yet."""
