"""Work that may crash, hang, or fill the memory or the disk, in processes of their own.

`tool` runs a command, `call` a Python function, `isolated` a builder's runner. `causes` (*pure*) has the
reasons of failures.
"""

from .calls import call
from .causes import Cause
from .runners import isolated
from .tools import Limits, tool

__all__ = ["Cause", "Limits", "call", "isolated", "tool"]
