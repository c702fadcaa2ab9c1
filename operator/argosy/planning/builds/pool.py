"""The engines of one pool as one value: which forms are held back, what is served, what waits, what is to be built."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import Reason, Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.planning.builds.architectures import why_no_architecture
from argosy.planning.builds.engines import AskedEngine, EngineFacts, FormEngines, ModelEngines
from argosy.planning.builds.failures import failure_message, failure_of
from argosy.planning.demand.engine_files import ServedEngines
from argosy.planning.facts import Waiting
from argosy_agent.contract.builds import BuildFailure, BuildState, ModelShape


@dataclass(frozen=True, slots=True)
class PoolEngines:
    """`models` are those of which either form asks for an engine, by name."""

    facts: EngineFacts
    models: Mapping[str, ModelEngines] = field(default_factory=dict)

    @classmethod
    def of(
        cls, facts: EngineFacts, declared: Iterable[InferenceModel], acting: Iterable[InferenceModel]
    ) -> "PoolEngines":
        """Return the engines of models as they are declared and as they are acted upon."""
        forms = {model.name: model for model in acting}
        found: dict[str, ModelEngines] = {}
        for model in declared:
            form = forms.get(model.name, model)
            if model.spec.engine is not None or form.spec.engine is not None:
                asked = facts.of(model)
                found[model.name] = ModelEngines(asked, asked if form.spec == model.spec else facts.of(form))
        return cls(facts, found)

    @property
    def served(self) -> ServedEngines:
        """What servers load in place of models' own files."""
        acting = {name: each.acting for name, each in self.models.items() if each.acting.model.spec.engine is not None}
        return ServedEngines(
            {name: form.served for name, form in acting.items()},
            {name: self._waiting(form) for name, form in acting.items() if not form.served},
            self.facts.nodes.by_name,
        )

    @property
    def shapes(self) -> dict[str, ModelShape]:
        """The models' shapes that builds told, by identity; of several versions that of the highest."""
        reports = (
            (each.acting.model.identity, asked.version, asked.build.report)
            for each in self.models.values()
            for asked in each.acting.asked
        )
        told = [(name, version, report.shape) for name, version, report in reports if report and report.shape]
        return {name: shape for name, _, shape in sorted(told, key=lambda each: each[1])}

    def effective(self, resources: Iterable[Resource]) -> Iterator[Resource]:
        """Yield the resources, of which the pool's models have those of their versions that are served."""
        for each in resources:
            mine = isinstance(each, InferenceModel) and each.pool_key == self.facts.pool.key
            yield self.models[each.name].acting.effective if mine and each.name in self.models else each

    @property
    def asked(self) -> Iterator[tuple[InferenceModel, AskedEngine]]:
        """Every engine whose build is kept in mind, by its model: what is declared, and what serves meanwhile."""
        for name in sorted(self.models):
            each = self.models[name]
            yield from ((each.declared.model, asked) for asked in each.declared.asked)
            if each.is_held:
                yield from ((each.acting.model, asked) for asked in each.acting.asked if asked.is_ready)

    def _waiting(self, form: FormEngines) -> Waiting:
        failed = [each for each in form.asked if each.state is BuildState.FAILED]
        name, replicas = form.model.name, form.model.spec.fewest_replicas
        if not form.asked:
            why = f"{why_no_architecture(self.facts.nodes, form.model)}."
            return Waiting(name, Reason.NO_ENGINE_FOR_ARCHITECTURE, why, replicas)
        if failed and all(each.build.is_over for each in form.asked):
            return Waiting(name, failed_reason(failed), failure_message(failed[0].build), replicas)
        building = any(each.state in (BuildState.BUILDING, BuildState.VERIFYING) for each in form.asked)
        message = "it waits for its engine; the condition EngineReady says how far that is"
        return Waiting(name, Reason.BUILDING if building else Reason.BUILD_PENDING, message, replicas)


def failed_reason(failed: Iterable[AskedEngine]) -> Reason:
    """Return the reason for engines that failed: that of their accuracy where it is nothing else."""
    low = all(failure_of(each.build) is BuildFailure.ACCURACY_TOO_LOW for each in failed)
    return Reason.ACCURACY_TOO_LOW if low else Reason.BUILD_FAILED
