"""Instance groups: a model's placement and its instance groups become ModelConfig's."""

from collections.abc import Sequence

from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.inferencemodel import InferenceModelSpec
from argosy.api.model.instancegroups import GroupKind, InstanceGroup, RateLimiter
from argosy.api.model.modelformat import TREES
from argosy.api.servingpool import RuntimeName

ACROSS_GPUS = frozenset({"vllm", "tensorrtllm"})
"""Backends whose one instance takes the model's GPUs by itself, and wants no group per GPU."""
TRITON_VLLM = (RuntimeName.TRITON, "vllm")
"""NVIDIA's backend for vLLM reads no `gpu_device_ids`: an instance of KIND_GPU has that GPU, one of KIND_MODEL those of
its server, from the first on, which the plan gives it (`Footprint.first_gpus` in `planning/facts.py`).
"""
BUNDLED_TREES = (RuntimeName.ARGOSY, TREES)
"""The bundled server computes trees on CPUs."""
GPU_DEVICES = "gpu_device_ids"
"""The parameter that tells such a backend which of the server's GPUs are the model's."""


def add_instance_groups(
    config: pb.ModelConfig, spec: InferenceModelSpec, gpus: Sequence[int], default: InstanceGroup, runtime: RuntimeName
) -> None:
    """Write the instance groups of a model on these GPUs of its server; without GPUs they are on the CPU.

    If none are declared, the `default` one is written.
    """
    for group in spec.instance_groups or (default,):
        kind = _kind(group, spec.backend, gpus, runtime)
        rendered = config.instance_group.add(
            name=group.name,
            kind=pb.ModelInstanceGroup.Kind.Value(kind),
            count=group.count,
            profile=map(str, group.profile),
            passive=group.passive,
        )
        if kind is GroupKind.GPU:
            rendered.gpus.extend(gpu for at, gpu in enumerate(gpus) if group.is_on(at))
        if kind is GroupKind.MODEL and (runtime, spec.backend) != TRITON_VLLM:
            config.parameters[GPU_DEVICES].string_value = ",".join(map(str, gpus))
        limiter = group.rate_limiter or spec.rate_limiter
        if limiter is not None:
            rendered.rate_limiter.CopyFrom(_rate_limiter(limiter))


def _kind(group: InstanceGroup, backend: str, gpus: Sequence[int], runtime: RuntimeName) -> GroupKind:
    if group.kind is GroupKind.CPU or not gpus or (runtime, backend) == BUNDLED_TREES:
        return GroupKind.CPU
    if (runtime, backend) == TRITON_VLLM:
        return GroupKind.MODEL if len(gpus) > 1 else GroupKind.GPU
    across = len(gpus) > 1 or backend in ACROSS_GPUS
    if group.kind is GroupKind.MODEL or (group.spans and across):
        return GroupKind.MODEL
    return GroupKind.GPU


def _rate_limiter(limiter: RateLimiter) -> pb.ModelRateLimiter:
    resources = [
        {"name": resource.name, "count": resource.count, "global": resource.global_} for resource in limiter.resources
    ]
    return pb.ModelRateLimiter(
        resources=[pb.ModelRateLimiter.Resource(**resource) for resource in resources], priority=limiter.priority
    )
