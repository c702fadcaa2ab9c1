"""A routed pair on a ramp of requests in flight, next to each of its two variants alone.

The two engines have different shapes: `few` guesses tokens ahead and has a small batch, so that it is faster with few
requests in flight; `many` has a large batch. Where the better one changes is measured first, as `argosy bench` does.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from math import floor
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import aiohttp
from benchmarks.language import environment
from benchmarks.language.front_end import Measured, Plan, trial
from benchmarks.language.ours import command, model, write_routed
from benchmarks.language.systems import System, server
from e2e.cluster.state import free_ports

from argosy.bench.crossover import LogRatio, crossing
from argosy.bench.load.client import Target, connected
from argosy.bench.plan import Level, TrialKey, trials
from argosy.bench.prompts import Vocabulary

FEW, MANY, ROUTED = "few", "many", "routed"
RAMP = (1, 2, 4, 8, 16, 32, 64, 32, 16, 8, 4, 2, 1)
_GUESSES = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 2}
_FEW_AT_ONCE = 4


def shapes(arguments: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the arguments of the two engines."""
    few = {"max_num_seqs": _FEW_AT_ONCE, "speculative_config": _GUESSES}
    return {FEW: {**arguments, **few}, MANY: dict(arguments)}


Note = Callable[[object], None]
"""Is called with each trial."""


class NoCrossoverError(Exception):
    """One of the two engines is better at every level, so that there is nothing to route by."""


async def regimes(
    arguments: Mapping[str, Any], words: Vocabulary, plan: Plan, folder: Path, note: Note
) -> dict[str, Any]:
    """Return the crossover and the worst ratio of the routed pair to the better variant on the ramp."""
    async with _variants(arguments, folder) as (systems, route):
        levels = sorted(set(RAMP))
        alone = [one async for one in _measured(systems[:2], levels, words, plan, "alone", note)]
        limit = crossover(alone, levels)
        await route(limit)
        ramp = [one async for one in _measured(systems, RAMP, words, plan, "ramp", note)]
    return {"crossover": limit, **ramp_figures(ramp)}


async def _measured(
    systems: Sequence[System], levels: Sequence[int], words: Vocabulary, plan: Plan, name: str, note: Note
) -> AsyncIterator[Measured]:
    """Yield trials in the order of the levels. Prompts differ between systems, whose engines partly are the same."""
    for step, number in enumerate(levels):
        for key in trials([Level(concurrency=number)], len(systems), plan.repetitions):
            system = systems[key.endpoint]
            seed = f"{name}/{step}/{key.repetition}/{system.name}"
            numbered = TrialKey(key.level, step * plan.repetitions + key.repetition, key.endpoint)
            measured = await trial(system, numbered, Random(seed), words, plan)
            note(measured)
            yield measured


def crossover(alone: Sequence[Measured], levels: Sequence[int]) -> int:
    """Return the most requests in flight for which `few` is better. Raises NoCrossoverError."""
    ratios = []
    for level in levels:
        rates = {
            name: [one.tokens_per_s for one in alone if (one.system, one.concurrency) == (name, level)]
            for name in (FEW, MANY)
        }
        ratios.append(LogRatio.of(level, [few / many for few, many in zip(rates[FEW], rates[MANY], strict=True)]))
    point = crossing(ratios)
    if point is None or not point.first_below:
        raise NoCrossoverError(f"no crossover of {FEW} and {MANY}: {ratios}")
    return floor(point.concurrency)


def ramp_figures(ramp: Sequence[Measured]) -> dict[str, Any]:
    """Return the ratio of the routed pair to the better variant at each step, and the worst."""
    by_key = {(one.repetition, one.system): one.tokens_per_s for one in ramp}
    repetitions = len({number for number, _ in by_key}) // len(RAMP)
    ratios = []
    for step in range(len(RAMP)):
        numbers = range(step * repetitions, (step + 1) * repetitions)
        better = max((FEW, MANY), key=lambda name: median(by_key[number, name] for number in numbers))
        ratios.append(median(by_key[number, ROUTED] / by_key[number, better] for number in numbers))
    return {"regime_worst": min(ratios), "regime_ratios": ratios}


@asynccontextmanager
async def _variants(
    arguments: Mapping[str, Any], folder: Path
) -> AsyncIterator[tuple[list[System], Callable[[int], Any]]]:
    """Yield both variants and the routed model as systems, and a function that routes at a limit."""
    repository = folder / "variants"
    for name, own in shapes(arguments).items():
        model(repository, name, own)
    (port,) = free_ports(1)
    flags = ["--model-control-mode=explicit", f"--load-model={FEW}", f"--load-model={MANY}"]
    async with AsyncExitStack() as stack:
        own_command, variables = command(repository, port, *flags), environment.engine_variables()
        few = await stack.enter_async_context(server(FEW, [FEW, MANY], own_command, folder, variables, port))
        systems: list[System] = [few]
        for name in (MANY, ROUTED):
            target = Target(name, f"http://127.0.0.1:{port}", name)
            systems.append(few.of(await stack.enter_async_context(connected(target, 300.0))))

        async def route(limit: int) -> None:
            write_routed(repository, ROUTED, [{"model": FEW, "maxConcurrency": limit}, {"model": MANY}])
            url = f"http://127.0.0.1:{port}/v2/repository/models/{ROUTED}/load"
            async with aiohttp.ClientSession() as session, session.post(url) as response:
                response.raise_for_status()

        yield systems, route
