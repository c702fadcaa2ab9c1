"""A footprint that differs from what was measured, in words, with the patch that makes them agree."""

import json
from datetime import datetime, timedelta
from typing import Final

from argosy.api import InferenceModel
from argosy.api.model.footprint import Footprint
from argosy.api.values.times import timestamp
from argosy.planning.amounts import gib, mebibytes
from argosy.planning.demand.measured import CRASHES_COUNT, NOTICEABLE, MeasuredMemory, sizes_itself

LOWER_AFTER: Final = timedelta(hours=1)
"""How long a model is measured before it is said to need less than it declares: large batches may be yet to come."""


def footprint_deviation(model: InferenceModel, measured: MeasuredMemory | None, now: datetime) -> str:
    """Return that a model uses noticeably more or less memory than it declares, or did so when it crashed; empty where
    it does not.

    Engines that size themselves take what is declared, so that another declaration would change what is measured.
    """
    declared = (model.spec.footprint or Footprint()).gpu_memory
    if measured is None or declared is None or sizes_itself(model):
        return ""
    return "; ".join(filter(None, (_measured(model, measured, declared, now), _crashed(model, measured, declared))))


def _measured(model: InferenceModel, measured: MeasuredMemory, declared: int, now: datetime) -> str:
    if not measured.per_instance or not measured.deviates_from(declared):
        return ""
    if measured.per_instance < declared and is_early(measured, now):
        return ""
    where = f" on {measured.product}" if measured.product else ""
    used = f"an instance has used up to {gib(measured.per_instance)}{where} since {timestamp(measured.since)}"
    effect = "the plan counts that" if measured.per_instance > declared else "the rest stays unused"
    command = _command(model, measured.per_instance)
    return f"spec.footprint.gpuMemory is {gib(declared)}, and {used}; {effect}. Declare it: {command}"


def _crashed(model: InferenceModel, measured: MeasuredMemory, declared: int) -> str:
    """Return that a process had noticeably more than the model counts with when it crashed."""
    crash = measured.crash
    if crash is None or crash.per_instance <= max(declared, measured.per_instance) * (1 + NOTICEABLE):
        return ""
    size, until = gib(crash.per_instance), timestamp(crash.at + CRASHES_COUNT)
    return (
        f"an instance had {size} of a GPU before its process crashed at {timestamp(crash.at)}, and {gib(declared)} is "
        f"declared: until {until} the plan leaves it {size} next to other models, where nothing lacks a place for "
        f"that. If it needs so much, declare it: {_command(model, crash.per_instance)}"
    )


def is_early(measured: MeasuredMemory, now: datetime) -> bool:
    """Return whether a model was measured for too short a time to say that it needs less than it declares."""
    return now - measured.since < LOWER_AFTER


def footprint_patch(gpu_memory: int) -> dict[str, object]:
    """Return the merge patch of a model that declares this many bytes of a GPU for an instance."""
    return {"spec": {"footprint": {"gpuMemory": mebibytes(gpu_memory)}}}


def _command(model: InferenceModel, gpu_memory: int) -> str:
    patch = json.dumps(footprint_patch(gpu_memory), separators=(",", ":"))
    return f"kubectl patch inferencemodel {model.name} -n {model.namespace} --type merge -p '{patch}'"
