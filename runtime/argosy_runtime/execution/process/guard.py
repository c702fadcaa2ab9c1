"""Ends what models leave behind when their server is gone: `python guard.py`, a process without any package.

It reads from its standard input which process groups there are: the leader's id in four bytes, negative for a group
that is over. That input ends with the server, however that ends, and so do then the groups that are left. They are
asked first, because what tidies up behind others, as Python's tracker of shared memory does, takes a moment.
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
    """Read until the end of `groups`, then end what is left."""
    left: set[int] = set()
    while len(data := groups.read(LEADER.size)) == LEADER.size:
        (leader,) = LEADER.unpack(data)
        if leader > 0:
            left.add(leader)
        else:
            left.discard(-leader)
    end(left)


def end(leaders: set[int]) -> None:
    """End groups: kill what does not go within _ENDING_SECONDS of being asked."""
    asked = {leader for leader in leaders if send(leader, signal.SIGTERM)}
    for _ in range(round(_ENDING_SECONDS / _LOOK_SECONDS)):
        if not any(send(leader, 0) for leader in asked):
            return
        time.sleep(_LOOK_SECONDS)
    for leader in asked:
        send(leader, signal.SIGKILL)


def send(leader: int, number: int) -> bool:
    """Send a signal to a group, 0 for none. Return whether there is one."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # the latter is what macOS says where only zombies are left
        return False
    return True


if __name__ == "__main__":
    watch(sys.stdin.buffer)
