"""Times until a model that sleeps, or is not loaded, gives its first token, next to what its engine alone takes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import aiohttp
import numpy as np
from benchmarks.language import environment
from benchmarks.language.front_end import MismatchError
from benchmarks.language.ours import command, model, write_routed
from benchmarks.language.systems import Load, System, engine_alone, server
from e2e.cluster.state import free_ports

from argosy.bench.plan import Level
from argosy.bench.prompts import Vocabulary

MODEL, AWAKE, ROUTED = "sleeper", "awake", "routed"
_AT_ONCE = 8
"""Requests in flight up to which the other variant serves; fewer leave the sleeping one alone."""
_IDLE_S = 1
_WAIT_S = 60.0
_LIMIT_S = 300.0
_PROMPT, _OUTPUT = 64, 2


@dataclass
class Wakes:
    """Seconds to the first token in each round: of the engine alone, of a sleeping model, of an unloaded model."""

    alone: list[float] = field(default_factory=list)
    asleep: list[float] = field(default_factory=list)
    unloaded: list[float] = field(default_factory=list)


async def waking(
    arguments: Mapping[str, Any], words: Vocabulary, rounds: int, folder: Path, note: Callable[[object], None]
) -> dict[str, Any]:
    """Return the engine's own load, and what a first token takes beyond it, in seconds."""
    wakes = Wakes()
    repository = folder / "waking"
    for name in (AWAKE, MODEL):
        model(repository, name, arguments)
    variants = [{"model": AWAKE, "maxConcurrency": _AT_ONCE}, {"model": MODEL}]
    write_routed(repository, ROUTED, variants, idleTimeoutSeconds=_IDLE_S)
    (port,) = free_ports(1)
    flags = ["--model-control-mode=explicit", f"--load-model={ROUTED}"]
    own_command, variables = command(repository, port, *flags), environment.engine_variables()
    async with server(MODEL, [MODEL, ROUTED], own_command, folder, variables, port) as sleeper:
        control = _Control(port)
        for number in range(rounds):
            await control.until_asleep()
            wakes.alone.append(await _load_alone(dict(arguments), words, number, folder))
            wakes.asleep.append(await _first_token(sleeper, words, f"asleep/{number}"))
            await control.unload()
            begin = perf_counter()
            await control.load()
            wakes.unloaded.append(perf_counter() - begin + await _first_token(sleeper, words, f"unloaded/{number}"))
            note(wakes)
    return wake_figures(wakes)


def wake_figures(wakes: Wakes) -> dict[str, Any]:
    """Return medians, and the larger 95th percentile beyond the engine's own load of the same round."""
    alone = np.array(wakes.alone)
    beyond = {"asleep": np.array(wakes.asleep) - alone, "unloaded": np.array(wakes.unloaded) - alone}
    figures = {f"wake_{name}_beyond_s": float(np.median(seconds)) for name, seconds in beyond.items()}
    p95 = max(float(np.percentile(seconds, 95)) for seconds in beyond.values())
    return {"engine_load_s": float(np.median(alone)), **figures, "wake_p95_s": p95}


async def _load_alone(arguments: dict[str, Any], words: Vocabulary, number: int, folder: Path) -> float:
    """Return the seconds from the start of a process with the engine to its first token."""
    begin = perf_counter()
    async with engine_alone(arguments, folder) as engine:
        return perf_counter() - begin + await _first_token(engine, words, f"alone/{number}")


async def _first_token(system: System, words: Vocabulary, seed: str) -> float:
    """Return the seconds until the first token of one request. Raises MismatchError where it fails."""
    prompt = words.prompt(_PROMPT, Random(seed))
    (answer,) = await system.answers(Load([prompt], _OUTPUT, Level(concurrency=1), seed))
    if answer.error:
        raise MismatchError(f"{system.name}: {answer.error}")
    return answer.time_to_first_token


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the condition holds. Raises TimeoutError after a minute."""
    async with asyncio.timeout(_WAIT_S):
        while not await condition():  # noqa: ASYNC110  (a server has no event for it)
            await asyncio.sleep(0.1)


class _Control:
    """The server's repository: loads, unloads, and the processes of the model's instances."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    async def load(self) -> None:
        """Load the model."""
        await self._post(f"/v2/repository/models/{MODEL}/load", {})

    async def unload(self) -> None:
        """Unload the model, and wait until it is gone."""
        await self._post(f"/v2/repository/models/{MODEL}/unload", {})
        await _until(self._is_unloaded)

    async def until_asleep(self) -> None:
        """Wait until the model sleeps, by the metric of its variant."""
        await _until(self._is_asleep)

    async def _is_asleep(self) -> bool:
        async with aiohttp.ClientSession() as session, session.get(f"{self._url}/metrics") as response:
            lines = (await response.text()).splitlines()
        variant = f'variant="{MODEL}"'
        return any(
            line.startswith("argosy_variant_asleep{") and variant in line and line.endswith(" 1") for line in lines
        )

    async def _is_unloaded(self) -> bool:
        entries = json.loads(await self._post("/v2/repository/index", {}))
        gone = [entry.get("state") not in ("READY", "UNLOADING") for entry in entries if entry["name"] == MODEL]
        return all(gone)

    async def _post(self, path: str, body: object) -> str:
        timeout = aiohttp.ClientTimeout(total=_LIMIT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(self._url + path, json=body) as response,
        ):
            text = await response.text()
            if response.status != 200:
                raise RuntimeError(f"{path}: HTTP {response.status}: {text}")
            return text
