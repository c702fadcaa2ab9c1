"""The engines of a pool's models: how each stands, which serve, what waits for one.

An engine that serves is known by the builds' reports, and by the statuses written before: it goes on serving while
another is built for the same request, by a newer image or because its report was lost.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.api.statusparts import EngineStatus
from argosy.planning.builds.architectures import architectures, runs_on_gpu
from argosy.planning.builds.build import JobState, ObservedBuild
from argosy.planning.builds.images import BuildImages
from argosy.planning.builds.requests import requests
from argosy.planning.demand.model_files import EngineFiles
from argosy.planning.nodes.pool_nodes import PoolNodes
from argosy.planning.validation.releases import mismatch
from argosy_agent.contract.builds import BuildRequest, BuildState, digest_of


@dataclass(frozen=True, slots=True)
class RequestedEngine:
    """An engine that one version of a model requests, for one architecture.

    `digest`: of the request, without the image that builds it and the location of its files. `former`: an engine of
    the same digest that serves until this one is ready. `misfit`: why the pool's server cannot open what was built.
    """

    version: int
    request: BuildRequest
    build: ObservedBuild
    digest: str
    former: EngineFiles | None = None
    misfit: str = ""

    @property
    def name(self) -> str:
        """The build's, which is the request's."""
        return self.build.name

    @property
    def architecture(self) -> str:
        """What it is compiled for."""
        return self.request.architecture

    @property
    def state(self) -> BuildState:
        """Where its build is."""
        return self.build.state

    @property
    def is_ready(self) -> bool:
        """Whether it can be served."""
        return self.state is BuildState.READY and not self.misfit

    @property
    def is_begun(self) -> bool:
        """Whether its build was begun, or something serves in its place."""
        return self.former is not None or self.build.report is not None or self.build.job is not JobState.ABSENT

    @property
    def files(self) -> EngineFiles | None:
        """What serves now: the engine, or the former one."""
        report = self.build.report
        if self.is_ready and report is not None:
            return EngineFiles(report.uri, report.digest)
        return self.former


@dataclass(frozen=True, slots=True)
class SpecEngines:
    """All engines that one spec of a model requests."""

    model: InferenceModel
    requested: tuple[RequestedEngine, ...] = ()

    @property
    def architectures(self) -> frozenset[str]:
        """The architectures to build it for."""
        return frozenset(engine.architecture for engine in self.requested)

    @property
    def complete(self) -> frozenset[str]:
        """The architectures on which every declared version can be served."""
        return frozenset(
            architecture
            for architecture in self.architectures
            if len(self._files(architecture)) == len(self.model.spec.declared_versions)
        )

    @property
    def served(self) -> Mapping[str, Mapping[int, EngineFiles]]:
        """The engines to serve, by architecture and version. The same versions are served on every architecture: all
        declared ones if they are built; otherwise those that served before, or those built once no build is pending.
        """
        if self.complete:
            return {architecture: self._files(architecture) for architecture in sorted(self.complete)}
        there = {architecture: self._settled(architecture) for architecture in sorted(self.architectures)}
        most = max(there.values(), key=len, default={}).keys()
        return {
            architecture: {version: files[version] for version in most}
            for architecture, files in there.items()
            if most and most <= files.keys()
        }

    @property
    def effective(self) -> InferenceModel:
        """The model with those of its versions that are served; as it is where none is."""
        versions = {version for files in self.served.values() for version in files}
        spec = self.model.spec
        if not versions or versions == set(spec.declared_versions):
            return self.model
        versions_served = tuple(version for version in spec.versions if version.version in versions)
        return self.model.model_copy(update={"spec": spec.model_copy(update={"versions": versions_served})})

    def _files(self, architecture: str) -> dict[int, EngineFiles]:
        entries = ((engine.version, engine.files) for engine in self.requested if engine.architecture == architecture)
        return {version: files for version, files in entries if files is not None}

    def _settled(self, architecture: str) -> dict[int, EngineFiles]:
        """Return the engines of an architecture that do not wait for builds of other versions."""
        here = [engine for engine in self.requested if engine.architecture == architecture]
        over = all(engine.build.is_over for engine in here)
        served = {engine.version for engine in here if over or engine.former is not None}
        return {version: files for version, files in self._files(architecture).items() if version in served}


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The inputs from which one pool's engines follow: `builds` by their names, and the entries of the models' last
    statuses, by the model's identity. `images` build where a model names none. `release`: that of TensorRT-LLM in the
    pool's server, empty where it is not known.
    """

    nodes: PoolNodes
    builds: Mapping[str, ObservedBuild]
    before: Mapping[str, Collection[EngineStatus]]
    images: BuildImages = field(default_factory=BuildImages)
    release: str = ""

    @property
    def pool(self) -> ServingPool:
        """The pool."""
        return self.nodes.pool

    def of(self, model: InferenceModel) -> SpecEngines:
        """Return the engines that a spec of a model requests."""
        formers = _formers(self.before.get(model.identity, ()), self.release)
        on_gpu = runs_on_gpu(self.nodes, model)
        every = list(self._requested(model, {node.architecture(on_gpu) for node in self.nodes.selected}, formers))
        begun = {engine.architecture for engine in every if engine.is_begun}
        desired = architectures(self.nodes, model, begun)
        return SpecEngines(model, tuple(engine for engine in every if engine.architecture in desired))

    def _requested(
        self, model: InferenceModel, architectures: Iterable[str], formers: Mapping[tuple[int, str, str], EngineFiles]
    ) -> Iterator[RequestedEngine]:
        for architecture in sorted(set(architectures) - {""}):
            for version, request in requests(model, self.pool, architecture, self.images).items():
                name, digest = _names(request)
                build = self.builds.get(name) or ObservedBuild(name)
                former = formers.get((version, architecture, digest))
                report = build.report
                misfit = mismatch(report.compiler, self.release) if report is not None else ""
                yield RequestedEngine(version, request, build, digest, former, misfit)


