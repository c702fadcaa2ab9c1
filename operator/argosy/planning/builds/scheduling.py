"""Which builds run now, and on which GPUs: of those that servers and everybody else leave free.

A build that runs keeps its place. The others begin in turn: each model's first, then each model's second; of these the
oldest model's. On CPUs, where builds run beside servers and nobody counts cores, a pool has two at once: each takes all
the cores that it can get, and memory for two copies of a model.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.api.inferencemodel import InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.planning.amounts import counted
from argosy.planning.builds.engines import AskedEngine
from argosy.planning.builds.observed import JobState, ObservedBuild
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.facts import CurrentServer, Device, Gpu, Node
from argosy.planning.nodes.reservations import devices

CPU_BUILDS = 2
"""Builds on CPUs that a pool has at once."""
_SUSPENDED = "the pool is suspended; set its spec.suspend to false"
_NOT_ALLOWED = "the pool does not allow builds in this image; add it to its spec.builds.allowedImages"
_Asked = tuple[InferenceModel, AskedEngine]


def withhold(
    nodes: Iterable[Node], builds: Iterable[ObservedBuild], servers: Iterable[CurrentServer]
) -> tuple[Node, ...]:
    """Return the nodes, on which the GPUs that running builds hold say so. Servers keep what they have."""
    running = [each for each in builds if each.job is JobState.ACTIVE and not each.is_over and not each.counted]
    served = devices(servers) if running else set()
    held = {(each.node, gpu): each.name for each in running for gpu in each.gpus if (each.node, gpu) not in served}
    return tuple(replace(node, gpus=tuple(_withheld(node, gpu, held) for gpu in node.gpus)) for node in nodes)


def _withheld(node: Node, gpu: Gpu, held: Mapping[Device, str]) -> Gpu:
    build = held.get((node.name, gpu.index))
    if build is None or gpu.is_cpu or (gpu.withheld_by and not gpu.reclaimable):
        return gpu
    return replace(gpu, withheld_by=held_by(build), reclaimable=False)


def held_by(build: str) -> str:
    """Return what a GPU says of the build that holds it."""
    return f"build {build}"


def plan_builds(
    engines: Mapping[PoolKey, PoolEngines], taken: Collection[Device]
) -> dict[PoolKey, tuple[PlannedBuild, ...]]:
    """Return the builds that each pool's models ask for, by name. None gets a GPU that is `taken`, and no two get the
    same.
    """
    scheduler = _Scheduler(set(taken))
    return {key: scheduler.planned(each) for key, each in sorted(engines.items())}


@dataclass(slots=True)
class _Scheduler:
    """Gives out what is left, to the builds of one pool after the other. `taken`: GPUs that are not to be had."""

    taken: set[Device]

    def planned(self, engines: PoolEngines) -> tuple[PlannedBuild, ...]:
        asked: dict[str, list[_Asked]] = {}
        for each in engines.asked:
            asked.setdefault(each[1].name, []).append(each)
        found = {name: _planned(owners) for name, owners in asked.items()}
        if engines.facts.pool.spec.suspend:
            return tuple(_stopped(found[name], _SUSPENDED) for name in sorted(found))
        refused = {name: _stopped(each, _NOT_ALLOWED) for name, each in found.items() if not _is_allowed(each, engines)}
        found |= refused
        running = {
            name: each for name, each in found.items() if each.start and self._stands(each, asked[name], engines)
        }
        waiting = [
            name for name, each in found.items() if not each.is_over and name not in running.keys() | refused.keys()
        ]
        turns = _turns(engines.asked, running)
        cpu_slots = CPU_BUILDS - sum(not each.gpus for each in running.values())
        for name in sorted(waiting, key=lambda name: turns[name]):
            found[name] = self._begun(replace(found[name], start=False, node="", gpus=()), engines, cpu_slots)
            cpu_slots -= found[name].start and not found[name].gpus
        return tuple(found[name] for name in sorted(found))

    def _stands(self, build: PlannedBuild, asked: Sequence[_Asked], engines: PoolEngines) -> bool:
        """Whether what a build is bound to is there for it: not where somebody took its GPUs before it had them."""
        node = engines.facts.nodes.by_name.get(build.node)
        if not build.gpus or (node is not None and asked[0][1].build.counted):
            return True
        others = {gpu.index for gpu in node.gpus if gpu.withheld_by not in ("", held_by(build.name))} if node else set()
        return node is not None and not any(gpu in others or (build.node, gpu) in self.taken for gpu in build.gpus)

    def _begun(self, build: PlannedBuild, engines: PoolEngines, cpu_slots: int) -> PlannedBuild:
        """The build where it may run now, or what it waits for."""
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
        """The node's GPUs that nobody has."""
        free = (gpu.index for gpu in node.gpus if not gpu.is_cpu and not gpu.withheld_by)
        return tuple(gpu for gpu in free if (node.name, gpu) not in self.taken)

    def _why(self, build: PlannedBuild, nodes: Sequence[Node], free: Mapping[str, tuple[int, ...]]) -> str:
        """The numbers of what there is, and the way out."""
        gpus = [(node, gpu) for node in nodes for gpu in node.gpus if not gpu.is_cpu]
        others = sum(bool(gpu.withheld_by) for _, gpu in gpus)
        most = max(map(len, free.values()), default=0)
        left = sum(map(len, free.values()))
        return (
            f"it needs {counted(build.request.gpus, 'GPU')} of compute capability {build.request.architecture} on one "
            f"node, and {most} can be had: of the pool's {len(gpus)} servers hold {len(gpus) - others - left}, others "
            f"{others}. A build takes nothing from what serves: remove or shrink a model for as long as it runs, or "
            "add a GPU"
        )


