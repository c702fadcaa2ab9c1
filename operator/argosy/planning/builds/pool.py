"""The engines of one pool: deferred specs, engines that are served or awaited, and builds that are requested."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import Reason
from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.planning.builds.architectures import why_no_architecture
from argosy.planning.builds.engines import EngineFacts, ModelEngines, RequestedEngine, SpecEngines, waits
from argosy.planning.builds.failures import failure_message, failure_of
from argosy.planning.demand.model_files import ServedEngines
from argosy.planning.facts import Waiting
from argosy.planning.validation.accept import Accepted, Check, defer, former_of
from argosy.planning.variants import with_siblings
from argosy_agent.contract.builds import BuildFailure, BuildState, ModelShape


@dataclass(frozen=True, slots=True)
class PoolEngines:
    """The engines of one pool. `models`: those whose declared or active spec requests an engine, by name."""

    facts: EngineFacts
    models: Mapping[str, ModelEngines] = field(default_factory=dict)

    @classmethod
    def of(
        cls, facts: EngineFacts, declared: Iterable[InferenceModel], acting: Iterable[InferenceModel]
    ) -> "PoolEngines":
        """Return the engines of models as they are declared and as they are acted upon."""
        acting_models = {model.name: model for model in acting}
        engines_of: dict[str, ModelEngines] = {}
        for model in declared:
            acted_upon = acting_models.get(model.name, model)
            if model.spec.engine is not None or acted_upon.spec.engine is not None:
                engines = facts.of(model)
                engines_of[model.name] = ModelEngines(
                    engines, engines if acted_upon.spec == model.spec else facts.of(acted_upon)
                )
        return cls(facts, engines_of)

    @property
    def served(self) -> ServedEngines:
        """What servers load in place of models' own files: engines of the spec that is acted upon, and of a candidate
        that is loaded next to it.
        """
        acting = {
            name: engines for name, engines in self.models.items() if engines.acting.model.spec.engine is not None
        }
        return ServedEngines(
            {name: engines.files for name, engines in acting.items()},
            {name: self._waiting(engines.acting) for name, engines in acting.items() if not engines.acting.served},
            self.facts.nodes.by_name,
        )

    @property
    def shapes(self) -> dict[str, ModelShape]:
        """The models' shapes that builds reported, by identity; of several versions that of the highest."""
        reports = (
            (engines.acting.model.identity, engine.version, engine.build.report)
            for engines in self.models.values()
            for engine in engines.acting.requested
        )
        reported = [(name, version, report.shape) for name, version, report in reports if report and report.shape]
        return {name: shape for name, _, shape in sorted(reported, key=lambda entry: entry[1])}

    def effective(self, resources: Iterable[Resource]) -> Iterator[Resource]:
        """Yield the resources, the pool's models only with those versions whose engines are served."""
        for resource in resources:
            mine = isinstance(resource, InferenceModel) and resource.pool_key == self.facts.pool.key
            yield self.models[resource.name].acting.effective if mine and resource.name in self.models else resource

    @property
    def requested(self) -> Iterator[tuple[InferenceModel, RequestedEngine]]:
        """Every engine whose build is needed, by model: the declared ones, and those that serve in the meantime."""
        for name in sorted(self.models):
            engines = self.models[name]
            yield from ((engines.declared.model, engine) for engine in engines.declared.requested)
            if engines.is_deferred:
                yield from ((engines.acting.model, engine) for engine in engines.acting.requested if engine.is_ready)

    def _waiting(self, engines: SpecEngines) -> Waiting:
        failed = [engine for engine in engines.requested if engine.state is BuildState.FAILED]
        name, replicas = engines.model.name, engines.model.spec.fewest_replicas
        if not engines.requested:
            why = f"{why_no_architecture(self.facts.nodes, engines.model)}."
            return Waiting(name, Reason.NO_ENGINE_FOR_ARCHITECTURE, why, replicas)
        if failed and all(engine.build.is_over for engine in engines.requested):
            return Waiting(name, failed_reason(failed), failure_message(failed[0].build), replicas)
        misfit = next((engine.misfit for engine in engines.requested if engine.misfit), "")
        if misfit:
            return Waiting(name, Reason.ENGINE_OF_ANOTHER_RELEASE, f"{misfit}.", replicas)
        building = any(engine.state in (BuildState.BUILDING, BuildState.VERIFYING) for engine in engines.requested)
        message = "it waits for its engine; the condition EngineReady says how far that is"
        return Waiting(name, Reason.BUILDING if building else Reason.BUILD_PENDING, message, replicas)


def failed_reason(failed: Iterable[RequestedEngine]) -> Reason:
    """Return the reason for engines that failed: that of their accuracy where it is nothing else."""
    low = all(failure_of(engine.build) is BuildFailure.ACCURACY_TOO_LOW for engine in failed)
    return Reason.ACCURACY_TOO_LOW if low else Reason.BUILD_FAILED


Facts = Mapping[PoolKey, EngineFacts]
"""The inputs from which the engines of each pool follow."""


def defer_unbuilt(accepted: Accepted, last: Mapping[str, Resource], facts: Facts, check: Check) -> Accepted:
    """Return the accepted resources, without specs that lack an engine where their last valid spec serves: that goes
    on.

    `last` has the spec of each resource that was acted upon before, by identity.
    """
    waiting = with_siblings(
        (model.identity for model in _models(accepted.valid) if _waits(model, last, facts)), accepted.valid
    )
    return defer(accepted, waiting, last, check) if waiting else accepted


def pool_engines(declared: Accepted, accepted: Accepted, facts: Facts) -> dict[PoolKey, PoolEngines]:
    """Return the engines of each pool's models, with the declared spec and with the one that is acted upon."""
    return {
        key: PoolEngines.of(pool_facts, _models(declared.valid, key), _models(accepted.valid, key))
        for key, pool_facts in facts.items()
    }


def _waits(model: InferenceModel, last: Mapping[str, Resource], facts: Facts) -> bool:
    pool_facts = facts.get(model.pool_key)
    former = former_of(model, last) if model.spec.engine is not None else None
    if pool_facts is None or not isinstance(former, InferenceModel):
        return False
    return former.pool_key == model.pool_key and waits(pool_facts.of(model), pool_facts.of(former))


def _models(resources: Iterable[Resource], pool: PoolKey | None = None) -> list[InferenceModel]:
    """Return the models among resources, or those of one pool."""
    return [
        resource for resource in resources if isinstance(resource, InferenceModel) and pool in (None, resource.pool_key)
    ]
