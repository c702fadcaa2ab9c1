"""What is loaded on a server beside what is planned there: which GPUs it sits on, and how much it takes of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tritonclient.grpc.model_config_pb2 import ModelInstanceGroup

from argosy.fleet.facts import Node
from argosy.fleet.footprint import footprint_of
from argosy.fleet.members import Members
from argosy.fleet.plan import Placement
from argosy_runtime.agent.contract import RenderedModel
from argosy_runtime.modelconfig import parse_text


@dataclass(frozen=True, slots=True)
class Occupant:
    """Something loaded. `gpus` are indexes of the node; `memory` is bytes on each, None where it takes all of it."""

    name: str
    gpus: tuple[int, ...] = ()
    memory: int | None = 0

    @classmethod
    def of(cls, model: RenderedModel, gpus: tuple[int, ...], members: Members) -> "Occupant":
        """A loaded model on a server with these GPUs. Of one that nobody declares any more the size is unknown."""
        at = tuple(gpus[index] for index in _devices(model.config_text) if index < len(gpus))
        if model.is_ensemble or not at:
            return cls(model.name)
        declared = members.models.get(model.name)
        need = footprint_of(declared) if declared else None
        return cls(model.name, at, None if need is None or need.whole else need.memory)


def memory_of(node: Node) -> dict[int, int]:
    """Bytes of each real GPU, by index."""
    return {gpu.index: gpu.memory for gpu in node.gpus if not gpu.is_cpu}


def needs(placement: Placement, capacity: int) -> int:
    """Bytes that a placement takes of each of its GPUs; a whole-GPU model that declares none takes all."""
    return placement.memory or capacity if placement.whole else placement.memory


def taken(occupants: Iterable[Occupant], memory: Mapping[int, int]) -> dict[int, int]:
    """Bytes that occupants take, by GPU."""
    found: dict[int, int] = {}
    for each in occupants:
        for gpu in each.gpus:
            found[gpu] = found.get(gpu, 0) + (memory.get(gpu, 0) if each.memory is None else each.memory)
    return found


@lru_cache(maxsize=1024)
def _devices(config_text: str) -> tuple[int, ...]:
    """The server's own GPUs that a config names."""
    config = parse_text(config_text)
    spans = config.parameters["gpu_device_ids"].string_value if "gpu_device_ids" in config.parameters else ""
    named = {int(index) for index in spans.split(",") if index}
    for group in config.instance_group:
        if group.kind != ModelInstanceGroup.KIND_CPU:
            named.update(group.gpus)
    return tuple(sorted(named))
