"""Crash loops of models: when a model is in one, how long it rests, and how a server reports it. Pure.

An instance that ends before it has answered anything adds to a row; an answer ends the row. The pauses of a row grow.
From `LOOP_AFTER` on the model counts as one that cannot answer, and `matches` finds that in the reason that the
server's index gives. The agent follows the same rule.
"""

from argosy_common.backoff import backoff_s

LOOP_AFTER = 3
"""So many ends in a row without an answer are a crash loop."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.2, 30.0
_SIGN = "crash loop: "


def pause_s(row: int) -> float:
    """Return the pause in seconds before an instance restarts, after `row` consecutive ends."""
    return backoff_s(row, FIRST_PAUSE_S, LAST_PAUSE_S)


def resting(row: int, last: str) -> str:
    """Return the message of an instance that waits for its restart, after `row` ends, the last for `last`."""
    return f"{_SIGN}{last}; {_row(row)}, and the pause before the next start is {pause_s(row):g} s"


def on_trial(row: int) -> str:
    """Return the reason while it runs again and has not answered yet."""
    return f"{_SIGN}{_row(row)}, and has started again"


def matches(reason: str) -> bool:
    """Return whether a reason of the index speaks of a crash loop."""
    return reason.startswith(_SIGN)


def last_of(reason: str) -> str:
    """Return a reason of the index from where it gives the words of the last end, or all of another reason."""
    return reason.removeprefix(_SIGN)


def _row(row: int) -> str:
    return f"it ended {row} times in a row without an answer"
