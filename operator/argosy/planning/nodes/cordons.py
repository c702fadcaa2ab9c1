"""Cordons of GPUs: after repeated device errors a GPU gets no server until there is evidence that it is repaired.

A pool's status stores its cordons, so that they survive a restart of the operator.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from argosy.api import ServingPool, ServingPoolStatus
from argosy.api.status import CordonedGpu
from argosy.api.values.times import parse_time, timestamp
from argosy.planning.amounts import listed
from argosy.planning.facts import Device, Gpu, Node
from argosy.planning.nodes.device_errors import DeviceError, DeviceErrors
from argosy_common.wording import shortened

LEAST_ERRORS = 3
LEAST_SPAN = timedelta(minutes=1)
"""So many errors within the window cordon a GPU, the last of them so long after the first: a driver that starts again
makes as many in a few seconds."""
UNCORDONED_AT = "argosy.dev/gpus-uncordoned-at"
"""An annotation of a pool, a time in RFC 3339: cordons from before it are lifted."""
_WORDS, _MODELS = 300, 5
"""Characters of an error, and models, that a cordon tells of."""


@dataclass(frozen=True, slots=True)
class Cordons:
    """The cordons of one pool, and the device errors that count towards further ones."""

    gpus: tuple[CordonedGpu, ...] = ()
    errors: DeviceErrors = field(default_factory=DeviceErrors)


def cordons(
    pool: ServingPool, previous: ServingPoolStatus | None, errors: DeviceErrors, nodes: Iterable[Node], now: datetime
) -> Cordons:
    """Return the cordons of a pool at `now`: those of the `previous` status that are not lifted, and new ones.

    A GPU on which another model is ready is not cordoned. Neither is one whose errors are only of models that already
    led to a cordon, also in this round: then the model is the more likely cause.
    """
    by_name = {node.name: node for node in nodes}
    former = previous.cordoned_gpus if previous is not None else ()
    standing = [cordon for cordon in former if not _is_lifted(cordon, by_name, pool.metadata.annotations)]
    blamed = {model: "" for cordon in standing for model in cordon.models}
    taken = {(cordon.node, cordon.gpu) for cordon in standing}
    added: list[CordonedGpu] = []
    for device, device_errors in sorted(errors.recent.items()):
        if device not in taken | errors.serving and device[0] in by_name and _is_enough(device_errors, blamed):
            added.append(_cordon(pool, device, device_errors, by_name[device[0]], now))
            blamed = {error.model: error.server for error in device_errors} | blamed
    lasting = [cordon for cordon in added if not _is_lifted(cordon, by_name, pool.metadata.annotations)]
    every = sorted((*standing, *lasting), key=lambda cordon: (cordon.node, cordon.gpu))
    # What led to a cordon counts until the status has it: a status may fail to be written.
    return Cordons(tuple(every), errors.without(taken))


def with_cordons(nodes: Iterable[Node], devices: Collection[Device]) -> tuple[Node, ...]:
    """Return the nodes, on which these GPUs are withheld by their cordons."""
    return tuple(_with_cordons(node, {gpu for name, gpu in devices if name == node.name}) for node in nodes)


def _with_cordons(node: Node, indexes: Collection[int]) -> Node:
    if not indexes:
        return node
    return replace(node, gpus=tuple(_withheld(node, gpu) if gpu.index in indexes else gpu for gpu in node.gpus))


def _withheld(node: Node, gpu: Gpu) -> Gpu:
    if gpu.is_cpu or (gpu.withheld_by and not gpu.reclaimable):
        return gpu
    holder = f"the cordon of GPU {gpu.index} of node {node.name} (device errors)"
    return replace(gpu, withheld_by=holder, reclaimable=False, cordoned=True)


def _is_lifted(cordon: CordonedGpu, nodes: Mapping[str, Node], annotations: Mapping[str, str]) -> bool:
    """Return whether the node is gone or was started again since, or the pool's annotation says so."""
    node = nodes.get(cordon.node)
    if node is None or (node.boot_id and cordon.boot_id and node.boot_id != cordon.boot_id):
        return True
    at, since = parse_time(annotations.get(UNCORDONED_AT, "")), parse_time(cordon.time)
    return at is not None and since is not None and since <= at


def _is_enough(errors: tuple[DeviceError, ...], blamed: Mapping[str, str]) -> bool:
    """Return whether the errors cordon a GPU. `blamed`: models behind other cordons, each with the server where it
    brought one about in this round, empty for an earlier one.
    """
    others = any(blamed.get(error.model, error.server) == error.server for error in errors)
    return others and len(errors) >= LEAST_ERRORS and errors[-1].at - errors[0].at >= LEAST_SPAN


def _cordon(
    pool: ServingPool, device: Device, errors: tuple[DeviceError, ...], node: Node, now: datetime
) -> CordonedGpu:
    models = sorted({error.model for error in errors})
    words = shortened(" ".join(errors[-1].words.split()), _WORDS)
    count, of = len(errors), listed(models, _MODELS, ", ")
    return CordonedGpu(
        node=node.name,
        gpu=device[1],
        time=timestamp(now),
        boot_id=node.boot_id,
        models=tuple(models),
        message=f"{count} device errors of {of} within ten minutes, the last one: {words}. It takes no server until "
        f"the node is started again or deleted. Once it is repaired: kubectl annotate -n {pool.namespace} servingpool "
        f'{pool.name} --overwrite {UNCORDONED_AT}="$(date -u +%FT%TZ)"',
    )