def _planned(asked: Sequence[_Asked]) -> PlannedBuild:
    """A build with what all its models ask of it; where it runs, it goes on there."""
    build, request = asked[0][1].build, asked[0][1].request
    engines = [model.spec.engine for model, _ in asked if model.spec.engine is not None]
    runs = build.job is JobState.ACTIVE and not build.is_over
    return PlannedBuild(
        request=request,
        owners=tuple(sorted({model.identity for model, _ in asked})),
        timeout=max(each.timeout for each in engines),
        memory=max((each.memory for each in engines if each.memory is not None), default=None),
        start=runs,
        node=build.node if runs and request.gpus else "",
        gpus=(build.gpus or tuple(range(request.gpus))) if runs else (),
        is_over=build.is_over,
    )


def _stopped(build: PlannedBuild, why: str) -> PlannedBuild:
    """The same, which is not to run."""
    return build if build.is_over else replace(build, start=False, node="", gpus=(), waits=why)


def _is_allowed(build: PlannedBuild, engines: PoolEngines) -> bool:
    """Whether its image is the release's, or one that the pool allows: an invalid model never gets here, its Job must
    not either.
    """
    return build.image == engines.facts.image or engines.facts.pool.spec.allows_build_in(build.image)


def _turns(asked: Iterable[_Asked], running: Mapping[str, PlannedBuild]) -> dict[str, tuple[int, str, str]]:
    """When it is each build's turn: by how many of its model's are before it, then by the model's age."""
    of_models: dict[str, list[_Asked]] = {}
    for each in asked:
        if not each[1].build.is_over:
            of_models.setdefault(each[0].identity, []).append(each)
    found: dict[str, tuple[int, str, str]] = {}
    for model, name, rank in _ranked(of_models.values(), running):
        turn = rank, model.metadata.creation_timestamp or "~", model.name
        found[name] = min(turn, found.get(name, turn))
    return found


def _ranked(
    of_models: Iterable[Sequence[_Asked]], running: Mapping[str, PlannedBuild]
) -> Iterator[tuple[InferenceModel, str, int]]:
    """Each model's builds with their ranks: those that run, and then by version and architecture."""
    for asked in of_models:
        names = {(each.name not in running, each.version, each.name) for _, each in asked}
        for rank, (_, _, name) in enumerate(sorted(names)):
            yield asked[0][0], name, rank
