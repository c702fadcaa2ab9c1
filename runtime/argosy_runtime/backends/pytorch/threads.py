"""PyTorch's thread pools, which a process has once."""

import threading
from collections.abc import Callable
from contextlib import suppress

import torch
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.cpus import cpu_limit

_INTRA = ("INTRA_OP_THREAD_COUNT", "NUM_THREADS")
_INTER = ("INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS")
_lock = threading.Lock()
_chosen: dict[str, int] = {}


def configure(config: ModelConfig, host: Host) -> None:
    """Size the pools as the first model to ask wants them; say so in the log where a later one wants otherwise.

    Until one asks there are no more threads than the processors that the process may use.
    """
    parameters = Parameters(config)
    with _lock:
        _choose(parameters, _INTRA, torch.set_num_threads, host)
        _choose(parameters, _INTER, torch.set_num_interop_threads, host)


def _choose(parameters: Parameters, names: tuple[str, str], apply: Callable[[int], object], host: Host) -> None:
    name = next((name for name in names if name in parameters), None)
    if name is None:
        limit = cpu_limit()
        if limit is not None and names[0] not in _chosen:
            with suppress(RuntimeError):  # as below
                apply(limit)
        return
    wanted = parameters.integer(name, 0, minimum=1)
    known = _chosen.setdefault(names[0], wanted)
    if known != wanted:
        host.log("warning", f"{name} {wanted} is ignored: this process already runs with {known}")
        return
    try:
        apply(wanted)
    except RuntimeError as error:  # the pool of inter-op threads cannot be resized once it has worked
        host.log("warning", f"{name} {wanted} is ignored: {error}")
