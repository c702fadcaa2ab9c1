"""On the path of a process, it gives it a machine with a GPU: a played driver in the place of libcuda."""

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))

_open = ctypes.CDLL


def _opened(name: Any = None, *arguments: Any, **named: Any) -> Any:
    if name != "libcuda.so.1":
        return _open(name, *arguments, **named)
    import played_cuda

    played_cuda.DRIVER.compute_capability = os.environ.get("PLAYED_COMPUTE_CAPABILITY", "9.0")
    return played_cuda.DRIVER


ctypes.CDLL = _opened  # type: ignore[misc,assignment]
