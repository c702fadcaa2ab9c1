"""An end to code that may be endless: raised once, in time, and never afterwards."""

import subprocess
import sys
import time

import pytest

from argosy_runtime.language.chat.interruption import Interrupted, interrupted_after

TRACED = """
import sys
from argosy_runtime.language.chat.interruption import interrupted_after

with interrupted_after(60):
    pass

def trace(frame, event, _):
    frame.f_trace_opcodes = True
    return trace

sys.settrace(trace)
(lambda: sum(range(3)))()
"""


def loop_for_ever() -> None:
    with interrupted_after(0.05):
        while True:
            pass


def test_an_endless_loop_ends():
    with pytest.raises(Interrupted):
        loop_for_ever()


def test_what_ends_in_time_is_left_alone():
    with interrupted_after(60):
        total = sum(range(1000))
    assert total == 499500


def test_nothing_is_raised_after_the_block_however_close_its_end_is():
    for _ in range(200):
        try:
            with interrupted_after(0.0005):
                time.sleep(0.0005)
        except Interrupted:
            pass
        for _ in range(300):
            pass


def test_a_thread_does_not_look_for_exceptions_afterwards():
    """Code that is traced by its instructions hangs in Python 3.11 where a thread goes on looking for one."""
    subprocess.run([sys.executable, "-c", TRACED], check=True, timeout=60)
