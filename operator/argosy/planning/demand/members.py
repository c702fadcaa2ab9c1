"""A pool's models and ensembles, by name."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from argosy.api import Ensemble, InferenceModel, Resource, ServingPool
from argosy.api.values.identity import PoolKey
from argosy.planning.demand.footprint import DocumentSize
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.demand.model_files import ServedEngines, declared_sources
from argosy.planning.demand.runs import runs_of
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.plan import Placement
from argosy.planning.rollouts.member import MemberRollout
from argosy_agent.contract import VersionSource
from argosy_agent.contract.builds import ModelShape

Value = TypeVar("Value")


def only(values: Mapping[str, Value], names: Iterable[str]) -> dict[str, Value]:
    """Return the values of these names, where there are some."""
    return {name: values[name] for name in names if name in values}


@dataclass(frozen=True, slots=True)
class Members:
    """What a pool is to serve.

    `broken`: names that are declared and have no valid spec, so that what serves under them is left as it is.
    `runs`: the models of each ensemble. `moved`: names that another pool is to serve by now, and whether requests
    reach them there. `served_names`: what clients call each member that they know by another name than its own.
    `shapes`: those of the models of which one is known. `engines`: what serves in place of models' own files. `sizes`:
    what each takes of its server's documents; what is not among them counts for nothing. `scaled`:
    the members whose replicas, instances and batching are decided by scaling; `autoscaled`: those of which it decides
    the replicas, too. `rollouts`: those whose new versions are released in steps; `models` and `ensembles` have the
    spec that is acted upon. `measured`: what models were measured to use of a GPU, where that counts.
    """

    models: Mapping[str, InferenceModel] = field(default_factory=dict)
    ensembles: Mapping[str, Ensemble] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moved: Mapping[str, bool] = field(default_factory=dict)
    served_names: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, ModelShape] = field(default_factory=dict)
    engines: ServedEngines = field(default_factory=ServedEngines)
    sizes: Mapping[str, DocumentSize] = field(default_factory=dict)
    scaled: frozenset[str] = frozenset()
    autoscaled: frozenset[str] = frozenset()
    rollouts: Mapping[str, MemberRollout] = field(default_factory=dict)
    measured: Mapping[str, MeasuredMemory] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pool: PoolKey,
        valid: Iterable[Resource],
        broken: Iterable[Resource] = (),
        moved: Mapping[str, bool] | None = None,
        shapes: Mapping[str, ModelShape] | None = None,
        engines: ServedEngines | None = None,
        scaled: Mapping[str, bool] | None = None,
        rollouts: Mapping[str, MemberRollout] | None = None,
    ) -> "Members":
        """Return what of these asks for the pool of this key; `broken` has no valid spec, `shapes` and `rollouts` are
        by identity, and so is `scaled`: what is scaled, and whether its replicas are.
        """
        mine = [resource for resource in valid if not isinstance(resource, ServingPool) and resource.pool_key == pool]
        ensembles = {member.name: member for member in mine if isinstance(member, Ensemble)}
        return cls(
            {member.name: member for member in mine if isinstance(member, InferenceModel)},
            ensembles,
            frozenset(
                resource.name
                for resource in broken
                if not isinstance(resource, ServingPool) and resource.pool_key == pool
            ),
            runs_of(ensembles.values()),
            moved or {},
            {member.name: member.served_name for member in mine if member.served_name != member.name},
            {member.name: shape for member in mine if (shape := (shapes or {}).get(member.identity)) is not None},
            engines or ServedEngines(),
            scaled=frozenset(member.name for member in mine if member.identity in (scaled or {})),
            autoscaled=frozenset(member.name for member in mine if (scaled or {}).get(member.identity)),
            rollouts={
                member.name: rollout
                for member in mine
                if (rollout := (rollouts or {}).get(member.identity)) is not None
            },
        )

    def of_names(self, names: Collection[str]) -> "Members":
        """Return these members alone, as if the pool had no others; without what only planning reads: `moved`, `sizes`
        and `autoscaled`.
        """
        engines = replace(
            self.engines, files=only(self.engines.files, names), waiting=only(self.engines.waiting, names)
        )
        return Members(
            models=only(self.models, names),
            ensembles=only(self.ensembles, names),
            broken=frozenset(name for name in names if name in self.broken),
            runs=only(self.runs, names),
            served_names=only(self.served_names, names),
            shapes=only(self.shapes, names),
            engines=engines,
            scaled=frozenset(name for name in names if name in self.scaled),
            rollouts=only(self.rollouts, names),
            measured=only(self.measured, names),
        )

    def models_of(self, name: str) -> tuple[str, ...]:
        """Return the models that a member runs: itself, or those of an ensemble."""
        return self.runs.get(name, (name,))

    def sources(self, placement: Placement, node: str) -> dict[int, VersionSource]:
        """Return where a placed model's declared versions come from on the node."""
        engines = self.engines.on(placement.model, node, on_gpu=bool(placement.gpus))
        measured = self.measured.get(placement.model)
        model = self.models[placement.model]
        return declared_sources(model, engines, measured, placement.shares, _instances(model, placement))

    def candidate_sources(self, placement: Placement, node: str) -> dict[int, VersionSource]:
        """Return where the versions that a placed model's rollout keeps come from on the node; empty without one."""
        rollout = self.rollouts.get(placement.model)
        if rollout is None:
            return {}
        engines = self.engines.on(placement.model, node, on_gpu=bool(placement.gpus))
        specs = [spec for spec in (rollout.candidate, rollout.stable) if isinstance(spec, InferenceModel)]
        of_specs = [
            declared_sources(spec, engines, shares=placement.shares, instances=_instances(spec, placement))
            for spec in specs
        ]
        sources = {version: source for of_spec in of_specs for version, source in of_spec.items()}
        return {version: source for version, source in sources.items() if version in rollout.action.keep}

    def spec_of(self, name: str, version: int) -> InferenceModel | None:
        """Return the model with the spec that a version is served by; None where that is not known."""
        model, rollout = self.models.get(name), self.rollouts.get(name)
        if model is not None and version in model.spec.declared_versions:
            return model
        spec = rollout.specs.get(version) if rollout is not None else None
        return spec if isinstance(spec, InferenceModel) else None

    def proven_revisions(self, ensemble: str) -> dict[int, PinnedEnsemble]:
        """Return the revisions of an ensemble that its rollout keeps loaded, by version."""
        rollout = self.rollouts.get(ensemble)
        if rollout is None:
            return {}
        return {
            version: spec
            for version, spec in rollout.specs.items()
            if version in rollout.action.keep and isinstance(spec, PinnedEnsemble)
        }

    def versions_in_rollouts(self) -> dict[str, set[int]]:
        """Return the versions of each model that rollouts keep loaded next to each other, by name: its own rollout's,
        and those of ensembles that run it.
        """
        versions = {name: set(rollout.action.keep) for name, rollout in self.rollouts.items()}
        for ensemble in self.ensembles.values():
            if isinstance(ensemble, PinnedEnsemble):
                for one in (ensemble, *self.proven_revisions(ensemble.name).values()):
                    for step, version in one.pins.items():
                        versions.setdefault(step, set()).add(version)
        return versions

    def declares(self, name: str) -> bool:
        """Return whether something of this name is asked of the pool, well or not."""
        return name in self.models or name in self.ensembles or name in self.broken

    def knows(self, name: str) -> bool:
        """Return whether something of this name is asked of this pool or another."""
        return self.declares(name) or name in self.moved

    def version(self, name: str) -> int | None:
        """Return the version of a valid member that answers a request which names none."""
        member = self.models.get(name) or self.ensembles.get(name)
        return member.spec.default_version if member else None


def _instances(model: InferenceModel, placement: Placement) -> int | None:
    """Return the instances that the plan gives a model whose spec has none."""
    declares = model.spec.instances is not None or model.spec.instance_groups
    return None if declares else placement.instances * placement.shares