def _names(request: BuildRequest) -> tuple[str, str]:
    """Return `request.name`, and the digest of the request without the image that builds it and the store that keeps
    it.
    """
    plain = asdict(request)
    return digest_of(plain)[:20], digest_of({**plain, "compiler": "", "store": ""})[:20]


def _formers(entries: Iterable[EngineStatus], release: str) -> dict[tuple[int, str, str], EngineFiles]:
    """Return the engines that serve by the status written last, by version, architecture and the request's digest; none
    that a server with this `release` of TensorRT-LLM cannot open.
    """
    return {
        (entry.version, entry.architecture, entry.request_digest): EngineFiles(entry.storage_uri, entry.digest)
        for entry in entries
        if entry.serving and entry.storage_uri and not mismatch(entry.compiler, release)
    }


@dataclass(frozen=True, slots=True)
class ModelEngines:
    """The engines of the declared spec, and of the one that is acted upon: its last valid one, while it is deferred."""

    declared: SpecEngines
    acting: SpecEngines

    @property
    def is_deferred(self) -> bool:
        """Whether the last valid spec goes on until the declared one's engines are there."""
        return self.acting is not self.declared

    @property
    def files(self) -> Mapping[str, Mapping[int, EngineFiles]]:
        """The engines of both specs, by architecture and version, on the architectures of the one that is acted upon,
        whose engine a version has that both declare.
        """
        declared = self.declared.served
        return {
            architecture: {**declared.get(architecture, {}), **files}
            for architecture, files in self.acting.served.items()
        }


def waits(new: SpecEngines, former: SpecEngines) -> bool:
    """Return whether a spec lacks an engine where the former one serves. A failed engine is lacking for good."""
    if former.model.spec.engine is None:
        return not new.architectures or not new.architectures <= new.complete
    return not former.served.keys() & new.architectures <= new.complete
