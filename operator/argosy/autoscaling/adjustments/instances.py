"""Instances and the batching window, which change in place and need no further GPU.

They are raised immediately to the cheapest setting with which the serving replicas carry the load. They are lowered to
the cheapest that carries the largest load of the window and a little more, so that noise does not raise them again.
Instances beyond the number measured so far are tried one at a time, and their capacity counts once it is measured.
"""

from msgspec import structs

from argosy.autoscaling.capacity.options import Option
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.load import Load
from argosy.autoscaling.settings import SAME
from argosy.autoscaling.stage import Stage


def setting(stage: Stage, load: Load, options: tuple[Option, ...], replicas: int, *, down: bool) -> Allocation:
    """Return the stage's allocation with `replicas`. `down`: whether instances and the window may be reduced. The
    stage's memory must already contain the present recommendation.
    """
    allocation = stage.allocation
    if not options or stage.signals is None or not replicas:
        return structs.replace(allocation, replicas=replicas)
    serving = max(1, min(stage.signals.servers or replicas, allocation.replicas, replicas))
    largest = max(load.rate, *(past.rate for past in stage.memory.recommendations))
    enough = max(_first(options, load.rate / serving), _first(options, largest / replicas))
    settings = [(option.instances, option.window_s) for option in options]
    present = (allocation.instances, allocation.window_s)
    here = settings.index(present) if present in settings else None
    if here is not None and here > enough:
        enough = min(here, _first(options, (1 + SAME) * largest / replicas))
    option = options[enough]
    is_short = load.rate > serving * options[-1].rate
    if is_short and (untried := _untried(stage, options[-1])) is not None:
        option = untried
    elif (not down or _is_on_trial(stage, is_short=is_short)) if here is None else (here > enough and not down):
        return structs.replace(allocation, replicas=replicas)
    return structs.replace(allocation, replicas=replicas, instances=option.instances, window_s=option.window_s)


def _is_on_trial(stage: Stage, *, is_short: bool) -> bool:
    """Return whether it has more instances than were ever measured busy: for less than a full window, or while the load
    exceeds the capacity of the measured ones (`is_short`), since the same trial would begin again.
    """
    memory = stage.memory
    if memory.estimates.engine is not None or stage.allocation.instances <= memory.estimates.experience.busiest:
        return False
    return is_short or memory.since_change_s(memory.measured.at) <= stage.policy.pace.stabilization_s


def _untried(stage: Stage, best: Option) -> Option | None:
    """Return the option of one more instance than was measured busy; None if the last one added too little."""
    estimates = stage.memory.estimates
    measured = estimates.experience.busiest
    if estimates.engine is not None or best.instances < measured or stage.allocation.instances > measured:
        return None
    return Option(measured + 1, best.window_s, best.rate) if measured < stage.most_instances else None


def _first(options: tuple[Option, ...], rate: float) -> int:
    """Return the index of the cheapest option with at least this capacity, or else of the largest."""
    return next((index for index, option in enumerate(options) if option.rate >= rate), len(options) - 1)
