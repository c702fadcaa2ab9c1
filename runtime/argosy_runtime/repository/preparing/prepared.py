"""Prepared models as values: the configuration of each version, and what its instances were loaded from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.execution.cached_answers import CachedAnswers
from argosy_runtime.execution.clock import Clock
from argosy_runtime.modelconfig import inplace
from argosy_runtime.modelconfig.parameters import adapters, variants
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.preparing.features import Features
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.telemetry.triton_families import FIRST_RESPONSE


class NoVersionError(Exception):
    """A model whose version policy leaves nothing to serve; the message is Triton's."""


@dataclass(frozen=True, slots=True)
class LoadedRevision:
    """The revision that a version's instances were loaded from.

    The configuration, and the files by their fingerprints.
    """

    config: ModelConfig
    files: tuple[str, ...]

    def suits(self, desired: "LoadedRevision") -> bool:
        """Return whether the instances can serve as another revision without another load."""
        return self.files == desired.files and inplace.suits(self.config, desired.config)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A configuration with every default filled in, the versions that it is for, and class labels by output.

    `versions` ascend: one that has a configuration of its own is alone, the others share the model's. `declared` is the
    configuration before the backend and the machine completed it. `steps` are the models that an ensemble runs, or the
    variants of a routed model; other models have none. `features` are those of the server.
    """

    folder: ModelFolder
    config: ModelConfig
    versions: tuple[int, ...]
    declared: ModelConfig
    steps: frozenset[str] = frozenset()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    features: Features = field(default=Features(), compare=False, repr=False)

    def new_statistics(self) -> ModelStatistics:
        """Return the counters of a version that begins to serve."""
        config = self.config
        return ModelStatistics(
            summaries=self.features.summaries,
            responses=config.model_transaction_policy.decoupled and not self.is_ensemble,
            first_response_ms=_first_response_buckets(config),
            caches=config.response_cache.enable and self.features.response_cache is not None,
        )

    def cached_answers(self, version: int, statistics: ModelStatistics, clock: Clock) -> CachedAnswers | None:
        """Return the response cache as a version uses it; None where the model or the server has none."""
        cache = self.features.response_cache
        if cache is None or not self.config.response_cache.enable:
            return None
        outputs = [output.name for output in self.config.output]
        return CachedAnswers(cache, self.folder.identifier, version, outputs, statistics, clock)

    @property
    def is_ensemble(self) -> bool:
        """True if it has no instances of its own: its steps, or its variants, are other models."""
        return bool(self.steps)

    @property
    def is_routed(self) -> bool:
        """True if its steps are variants, of which one answers."""
        return variants.is_routed(self.config)

    @property
    def is_adapter(self) -> bool:
        """True if it is an adapter, whose one step is its base model."""
        return adapters.is_adapter(self.config)

    @property
    def first_files(self) -> tuple[str, ...]:
        """Files by which autofill recognises the model."""
        own = next((version for version in self.versions if version in self.folder.own_configs), None)
        return self.folder.first_files if own is None else self.folder.files[own]

    def with_config(self, config: ModelConfig) -> "Prepared":
        """Return the same with another configuration."""
        return replace(self, config=config)

    def revision(self, version: int) -> LoadedRevision:
        """Return the revision that a version is loaded from."""
        folder = self.folder
        own = folder.version_fingerprints.get(version, "")
        return LoadedRevision(self.config, (str(folder.path), folder.shared_fingerprint, own))

    def completed_like(self, former: "Prepared | None") -> ModelConfig | None:
        """Return the configuration, completed like that of the same files; None where these must be opened again."""
        if former is None or former.is_ensemble or self.is_ensemble or former.versions[0] != self.versions[0]:
            return None
        if former.revision(self.versions[0]).files != self.revision(self.versions[0]).files:
            return None
        return inplace.completed_like(former.declared, former.config, self.config)


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """The versions to serve of a folder, ascending, each with what it is prepared as.

    `config` is the model's configuration, which decides for all versions which of them are served, and their traffic.
    `broken`: versions whose own configuration cannot be used, with the reason.
    """

    folder: ModelFolder
    config: ModelConfig
    versions: Mapping[int, Prepared]
    broken: Mapping[int, ServingError] = field(default_factory=dict)

    @property
    def is_composite(self) -> bool:
        """True if all versions run other models, so that it can only serve once these do."""
        return bool(self.versions) and all(prepared.is_ensemble for prepared in self.versions.values())

    @property
    def numbers(self) -> tuple[int, ...]:
        """The versions to serve, broken ones among them, ascending."""
        return tuple(sorted((*self.versions, *self.broken)))

    @property
    def configurations(self) -> tuple[Prepared, ...]:
        """What the versions are prepared as, each once."""
        return tuple({prepared.versions: prepared for prepared in self.versions.values()}.values())

    @property
    def latest(self) -> Prepared:
        """What the highest version is prepared as."""
        return self.versions[max(self.versions)]

    @property
    def steps(self) -> frozenset[str]:
        """The models that any of the versions runs."""
        return frozenset().union(*(prepared.steps for prepared in self.versions.values()))


def _first_response_buckets(config: ModelConfig) -> Sequence[float]:
    """Return the bounds, in milliseconds and ascending, that `model_metrics` sets; none for the ordinary ones."""
    controls = config.model_metrics.metric_control
    own = [control for control in controls if control.metric_identifier.family == FIRST_RESPONSE]
    return sorted(set(own[-1].histogram_options.buckets)) if own else ()
