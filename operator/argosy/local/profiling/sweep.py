"""The sweep over batch sizes and instances: a server for each number of instances, and a closed loop for each size."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from time import perf_counter
from typing import Final

from argosy.bench.answers import Answer
from argosy.bench.load.client import EndpointError
from argosy.bench.load.driver import drive
from argosy.bench.load.inference import Body, batch_body
from argosy.bench.plan import Level
from argosy.bench.profile.points import Failure, Point, Sweep, point
from argosy.local.profiling.manifest import Profiled
from argosy.local.profiling.serving import ProfileError, Served, serving
from argosy.local.state import StateFolder
from argosy.planning.facts import Node

Progress = Callable[[str], None]
"""Is called with what is measured next."""
_FEWEST: Final = 8
"""Requests of a point for each client, at least: of fewer a percentile says nothing."""
_MOST: Final = 4000
"""Requests of a point: more would say little more, and all their bodies are in memory."""
_WARM: Final = 3
"""Requests of a size that each client sends before any is measured: its memory and kernels come with the first one."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What is swept: `batches` and numbers of `instances`, rising; how long each point takes, in seconds. `shapes`:
    sizes of a row of inputs that leave some open, by name.
    """

    batches: Sequence[int]
    instances: Sequence[int]
    seconds: float = 1.0
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)


async def sweep(profiled: Profiled, steps: Steps, node: Node, state: StateFolder, progress: Progress) -> Sweep:
    """Measure all steps, up to those that fail. Raises ProfileError if the model does not take what is sent."""
    points: list[Point] = []
    failures: list[Failure] = []
    most = max(steps.batches) if profiled.takes_batches else 0
    for instances in steps.instances:
        progress(f"{_amount(instances)}: loading")
        try:
            async with serving(profiled, instances, most, node, state) as served:
                smaller = replace(steps, batches=_below(steps.batches, failures))
                await _curve(served, instances, smaller, points, failures, progress)
        except ProfileError as error:
            failures.append(Failure(instances, 0, str(error)))
            break
    return Sweep(points, failures)


def _below(batches: Sequence[int], failures: Sequence[Failure]) -> list[int]:
    """Return the sizes below those that failed with fewer instances, which would lack no less memory."""
    failed = min((failure.batch for failure in failures), default=None)
    return [batch for batch in batches if failed is None or batch < failed]


async def _curve(
    served: Served,
    instances: int,
    steps: Steps,
    points: list[Point],
    failures: list[Failure],
    progress: Progress,
) -> None:
    """Measure the batches with one number of instances, up to the first size that fails."""
    try:
        signature = await served.client.signature()
        bodies = {batch: batch_body(signature, batch, steps.shapes) for batch in steps.batches}
    except (EndpointError, ValueError, KeyError) as error:
        raise ProfileError(str(error)) from error
    for batch, body in bodies.items():
        progress(f"{_amount(instances)}: batches of {batch}")
        failure = await _measured(served, instances, batch, body, steps.seconds, points)
        if failure:
            failures.append(Failure(instances, batch, failure))
            return


async def _measured(served: Served, instances: int, batch: int, body: Body, seconds: float, points: list[Point]) -> str:
    """Add the point of a size, or return the error of its first request that fails."""
    send, level = partial(served.client.send, body.header), Level(concurrency=instances)
    warm = await drive(send, [body.data] * _WARM * instances, level, "", perf_counter)
    if error := _error(warm):
        return error
    one = min(answer.latency for answer in warm)
    count = min(_MOST, max(_FEWEST, ceil(seconds / max(one, 1e-6))) * instances)
    begun = perf_counter()
    answers = await drive(send, [body.data] * count, level, "", perf_counter)
    elapsed = perf_counter() - begun
    if error := _error(answers):
        return error
    memory = await asyncio.to_thread(served.memory.read)
    points.append(point(instances, batch, (answer.latency for answer in answers), elapsed, memory))
    return ""


def _error(answers: Sequence[Answer]) -> str:
    return next((answer.error for answer in answers if answer.error), "")


def _amount(instances: int) -> str:
    return f"{instances} instance{'s' if instances > 1 else ''}"
