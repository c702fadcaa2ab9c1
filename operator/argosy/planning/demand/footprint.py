"""The footprint of one replica of a model on a server, and the size of its entries in the server's ConfigMaps."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from argosy.api import InferenceModel
from argosy.api.model import footprint as api
from argosy.api.model.instancegroups import per_gpu
from argosy.api.servingpool import RuntimeName
from argosy.api.values.versions import retained
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.facts import Footprint
from argosy.planning.topology.deployment import Deployment
from argosy.planning.topology.memory import budget, has_weights
from argosy_agent.contract.builds import ModelShape


def footprint_of(
    model: InferenceModel,
    versions: int = 1,
    has_gpus: bool = True,
    shape: ModelShape | None = None,
    runtime: RuntimeName = RuntimeName.ARGOSY,
    measured: MeasuredMemory | None = None,
    instances: int | None = None,
) -> Footprint:
    """Return the footprint of one replica with all its instances, with `versions` loaded.

    `has_gpus`: whether the pool has GPUs. `shape`: the model's, if it has one. `measured`: what it was measured to use
    of a GPU, if that is known. `instances`: on each device, None for those of its spec.

    - Exclusive GPUs: `footprint.gpus`, or else `parallelism.tensor x pipeline` where that is more than one. Each
      has `gpuMemory` for every instance; the share of compute means nothing there.
    - A share of one GPU: `gpuMemory` and `compute`, each times `instances`. What is not declared counts as
      nothing: a model with `gpuMemory` alone is never kept from a GPU because of compute. Measured memory counts where
      it is more than `gpuMemory`, or where that is not declared; that of a crashed process as the footprint's `peak`.
    - `device: CPU`, or the format `python` with nothing declared: the CPU.
    - Nothing declared of any other, nor measured: a GPU of its own where there are GPUs. It is never put on the CPU by
      default.
    - Exclusive GPUs without `gpuMemory`, and a GPU of its own: of the memory that its shape's arithmetic gives.

    Each version has memory of its own; the compute is shared, as a request goes to one of them. vLLM on several GPUs of
    NVIDIA's server, of `runtime` triton, takes the first ones by itself, so these must be its own.
    """
    spec, declared = model.spec, model.spec.footprint or api.Footprint()
    if spec.device is api.Device.CPU:
        return Footprint()
    one = declared.gpu_memory if declared.gpu_memory is not None else memory_by_shape(model, shape)
    count = instances_of(model) if instances is None else instances
    memory = one * count * versions
    if spec.gpus:
        first = runtime is RuntimeName.TRITON and spec.backend == "vllm" and spec.gpus > 1
        return Footprint(memory=memory, gpus=spec.gpus, first_gpus=first)
    compute = (declared.compute or 0) * count
    if measured is not None and has_gpus:
        memory = max(memory if declared.gpu_memory is not None else 0, measured.of(count) * versions)
        return Footprint(memory=memory, compute=compute, peak=measured.peak_of(count * versions))
    if declared.gpu_memory is None:
        return Footprint(memory=memory, gpus=1, assumed=True) if has_gpus else Footprint()
    return Footprint(memory=memory, compute=compute)


def memory_by_shape(model: InferenceModel, shape: ModelShape | None) -> int:
    """Return the bytes of each GPU that a model of this shape needs at least, split as declared.

    0 where its weights are not counted.
    """
    if shape is None or not has_weights(shape):
        return 0
    return budget(shape, Deployment.of(model, shape).split, 0).needed


def instances_of(model: InferenceModel) -> int:
    """Return how many instances run on one device of a replica, of all groups. Defaults to one."""
    spec, groups = model.spec, model.spec.instance_groups
    if not groups:
        return spec.instances or 1
    if spec.device is api.Device.CPU:
        return sum(group.count for group in groups)
    return per_gpu(groups, spec.gpus or 1)


def versions_retained(
    model: InferenceModel, named: Collection[int] = (), loaded: Iterable[Collection[int]] = ()
) -> int:
    """Return how many versions of a model stay loaded on a server: as many as its policy allows, at least as now.

    `named`: versions that ensembles request; `loaded`: versions that each server has.
    """
    declared, policy = set(model.spec.declared_versions), model.spec.version_policy
    available = ({*declared, *versions} for versions in loaded)
    now = (len(retained(declared, policy, on_server) | (set(named) & on_server)) for on_server in available)
    return max([_to_come(model), *now])


def _to_come(model: InferenceModel) -> int:
    """Return how many versions are declared and named by the policy. With `all`, only the storage has more."""
    declared, policy = set(model.spec.declared_versions), model.spec.version_policy
    if policy is not None and policy.specific is not None:
        return len({*declared, *policy.specific.versions})
    latest = policy.latest.num_versions if policy is not None and policy.latest is not None else 0
    return max(len(declared), latest)


@dataclass(frozen=True, slots=True)
class DocumentSize:
    """The most that a model or an ensemble takes, wherever it is placed: with its `declared` number of `versions`, and
    for a `further` one that stays loaded, all in bytes.
    """

    declared: int = 0
    versions: int = 1
    further: int = 0

    def with_versions(self, count: int) -> int:
        """Return the bytes with `count` versions loaded."""
        return self.declared + self.further * max(0, count - self.versions)


NO_SIZE = DocumentSize()
"""The size of a resource that is not rendered."""


def largest(sizes: Collection[DocumentSize]) -> DocumentSize:
    """Return the largest of several document sizes, one of which will be the actual one."""
    return max(sizes, key=lambda size: (size.declared, size.further), default=NO_SIZE)
