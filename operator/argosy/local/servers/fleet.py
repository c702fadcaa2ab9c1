"""All servers of this machine, converged to the plan."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from argosy.api.values.identity import PoolKey
from argosy.local.process import LocalProcess, stop
from argosy.local.state import StateFolder
from argosy.local.views.rows import ServerRow
from argosy.planning.facts import CurrentServer, Need, Node, ServerReport
from argosy.planning.plan import ServerPlan
from argosy.reconcile import RoundOutcome
from argosy_agent.cache.storage import Storage
from argosy_agent.contract import RenderedRepository
from argosy_agent.jsonfiles import read_json, write_json
from argosy_agent.sync.control import Tally

from .managed import ManagedServer
from .ports import Ports, next_free
from .server import EXIT_TIMEOUT_S, PROGRAM, Command, ServerSettings, left_ports

Key = tuple[PoolKey, str]
"""Pool and server."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the first server listens. Others take the next free ports."""

    host: str
    ports: Ports


class LocalFleet:
    """Starts, converges and stops servers. Times are seconds of a monotonic clock."""

    def __init__(
        self, state: StateFolder, node: Node, listening: Listening, program: tuple[str, ...] = PROGRAM
    ) -> None:
        self._state, self._node, self._listening, self._program = state, node, listening, program
        self._storage = Storage(state.cache)
        self._servers: dict[Key, ManagedServer] = {}
        self._assigned: dict[Key, Ports] = {}
        self._swept = False

    @property
    def busy(self) -> bool:
        """Whether a server starts, or a model is fetched or loaded."""
        return any(server.agent.busy or not (server.live or server.error) for server in self._servers.values())

    @property
    def progressing(self) -> bool:
        """Whether an operation is in progress that has not failed before."""
        return any(s.agent.progressing or not (s.live or s.error) for s in self._servers.values())

    @property
    def failing(self) -> bool:
        """Whether a server does not run, or a model does not load."""
        return any(server.error or server.agent.ledger.failures for server in self._servers.values())

    def restored(self) -> dict[PoolKey, tuple[CurrentServer, ...]]:
        """Return the servers of the last plan by pool: they may still run, and keep their GPUs."""
        record = read_json(self._state.root / "plan.json") or {}
        return {PoolKey(pool): tuple(map(_current, servers)) for pool, servers in record.items()}

    async def observe(self, now: float) -> dict[PoolKey, list[ServerReport]]:
        """Start servers that do not run. Return the reports of all by pool. Raises ListenError."""
        for server in self._servers.values():
            await server.keep(now)
        reports: dict[PoolKey, list[ServerReport]] = {}
        observed = await asyncio.gather(*(server.observe(now) for server in self._servers.values()))
        for (pool, _), report in zip(self._servers, observed, strict=True):
            reports.setdefault(pool, []).append(report)
        return reports

    async def converge(self, outcome: RoundOutcome, settings: Mapping[str, ServerSettings], now: float) -> None:
        """Take one step towards the plan. `settings` are by pool key.

        Raises ListenError where a server's ports are in use.
        """
        steps = {(pool, step.plan.name): step for pool, of_pool in outcome.steps.items() for step in of_pool}
        plans = {key: step.plan for key, step in steps.items()}
        commands = {
            key: self._command(key, plan, settings.get(key[0], ServerSettings())) for key, plan in plans.items()
        }
        await self._retire(commands)
        for key, command in commands.items():
            if key not in self._servers:
                self._servers[key] = self._managed(key, command)
                await self._servers[key].keep(now)
        for key, step in steps.items():
            await self._servers[key].aim(step.repository)
        # Before anything is fetched, so that no model that is served is evicted from the cache.
        self._storage.keep(self._served_keys())
        for server in self._servers.values():
            server.converge()

    def loaded(self) -> dict[PoolKey, list[RenderedRepository]]:
        """Return the models that each server has loaded, by pool."""
        repositories: dict[PoolKey, list[RenderedRepository]] = {}
        for (pool, name), server in self._servers.items():
            models = tuple(target.model for target in server.agent.ledger.applied.values())
            repositories.setdefault(pool, []).append(RenderedRepository(name, models))
        return repositories

    def doing(self) -> dict[str, str]:
        """Return the operations in progress by model."""
        ledgers = [server.agent.ledger for server in self._servers.values()]
        return {model: operation for ledger in ledgers for model, operation in ledger.doing.items()}

    async def tallies(self) -> dict[str, tuple[Tally, ...]]:
        """Return the tallies of models by server."""
        every = await asyncio.gather(*(server.tallies() for server in self._servers.values()))
        return {f"{pool}/{name}": tallies for (pool, name), tallies in zip(self._servers, every, strict=True)}

    def metrics_urls(self) -> dict[PoolKey, dict[str, str]]:
        """Return the URLs of servers' metrics by pool and name."""
        urls: dict[PoolKey, dict[str, str]] = {}
        for (pool, name), server in self._servers.items():
            urls.setdefault(pool, {})[name] = self._metrics_url(server)
        return urls

    def _metrics_url(self, server: ManagedServer) -> str:
        return f"http://{self._listening.host}:{server.command.ports.metrics}/metrics"

    def rows(self) -> list[ServerRow]:
        """Return a row for each server."""
        host = self._listening.host
        return [
            ServerRow(
                server.name,
                server.url,
                f"{host}:{server.command.ports.grpc}",
                self._metrics_url(server),
                server.live,
                server.error,
            )
            for server in self._servers.values()
        ]

    async def stop(self) -> None:
        """Drain and stop all servers concurrently."""
        self._storage.stop()
        await asyncio.gather(*(server.stop() for server in self._servers.values()))
        self._servers.clear()

    def kill(self) -> None:
        """Kill every server."""
        for server in self._servers.values():
            server.kill()

    async def _retire(self, commands: Mapping[Key, Command]) -> None:
        """Stop servers without a command or with another one; once, also those of an earlier `argosy up`."""
        for key, server in list(self._servers.items()):
            if server.command != commands.get(key):
                await server.stop()
                del self._servers[key]
        if self._swept:
            return
        self._swept = True
        desired = {self._folder(key).name for key in commands}
        for folder in self._state.servers.iterdir():
            left = LocalProcess.left(folder) if folder.name not in desired else None
            if left is not None:
                await asyncio.to_thread(stop, left, EXIT_TIMEOUT_S)

    def _managed(self, key: Key, command: Command) -> ManagedServer:
        return ManagedServer(key[1], command, self._folder(key), self._storage)

    def _command(self, key: Key, plan: ServerPlan, settings: ServerSettings) -> Command:
        folder = self._folder(key)
        folder.mkdir(parents=True, exist_ok=True)
        return Command(
            repository=folder / "repository",
            host=self._listening.host,
            ports=self._ports(key),
            devices=self._devices(plan),
            settings=settings,
            program=self._program,
        )

    def _folder(self, key: Key) -> Path:
        namespace = key[0].namespace
        name = key[1] if namespace == "default" else f"{namespace}.{key[1]}"
        return self._state.server(name)

    def _ports(self, key: Key) -> Ports:
        """Return the server's ports: those assigned before, or for the first server those of the flags."""
        if key not in self._assigned:
            first = self._listening.ports
            taken = {port for ports in self._assigned.values() for port in ports.flags().values()}
            left = left_ports(self._folder(key)) if self._assigned else first
            fresh = left if left is not None and not taken & set(left.flags().values()) else None
            self._assigned[key] = fresh or next_free(self._listening.host, first, taken)
        return self._assigned[key]

    def _devices(self, plan: ServerPlan) -> tuple[str, ...]:
        uuids = {gpu.index: gpu.uuid for gpu in self._node.gpus}
        return tuple(uuids[gpu] or str(gpu) for gpu in plan.gpus)

    def _served_keys(self) -> set[str]:
        return {key for server in self._servers.values() for key in server.agent.ledger.cache_keys()}

    def record(self, outcome: RoundOutcome) -> None:
        """Write the plan for the next `argosy up`. Raises OSError."""
        record = {str(pool): [_plain(server) for server in outcome.servers(pool)] for pool in outcome.steps}
        if record != read_json(self._state.root / "plan.json"):
            write_json(self._state.root / "plan.json", record)


def _plain(server: CurrentServer) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(asdict(server)))
    return plain


def _current(record: Mapping[str, Any]) -> CurrentServer:
    placed = {model: tuple(gpus) for model, gpus in record["placed"].items()}
    needs = {model: Need(**need) for model, need in record.get("needs", {}).items()}
    return CurrentServer(record["name"], record["node"], tuple(record["gpus"]), placed, needs)
