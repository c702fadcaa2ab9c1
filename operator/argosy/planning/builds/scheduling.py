"""Schedules builds: decides which run now, and on which GPUs that servers and other Pods leave free.

A running build keeps its GPUs. The others start in turn: each model's first build, then each model's second, older
models first. On CPUs, where builds share cores with servers, a pool runs two at a time: each uses all the cores that it
can get, and memory for two copies of a model.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.api.inferencemodel import InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.planning.amounts import quantity
from argosy.planning.builds.build import JobState, ObservedBuild, ScheduledBuild
from argosy.planning.builds.engines import RequestedEngine
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.facts import CurrentServer, Device, Gpu, Node
from argosy.planning.nodes.holders import build_holder, is_held
from argosy.planning.nodes.reservations import devices
from argosy.planning.nodes.slices import is_slice
from argosy.planning.variants import declared_identity

CPU_BUILDS = 2
"""Builds on CPUs that a pool has at once."""
_SUSPENDED = "the pool is suspended; set its spec.suspend to false"
_NOT_ALLOWED = "the pool does not allow builds in this image; add it to its spec.builds.allowedImages"
_Request = tuple[InferenceModel, RequestedEngine]


def withhold(
    nodes: Iterable[Node], builds: Iterable[ObservedBuild], servers: Iterable[CurrentServer]
) -> tuple[Node, ...]:
    """Return the nodes with the GPUs of running builds withheld. Servers keep what they have."""
    running = [build for build in builds if build.job is JobState.ACTIVE and not build.is_over and not build.withheld]
    served = devices(servers) if running else set()
    builds_on = {
        (build.node, gpu): build.name for build in running for gpu in build.gpus if (build.node, gpu) not in served
    }
    if not builds_on:
        return tuple(nodes)
    return tuple(replace(node, gpus=tuple(_withheld(node, gpu, builds_on) for gpu in node.gpus)) for node in nodes)


def _withheld(node: Node, gpu: Gpu, builds_on: Mapping[Device, str]) -> Gpu:
    build = builds_on.get((node.name, gpu.index))
    if build is None or gpu.is_cpu or (gpu.withheld_by and not gpu.reclaimable):
        return gpu
    return replace(gpu, withheld_by=build_holder(build), reclaimable=False)


def schedule_builds(
    engines: Mapping[PoolKey, PoolEngines], taken: Collection[Device]
) -> dict[PoolKey, tuple[ScheduledBuild, ...]]:
    """Return the builds that each pool's models request, by name.

    None gets a GPU that is `taken`, and no two get the same.
    """
    scheduler = _Scheduler(set(taken))
    return {key: scheduler.planned(of_pool) for key, of_pool in sorted(engines.items())}


@dataclass(slots=True)
class _Scheduler:
    """Assigns free GPUs to the builds of one pool after another. `taken`: GPUs that are not available."""

    taken: set[Device]

    def planned(self, engines: PoolEngines) -> tuple[ScheduledBuild, ...]:
        requested: dict[str, list[_Request]] = {}
        for request in engines.requested:
            requested.setdefault(request[1].name, []).append(request)
        planned = {name: _planned(owners) for name, owners in requested.items()}
        if engines.facts.pool.spec.suspend:
            return tuple(_stopped(planned[name], _SUSPENDED) for name in sorted(planned))
        refused = {
            name: _stopped(build, _NOT_ALLOWED) for name, build in planned.items() if not _is_allowed(build, engines)
        }
        planned |= refused
        running = {
            name: build
            for name, build in planned.items()
            if build.start and self._stands(build, requested[name], engines)
        }
        waiting = [
            name for name, build in planned.items() if not build.is_over and name not in running.keys() | refused.keys()
        ]
        turns = _turns(engines.requested, running)
        cpu_slots = CPU_BUILDS - sum(not build.gpus for build in running.values())
        for name in sorted(waiting, key=lambda name: turns[name]):
            planned[name] = self._begun(replace(planned[name], start=False, node="", gpus=()), engines, cpu_slots)
            cpu_slots -= planned[name].start and not planned[name].gpus
        return tuple(planned[name] for name in sorted(planned))

    def _stands(self, build: ScheduledBuild, requested: Sequence[_Request], engines: PoolEngines) -> bool:
        """Return whether a build still has its GPUs: not where another holder took them before it started."""
        node = engines.facts.nodes.by_name.get(build.node)
        if not build.gpus or (node is not None and requested[0][1].build.withheld):
            return True
        others = (
            {gpu.index for gpu in node.gpus if gpu.withheld_by not in ("", build_holder(build.name))} if node else set()
        )
        return node is not None and not any(gpu in others or (build.node, gpu) in self.taken for gpu in build.gpus)

    def _begun(self, build: ScheduledBuild, engines: PoolEngines, cpu_slots: int) -> ScheduledBuild:
        """Return the build with GPUs where it may run now, or with what it waits for."""
        if not build.request.gpus:
            waits = f"{CPU_BUILDS} builds run at once on a pool's CPUs, and it is not its turn yet"
            return replace(build, start=True) if cpu_slots > 0 else replace(build, waits=waits)
        nodes = [node for node in engines.facts.nodes.selected if node.compute_capability == build.request.architecture]
        free = {node.name: self._free(node) for node in nodes if node.schedulable}
        able = [(len(gpus), name) for name, gpus in free.items() if len(gpus) >= build.request.gpus]
        if not able:
            return replace(build, waits=self._why(build, nodes, free))
        node = min(able)[1]
        gpus = free[node][: build.request.gpus]
        self.taken |= {(node, gpu) for gpu in gpus}
        return replace(build, start=True, node=node, gpus=gpus)

    def _free(self, node: Node) -> tuple[int, ...]:
        """Return the indexes of the node's free whole GPUs."""
        able = (gpu for gpu in node.gpus if not (gpu.is_cpu or gpu.withheld_by or gpu.closed))
        free = (gpu.index for gpu in able if not is_slice(gpu.index))
        return tuple(gpu for gpu in free if (node.name, gpu) not in self.taken)

    def _why(self, build: ScheduledBuild, nodes: Sequence[Node], free: Mapping[str, tuple[int, ...]]) -> str:
        """Return why a build waits: the numbers of GPUs, and the way out."""
        gpus = [(node, gpu) for node in nodes for gpu in node.gpus if not gpu.is_cpu]
        withheld = [gpu.withheld_by for _, gpu in gpus if gpu.withheld_by]
        others = sum(map(is_held, withheld))
        unusable = f", and {len(withheld) - others} cannot be used" if len(withheld) > others else ""
        most = max(map(len, free.values()), default=0)
        left = sum(map(len, free.values()))
        return (
            f"it needs {quantity(build.request.gpus, 'GPU')} of compute capability {build.request.architecture} on one "
            f"node, and {most} can be had: of the pool's {len(gpus)} servers hold {len(gpus) - len(withheld) - left}, "
            f"others {others}{unusable}. A build takes nothing from what serves: remove or shrink a model for as "
            "long as it runs, or add a GPU"
        )


