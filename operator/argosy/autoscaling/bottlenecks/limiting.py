"""Which stage of an ensemble limits it: whose requests wait the longest, or which is the busiest where none wait."""

from .measures import WORTH_S, starving_wait
from .subject import Stage, Subject


def limiting_stage(subject: Subject) -> Stage | None:
    """Return the stage that more instances would help the most; None where neither waits nor busy shares are known."""
    waits = [(wait, stage) for stage in subject.stages if (wait := starving_wait(stage)) is not None]
    longest = max(waits, key=lambda stage: stage[0], default=None)
    if longest is not None and longest[0] >= WORTH_S:
        return longest[1]
    busy = [stage for stage in subject.stages if stage.signals.busy is not None]
    return max(busy, key=lambda stage: stage.signals.busy or 0.0, default=longest[1] if longest else None)
