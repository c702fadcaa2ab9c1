"""Memory of GPUs that the frameworks in a model's process have reserved, by their own accounts.

PyTorch alone keeps one for a whole process: what its caching allocator has of each GPU, free blocks included.
"""

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from argosy_runtime.backends.contract import ReservedMemory

INTERVAL_S: Final = 10.0
"""Between two looks: more often than the server measures."""


def reserved_memory() -> ReservedMemory | None:
    """Return the bytes on each GPU; None where no framework that says so has used one. Imports nothing."""
    torch: Any = sys.modules.get("torch")
    cuda: Any = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return ReservedMemory({gpu: int(cuda.memory_reserved(gpu)) for gpu in range(cuda.device_count())})


def begin_reports(send: Callable[[ReservedMemory], None]) -> None:
    """Send what is reserved whenever it has changed, from a thread that ends with the process."""
    threading.Thread(target=_repeat, args=(send, threading.Event()), name="reserved memory", daemon=True).start()


def _repeat(send: Callable[[ReservedMemory], None], never: threading.Event) -> None:
    last: ReservedMemory | None = None
    while True:
        now = reserved_memory()
        if now is not None and now != last:
            send(now)
            last = now
        never.wait(INTERVAL_S)