def _planned(requested: Sequence[_Request]) -> ScheduledBuild:
    """Return a build with the requests of all its models; a running one goes on where it is."""
    build, request = requested[0][1].build, requested[0][1].request
    engines = [model.spec.engine for model, _ in requested if model.spec.engine is not None]
    runs = build.job is JobState.ACTIVE and not build.is_over
    return ScheduledBuild(
        request=request,
        owners=tuple(sorted({declared_identity(model) for model, _ in requested})),
        timeout=max(engine.timeout for engine in engines),
        memory=max((engine.memory for engine in engines if engine.memory is not None), default=None),
        start=runs,
        node=build.node if runs and request.gpus else "",
        gpus=(build.gpus or tuple(range(request.gpus))) if runs else (),
        is_over=build.is_over,
    )


def _stopped(build: ScheduledBuild, why: str) -> ScheduledBuild:
    """Return the build as one that does not run, unless it is over."""
    return build if build.is_over else replace(build, start=False, node="", gpus=(), waits=why)


def _is_allowed(build: ScheduledBuild, engines: PoolEngines) -> bool:
    """Return whether the image of a build is one of the release's, or one that the pool allows.

    An invalid model never gets here, and its Job must not either.
    """
    return engines.facts.images.has(build.image) or engines.facts.pool.spec.allows_build_in(build.image)


def _turns(requested: Iterable[_Request], running: Mapping[str, ScheduledBuild]) -> dict[str, tuple[int, str, str]]:
    """Return the turn of each build: the number of its model's builds before it, then the model's age."""
    of_models: dict[str, list[_Request]] = {}
    for request in requested:
        if not request[1].build.is_over:
            of_models.setdefault(request[0].identity, []).append(request)
    turns: dict[str, tuple[int, str, str]] = {}
    for model, name, rank in _ranked(of_models.values(), running):
        turn = rank, model.metadata.creation_timestamp or "~", model.name
        turns[name] = min(turn, turns.get(name, turn))
    return turns


def _ranked(
    of_models: Iterable[Sequence[_Request]], running: Mapping[str, ScheduledBuild]
) -> Iterator[tuple[InferenceModel, str, int]]:
    """Yield each model's builds with their ranks: those that run first, then by version and architecture."""
    for requested in of_models:
        names = {(engine.name not in running, engine.version, engine.name) for _, engine in requested}
        for rank, (_, _, name) in enumerate(sorted(names)):
            yield requested[0][0], name, rank
