"""What one replica of a model takes of a server, from what its resource declares."""

from argosy.api import InferenceModel
from argosy.fleet.facts import Footprint


def footprint_of(model: InferenceModel) -> Footprint:
    """The footprint of one replica with all its instances.

    - Whole GPUs: `footprint.gpus`, or else `parallelism.tensor x pipeline` where that is more than one. Each
      has `gpuMemory` for every instance; the share of compute means nothing, because nobody else is there.
    - A share of one GPU: `gpuMemory` and `compute`, each times `instances`. What is not declared counts as
      nothing: a model with `gpuMemory` alone is never kept from a GPU because of compute.
    - Nothing declared: the CPU.
    """
    spec = model.spec
    memory = spec.footprint.gpu_memory * spec.instances
    if spec.gpus:
        return Footprint(memory=memory, gpus=spec.gpus)
    return Footprint(memory=memory, compute=spec.footprint.compute * spec.instances)
