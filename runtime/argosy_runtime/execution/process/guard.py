"""End of the models' processes whose server is gone: `python guard.py`, a process without any package.

It reads the process groups from its standard input: the leader's id in four bytes, negative for a group that has ended.
That input ends with the server, however that ends, and then the remaining groups end too. They get SIGTERM first,
because a cleaner such as Python's tracker of shared memory takes a moment.
"""

import os
import signal
import struct
import sys
import time
from typing import BinaryIO

LEADER = struct.Struct("<i")
_ENDING_SECONDS = 1.0
_LOOK_SECONDS = 0.01


def watch(groups: BinaryIO) -> None:
    """Read until the end of `groups`, then end the remaining ones."""
    left: set[int] = set()
    while len(data := groups.read(LEADER.size)) == LEADER.size:
        (leader,) = LEADER.unpack(data)
        if leader > 0:
            left.add(leader)
        else:
            left.discard(-leader)
    end(left)


def end(leaders: set[int]) -> None:
    """End groups: kill those that are left _ENDING_SECONDS after SIGTERM."""
    signalled = {leader for leader in leaders if send(leader, signal.SIGTERM)}
    for _ in range(round(_ENDING_SECONDS / _LOOK_SECONDS)):
        if not any(send(leader, 0) for leader in signalled):
            return
        time.sleep(_LOOK_SECONDS)
    for leader in signalled:
        send(leader, signal.SIGKILL)


def send(leader: int, number: int) -> bool:
    """Send a signal to a group, 0 for none. Return whether the group exists."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # macOS raises the latter where only zombies are left
        return False
    return True


if __name__ == "__main__":
    watch(sys.stdin.buffer)
