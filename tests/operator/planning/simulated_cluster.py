"""A cluster in virtual time: servers come up, agents load what they are told after a while, fail, and die."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import ConditionType, Resource
from argosy.api.values.identity import PoolKey
from argosy.api.values.reuse import RoundCache
from argosy.planning.facts import Device, Node, ServerReport
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.reconcile import RoundOutcome, reconcile
from argosy.render.repositories import RenderedServer
from argosy.render.workloads.configmaps import parse_served, served_text
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract import FailureKind, LoadedModel, LoadState, RenderedModel, RenderedRepository, in_load_order
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER

POOL = PoolKey("default/p")
START = datetime(2026, 1, 1, tzinfo=UTC)
SOON = timedelta(seconds=30)
"""What is due later is no change that is under way, as drains are: the search of a consolidation."""
ECC = "CUDA error: uncorrectable ECC error encountered"


@dataclass
class SimulatedServer:
    """One Pod: its node and GPUs, what it has loaded, its desired repository, its routes, and when it is up.

    `former` is the revision that goes on serving until the other one is loaded, at `done_at`.
    """

    step: RenderedServer
    up_at: datetime
    loaded: dict[str, RenderedModel] = field(default_factory=dict)
    routes: frozenset[str] = frozenset()
    done_at: datetime = START
    former: RenderedModel | None = None

    def slot(self) -> tuple[str, tuple[int, ...]]:
        """Return node and GPUs: a Pod with others is another Pod."""
        return self.step.plan.node, self.step.plan.gpus


@dataclass
class Cluster:
    """One pool's cluster.

    `refuses` are versions that never load, `crashes` those that load and end with every request; nothing loads on
    a `broken` GPU, and a load there is tried again every 20 seconds. `slow` is how long
    one change takes, `replaced` are the Pods that had to be started again with other GPUs in the last round. While
    `frozen`, routes stay as they are; Pods that are `unlabelled` get none, and those that are `unready` take no
    requests. `moved` is what another pool is to serve, and whether it is reached there. `noted` is what each server
    served when it was last heard of.
    """

    nodes: tuple[Node, ...]
    slow: timedelta = timedelta(seconds=3)
    refuses: frozenset[tuple[str, int]] = frozenset()
    crashes: frozenset[tuple[str, int]] = frozenset()
    broken: frozenset[Device] = frozenset()
    now: datetime = START
    servers: dict[str, SimulatedServer] = field(default_factory=dict)
    snapshot: FleetSnapshot = field(default_factory=lambda: FleetSnapshot((), ()))
    outcome: RoundOutcome | None = None
    replaced: frozenset[str] = frozenset()
    frozen: bool = False
    noted: dict[str, RenderedRepository] = field(default_factory=dict)
    unlabelled: frozenset[str] = frozenset()
    unready: frozenset[str] = frozenset()
    moved: dict[str, bool] = field(default_factory=dict)
    cache: RoundCache = field(default_factory=RoundCache)

    def tick(self, resources: Sequence[Resource], seconds: float = 1) -> RoundOutcome:
        """Run one round, and let the servers act on it in that time."""
        pool = replace(
            self.snapshot.pool(POOL),
            reports=tuple(self._report(name) for name in self.servers),
            repositories=tuple(self._repository(name) for name in self.servers),
            served=tuple(self.noted.values()),
            moved=self.moved,
        )
        snapshot = replace(self.snapshot, resources=tuple(resources), nodes=self.nodes, pools={POOL: pool})
        outcome = self._reconciled(snapshot)
        self.snapshot = outcome.after(snapshot)
        self._apply(outcome.steps.get(POOL, ()))
        self.now += timedelta(seconds=seconds)
        for server in self.servers.values():
            self._work(server)
        self.outcome = outcome
        return outcome

    def _reconciled(self, snapshot: FleetSnapshot) -> RoundOutcome:
        return reconcile(snapshot, self.now, cache=self.cache)

    def settle(self, resources: Sequence[Resource], rounds: int = 400) -> RoundOutcome:
        """Run rounds until neither the servers nor the decisions change for a while, and nothing is due soon."""
        idle = timedelta()
        for _ in range(rounds):
            before = self._state()
            outcome = self.tick(resources)
            due = outcome.wake is not None and outcome.wake < self.now + SOON
            same = self._state() == before and not due
            idle = idle + timedelta(seconds=1) if same else timedelta()
            if idle > 2 * self.slow:
                return outcome
        raise AssertionError(f"it does not settle: {self._state()}")

    def lose(self, node: str) -> None:
        """Remove a node and all on it."""
        self.nodes = tuple(item for item in self.nodes if item.name != node)
        self.servers = {name: server for name, server in self.servers.items() if server.step.plan.node != node}

    def forget(self) -> None:
        """Restart the operator: what it did not write down is lost."""
        recorded = {name: RolloutMemory(revisions=memory.revisions) for name, memory in self.snapshot.rollouts.items()}
        self.snapshot = replace(self.snapshot, valid={}, rollouts=recorded, evidence={})

    def restart(self, name: str) -> None:
        """Replace a server's Pod."""
        self.servers[name] = SimulatedServer(self.servers[name].step, self.now + self.slow)

    def keep_routed(self, resources: Sequence[Resource], names: Iterable[str], rounds: int = 80) -> None:
        """Run rounds until all is settled; in each some server that was routed before stays routed, for each name."""
        for _ in range(rounds):
            before = self.routed()
            self.tick(resources)
            after = self.routed()
            assert all(before[name] & after[name] for name in names)  # endpoints follow in no order
        self.settle(resources)

    def message(self, name: str, kind: ConditionType = ConditionType.LOADED) -> str:
        """Return the reason and message of a condition of a model, or of the resource of an identity."""
        assert self.outcome is not None
        identity = name if " " in name else f"InferenceModel default/{name}"
        condition = self.outcome.statuses[identity].condition(kind)
        assert condition is not None
        return f"{condition.reason}: {condition.message}"

    def routed(self) -> dict[str, set[str]]:
        """Return the servers on which each name is reached now: routed there, and answering."""
        result: dict[str, set[str]] = {}
        for name, server in self.servers.items():
            for model in server.routes if name not in self.unready else ():
                if self._answers(server, model):
                    result.setdefault(model, set()).add(name)
        return result

    def serving(self) -> dict[str, set[str]]:
        """Return the servers on which each name is loaded."""
        result: dict[str, set[str]] = {}
        for name, server in self.servers.items():
            for model in server.loaded:
                if self._answers(server, model):
                    result.setdefault(model, set()).add(name)
        return result

    def overcommitted(self, memory: Mapping[tuple[str, int], int]) -> list[str]:
        """Return GPUs whose loaded models take more than there is, by what each version takes."""
        result = []
        for name, server in self.servers.items():
            gpus = {
                gpu.index: gpu.memory for node in self.nodes if node.name == server.step.plan.node for gpu in node.gpus
            }
            used: dict[int, int] = {}
            both = [server.former] if server.former is not None and self.now < server.done_at else []
            for model in [*server.loaded.values(), *both]:
                for gpu in _gpus(model, server.step.plan.gpus):
                    used[gpu] = used.get(gpu, 0) + sum(memory.get((model.name, v), 0) for v in model.versions)
            result += [f"{name} GPU {gpu}" for gpu, size in used.items() if size > gpus.get(gpu, size)]
        return result

    def _apply(self, steps: Iterable[RenderedServer]) -> None:
        desired = {step.plan.name: step for step in steps}
        self.noted = {name: parse_served(served_text(step.served), step.repository) for name, step in desired.items()}
        self.replaced = frozenset()
        self.servers = {name: server for name, server in self.servers.items() if name in desired}
        for name, step in desired.items():
            server = self.servers.get(name)
            if server is None or server.slot() != (step.plan.node, step.plan.gpus):
                self.replaced |= {name} if server else set()
                self.servers[name] = SimulatedServer(step, self.now + self.slow)
            else:
                server.step = step
            if not self.frozen and name not in self.unlabelled:
                self.servers[name].routes = step.routes

    def _work(self, server: SimulatedServer) -> None:
        """Make one change at a time: models before the ensembles that use them, and these first when something is
        unloaded.
        """
        if self.now < max(server.up_at, server.done_at):
            return
        desired = {model.name: model for model in server.step.repository.models}
        used = {step for model in server.loaded.values() for step in model.needs}
        gone = [name for name in sorted(server.loaded) if name not in desired and name not in used]
        if gone:
            del server.loaded[gone[0]]
            server.done_at = self.now + self.slow
            return
        for desired_value in in_load_order(tuple(desired.values())):
            model = desired_value if desired_value.name in server.loaded else self._what_loads(desired_value)
            refused = any((model.name, version) in self.refuses for version in model.versions)
            has_steps = all(
                step in server.loaded and at in server.loaded[step].versions
                for version in model.versions
                for step, at in model.steps_of(version).items()
            )
            before = server.loaded.get(model.name)
            if before is not None and (before.serves_like(model) or _divides_otherwise(before, model)):
                server.loaded[model.name] = model  # at most another size or other weights: the server loads nothing
            elif not refused and has_steps and not self._on_broken(server, model):
                server.former = _replaced(before, model)
                server.loaded[model.name] = model
                server.done_at = self.now + self.slow
                return

    def _what_loads(self, model: RenderedModel) -> RenderedModel:
        """Return the model without its newest version where nothing of it is loaded and all of it is refused."""
        if not any((model.name, version) in self.refuses for version in model.versions):
            return model
        older = {version: source for version, source in model.versions.items() if version < max(model.versions)}
        return replace(model, versions=older) if older else model

    def _answers(self, server: SimulatedServer, name: str) -> bool:
        return self.now >= server.up_at and name in {item.declared_name for item in server.loaded.values()}

    def _report(self, name: str) -> ServerReport:
        server = self.servers[name]
        up = self.now >= server.up_at
        models = [self._loaded(model, version) for model in server.loaded.values() for version in model.versions]
        failed = [
            LoadedModel(model.declared_name, version, LoadState.UNAVAILABLE, "does not load")
            for model in server.step.repository.models
            for version in model.versions
            if (model.name, version) in self.refuses
        ]
        attempts = int((self.now - server.up_at).total_seconds() // 20) + 1
        failed += [
            LoadedModel(model.declared_name, version, LoadState.UNAVAILABLE, ECC, FailureKind.DEVICE, attempts=attempts)
            for model in server.step.repository.models
            for version in model.versions
            if model.name not in server.loaded and self._on_broken(server, model)
        ]
        reported = tuple(models + failed) if up else ()
        takes = up and name not in self.unready
        return ServerReport(
            name, up, reported, f"http://{name}", settled=up, takes_requests=takes, routes=server.routes
        )

    def _on_broken(self, server: SimulatedServer, model: RenderedModel) -> bool:
        node, gpus = server.slot()
        return any((node, gpu) in self.broken for gpu in _gpus(model, gpus))

    def _loaded(self, model: RenderedModel, version: int) -> LoadedModel:
        if (model.name, version) in self.crashes:
            return LoadedModel(model.declared_name, version, LoadState.UNAVAILABLE, "it ends", FailureKind.CRASH)
        return LoadedModel(model.declared_name, version, LoadState.READY)

    def _repository(self, name: str) -> RenderedRepository:
        return RenderedRepository(name, tuple(self.servers[name].loaded.values()))

    def _state(self) -> object:
        return {
            name: (
                server.step.plan,
                server.step.repository,
                server.step.routes,
                server.step.draining,
                dict(server.loaded),
            )
            for name, server in self.servers.items()
        }


def _divides_otherwise(before: RenderedModel, after: RenderedModel) -> bool:
    """Return whether nothing of a model changes but how requests are divided among its versions."""
    return (
        after.changes_live(before)
        and before.serves_like(replace(after, config_text=before.config_text))
        and (_loaded_text(before) == _loaded_text(after))
    )


def _loaded_text(model: RenderedModel) -> str:
    config = text_format.Parse(model.config_text, ModelConfig())
    config.parameters.pop(PARAMETER, None)
    return str(config)


def _replaced(before: RenderedModel | None, after: RenderedModel) -> RenderedModel | None:
    """Return the versions that are reloaded with another configuration or source, and stay loaded until then."""
    if before is None:
        return None
    revisions = [
        re.sub(r"version_policy \{.*?\n\}\n", "", _loaded_text(item), flags=re.DOTALL) for item in (before, after)
    ]
    again = {
        version: source
        for version, source in before.versions.items()
        if version in after.versions and (revisions[0] != revisions[1] or source.files != after.versions[version].files)
    }
    return replace(before, versions=again)


def _gpus(model: RenderedModel, gpus: tuple[int, ...]) -> list[int]:
    """Return the node's GPUs on which a model is placed."""
    return [gpus[index] for index in model.gpus]
