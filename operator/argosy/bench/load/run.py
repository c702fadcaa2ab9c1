"""A run: endpoints checked, prompts made, every trial in its order, and the document of it all."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from argosy.bench.budgets import NO_BUDGET, Budget
from argosy.bench.comparison import Measured
from argosy.bench.figures import Trial, rates
from argosy.bench.load.client import Client, EndpointError, Target, connected
from argosy.bench.load.counting import tokenizer_counter, vocabulary
from argosy.bench.load.driver import drive
from argosy.bench.plan import Level, TrialKey, extent, trials
from argosy.bench.prompts import Vocabulary
from argosy.bench.work import Work, load_body

Progress = Callable[[int, int, str], None]
"""Is called before each trial with its number from 0, the number of all, and its description."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What `argosy bench` was called with."""

    targets: Sequence[Target]
    work: Work
    levels: Sequence[Level]
    requests: int = 32
    repetitions: int = 4
    seed: int = 0
    budget: Budget = NO_BUDGET
    tokenizer: Path | None = None
    timeout_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Run:
    """The settings with the model of each endpoint, and what was measured, in its order."""

    settings: Settings
    measured: Sequence[Measured]


async def run(settings: Settings, progress: Progress) -> Run:
    """Measure every trial. Raises EndpointError before the first one where an endpoint or its model is not there."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(connected(await _named(target, settings), settings.timeout_s))
            for target in settings.targets
        ]
        counter = tokenizer_counter(settings.tokenizer) if settings.tokenizer else None
        words = await vocabulary(clients[0], settings.work, counter)
        measured = await _measure_all(settings, clients, words, progress)
    return Run(replace(settings, targets=[client.target for client in clients]), measured)


async def _named(target: Target, settings: Settings) -> Target:
    """Return the endpoint with its model: the one that was requested, or its only one."""
    async with connected(target, settings.timeout_s) as client:
        models = await client.models()
    if not target.model and len(models) == 1:
        return replace(target, model=models[0])
    if target.model in models:
        return target
    problem = f"has no model {target.model!r}" if target.model else "has several models: name one by --model"
    raise EndpointError(f"{target.name}: {target.url} {problem}; there are {', '.join(sorted(models)) or 'none'}")


async def _measure_all(
    settings: Settings, clients: Sequence[Client], words: Vocabulary, progress: Progress
) -> list[Measured]:
    keys = list(trials(settings.levels, len(clients), settings.repetitions))
    measured: list[Measured] = []
    begin = perf_counter()
    for number, key in enumerate(keys):
        client = clients[key.endpoint]
        progress(number, len(keys), f"{client.target.name}, {key.level}, repetition {key.repetition + 1}")
        trial = await _measure(settings, client, key, words)
        trial = replace(trial, started=trial.started - begin)
        measured.append(Measured(key, trial, rates(trial, settings.budget).tokens))
    return measured


async def _measure(settings: Settings, client: Client, key: TrialKey, words: Vocabulary) -> Trial:
    """Measure one trial. Its bodies are made before, so that making them delays nothing."""
    requests = extent(key.level, settings.requests)
    random = Random(key.seed(settings.seed))
    bodies = [
        load_body(settings.work, client.target.model, words.prompt(settings.work.prompt_tokens, random))
        for _ in range(requests.total)
    ]
    started, used = perf_counter(), process_time()
    send = partial(client.send, settings.work.api)
    answers = await drive(send, bodies, key.level, key.seed(settings.seed), perf_counter)
    return Trial(answers, requests, (process_time() - used) / (perf_counter() - started), started)
