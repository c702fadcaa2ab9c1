"""The named scenarios: which servers end, how late kube-proxy learns of it, and what clients do meanwhile."""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.planning.migration.pool_migration import DRAIN_PERIOD
from argosy.render.workloads.pods.ending import DRAIN_IDLE_S, EXIT_TIMEOUT_S

from . import service as services
from .clients import LongStreams, ShortRequests, Tally
from .models import TOKEN_S
from .pods import Pod
from .service import Service

STAYING = 2
"""Servers that go on serving."""
AT_ONCE = 4
"""Servers that end at the same time."""
PLAYED_AT_ONCE = 3
"""Scenarios at a time: most of a drain is waiting."""
PERIOD_S = 0.05
STREAM_S = DRAIN_IDLE_S + EXIT_TIMEOUT_S + 5
"""Seconds of a long stream: more than a server that sees no new request has, if open ones do not count."""
_SETTLE_S = 1.0
_PATIENCE_S = 200.0


@dataclass(frozen=True)
class Scenario:
    """One way in which servers end.

    `delay_s`: seconds from the end of a Pod, or of the models on it, until new connections go elsewhere. `unloads`: the
    models are taken from the server first, as in a scale-down. `streams`: whether long streams are open meanwhile.
    """

    delay_s: float
    clients: Callable[[ShortRequests], Sequence[Coroutine[Any, Any, None]]]
    unloads: bool = False
    streams: bool = False


def _new(short: ShortRequests) -> Sequence[Coroutine[Any, Any, None]]:
    return [short.over_new_connections(PERIOD_S)]


def _reusing(short: ShortRequests) -> Sequence[Coroutine[Any, Any, None]]:
    channels = [short.over_a_channel(4 * PERIOD_S) for _ in range(AT_ONCE)]
    seldom = [short.seldom() for _ in range(4 * AT_ONCE)]
    return [short.over_reused_connections(PERIOD_S), *channels, *seldom, short.over_a_stream(4 * PERIOD_S)]


def _every(short: ShortRequests) -> Sequence[Coroutine[Any, Any, None]]:
    return [*_new(short), *_reusing(short)]


SCENARIOS = {
    "sigterm_under_load": Scenario(1.0, _every),
    "long_streams": Scenario(1.0, _new, streams=True),
    "keep_alive": Scenario(1.0, _reusing),
    "kube_proxy_late": Scenario(10.0, _every),
    "node_drain": Scenario(1.0, _every, streams=True),
    "scale_down": Scenario(1.0, _every, unloads=True, streams=True),
}


@dataclass
class Outcome:
    """What a scenario showed. `badly`: how containers ended that did not end by themselves, with the exit code 0."""

    tally: Tally
    drains: int = 0
    badly: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0

    def figures(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        return {
            "drains": self.drains,
            "ended_badly": self.badly.total(),
            "longest_s": round(self.longest_s, 1),
            "requests": self.tally.requests,
            "failed_requests": self.tally.failures.total(),
            "streams": self.tally.streams,
            "cut_streams": self.tally.cut.total(),
            "failures": dict(self.tally.failures + self.tally.cut + self.badly),
        }


async def played(scenario: Scenario, drains: int, stream_s: float = STREAM_S, at_once: int = AT_ONCE) -> Outcome:
    """Return the outcome of a scenario with so many drains."""
    outcome = Outcome(Tally())
    async with _fleet() as fleet:
        await fleet.start(STAYING)
        async with _running(scenario.clients(ShortRequests(fleet.service, outcome.tally, drains))):
            while outcome.drains < drains:
                leaving = await fleet.start(min(at_once, drains - outcome.drains))
                async with _streaming(fleet, outcome.tally, stream_s if scenario.streams else 0.0):
                    await asyncio.sleep(_SETTLE_S)
                    await asyncio.gather(*(_drain(fleet.service, pod, scenario, outcome) for pod in leaving))
    return outcome


async def _drain(service: Service, pod: Pod, scenario: Scenario, outcome: Outcome) -> None:
    """End a Pod, and take its address from the Service late. In a scale-down its models are unloaded first, as long
    after requests are no longer routed to them as the operator waits.
    """
    begun = time.monotonic()
    removing = asyncio.get_running_loop().call_later(scenario.delay_s, service.remove, pod.ports)
    if scenario.unloads:
        await asyncio.sleep(DRAIN_PERIOD.total_seconds())
        await pod.drop_models()
    outcome.badly.update(await pod.terminate())
    outcome.drains += 1
    outcome.longest_s = max(outcome.longest_s, time.monotonic() - begun)
    if not removing.cancelled():
        await asyncio.sleep(max(0.0, removing.when() - asyncio.get_running_loop().time()))


class _Fleet:
    """Servers behind one Service."""

    def __init__(self, folder: Path, service: Service) -> None:
        self.service = service
        self.pods: list[Pod] = []
        self._folder = folder

    async def start(self, count: int) -> list[Pod]:
        """Start servers, and add them to the Service once they are ready."""
        folders = [self._folder / f"pod-{len(self.pods) + number}" for number in range(count)]
        started = [Pod(folder) for folder in folders]
        self.pods += started
        await asyncio.gather(*(pod.start() for pod in started))
        for pod in started:
            self.service.add(pod.ports)
        return started


@asynccontextmanager
async def _fleet() -> AsyncIterator[_Fleet]:
    with tempfile.TemporaryDirectory(prefix="argosy-drain-", ignore_cleanup_errors=True) as folder:
        async with services.opened() as service:
            fleet = _Fleet(Path(folder), service)
            try:
                yield fleet
            finally:
                await asyncio.gather(*(pod.killed() for pod in fleet.pods))


@asynccontextmanager
async def _running(clients: Sequence[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run clients while the block runs."""
    tasks = [asyncio.create_task(client) for client in clients]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _streaming(fleet: _Fleet, tally: Tally, seconds: float) -> AsyncIterator[None]:
    """Begin streams of so many seconds on every server before the block, and read them to their end after it."""
    streams = LongStreams(fleet.service, tally, round(seconds / TOKEN_S))
    count = STAYING + AT_ONCE if seconds else 0
    reading = [asyncio.create_task(streams.read_all(_PATIENCE_S)) for _ in range(count)]
    yield
    await asyncio.gather(*reading)


async def measured(drains: int) -> dict[str, Any]:
    """Return the figures of so many drains, divided among the scenarios."""
    free = asyncio.Semaphore(PLAYED_AT_ONCE)

    async def play(name: str, share: int) -> dict[str, Any]:
        async with free:
            figures = (await played(SCENARIOS[name], share)).figures()
        # The others may take minutes more.
        print(f"{name}: {figures}", file=sys.stderr, flush=True)
        return figures

    shares = {name: (drains + number) // len(SCENARIOS) for number, name in enumerate(SCENARIOS)}
    names = [name for name, share in shares.items() if share]
    outcomes = await asyncio.gather(*(play(name, shares[name]) for name in names))
    figures = dict(zip(names, outcomes, strict=True))
    return {
        "drains": sum(one["drains"] for one in figures.values()),
        "failed_requests_of_drains": sum(one["failed_requests"] for one in figures.values()),
        "cut_streams": sum(one["cut_streams"] for one in figures.values()),
        "drain_scenarios": figures,
    }
