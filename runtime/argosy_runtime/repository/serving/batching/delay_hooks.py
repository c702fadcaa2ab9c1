"""Triton's two debugging aids: environment variables that hold a model's scheduler until so many requests wait.

They make the batches of a burst of requests predictable. Read when a version is loaded.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

DYNAMIC: Final = "TRITONSERVER_DELAY_SCHEDULER"
"""Requests in the queue of a model with dynamic batching before the first batch goes."""
BACKLOG: Final = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"
"""Requests in the backlog of a sequence batcher before the first sequence leaves it."""
_NUMBER: Final = re.compile(r"\s*([0-9]{1,9})")


def held_requests(name: str, environment: Mapping[str, str] = os.environ) -> int:
    """Return how many requests have to wait, 0 without the variable. Digits count as far as they go, as in C."""
    match = _NUMBER.match(environment.get(name, ""))
    return 0 if match is None else int(match[1])


__all__ = ["BACKLOG", "DYNAMIC", "held_requests"]
