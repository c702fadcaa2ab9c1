"""ONNX Runtime's threads where this process may use less than the machine: one pool for all of its sessions."""

from functools import cache

import onnxruntime as ort

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.cpus import cpu_limit


def size_threads(settings: ort.SessionOptions, parameters: Parameters) -> None:
    """Give a session the threads that its configuration asks for, or a share in the process's pool.

    The library by itself counts the machine's processors, for each session. Without a limit that is left to it.
    The pool runs one node of a graph after the other; a session that runs several at once has threads of its own.
    """
    intra = max(parameters.integer("intra_op_thread_count", 0), 0)
    inter = max(parameters.integer("inter_op_thread_count", 0), 0)
    limit = cpu_limit()
    parallel = settings.execution_mode == ort.ExecutionMode.ORT_PARALLEL
    if limit is None or intra or inter or parallel:
        settings.intra_op_num_threads = intra or limit or 0
        settings.inter_op_num_threads = inter or limit or 0
    elif _has_pool(limit):
        settings.use_per_session_threads = False
    else:
        settings.intra_op_num_threads = settings.inter_op_num_threads = limit


@cache
def _has_pool(threads: int) -> bool:
    """Make the pool, once; False where the library's release has none, or where a session was opened before."""
    try:
        ort.set_global_thread_pool_sizes(threads, 1)
    except Exception:
        return False
    return True
