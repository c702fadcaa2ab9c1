"""Ends what models leave behind when their server is gone: `python guard.py`, a process without any package.

It reads from its standard input which process groups there are: the leader's id in four bytes, negative for a group
that is over. That input ends with the server, however the server ends, and then the groups that are left are killed.
"""

import os
import signal
import struct
import sys
from contextlib import suppress
from typing import BinaryIO

LEADER = struct.Struct("<i")


def watch(groups: BinaryIO) -> None:
    """Read until the end of `groups`, then kill what is left."""
    left: set[int] = set()
    while len(data := groups.read(LEADER.size)) == LEADER.size:
        (leader,) = LEADER.unpack(data)
        if leader > 0:
            left.add(leader)
        else:
            left.discard(-leader)
    for leader in left:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


if __name__ == "__main__":
    watch(sys.stdin.buffer)
