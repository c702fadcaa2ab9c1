"""How often the kernel has killed for want of memory in this container."""

import re
from pathlib import Path

COUNTERS = ("memory.events", "memory/memory.oom_control")
"""Below the cgroups' folder: of version 2, and of version 1."""


def oom_kills(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """The counter `oom_kill`; 0 where there is none."""
    for name in COUNTERS:
        try:
            text = (cgroups / name).read_text()
        except OSError:
            continue
        if found := re.search(r"^oom_kill (\d+)$", text, re.MULTILINE):
            return int(found[1])
    return 0
