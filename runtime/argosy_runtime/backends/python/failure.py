"""How an exception in a model's code is told to the client: Triton's words, with the frames of the model
only.
"""

import traceback

from .pb_utils.errors import BrokenContractError

_INTERNAL = __name__.rpartition(".")[0]


def describe(error: BaseException) -> str:
    """`Type: message`, then the frames of the traceback, innermost first, without this package's own."""
    if isinstance(error, BrokenContractError):
        return str(error)
    head = f"{type(error).__name__}: {error}"
    frames = [
        (frame.f_code.co_filename, number, frame.f_code.co_name)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__", "")).startswith(_INTERNAL)
    ]
    if not frames:
        return head
    lines = "".join(f"  {file}({line}): {function}\n" for file, line, function in reversed(frames))
    return f"{head}\n\nAt:\n{lines}"
