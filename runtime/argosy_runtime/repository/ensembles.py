"""Ensembles among the models of a server: which steps they need, whether they can run, how they follow their steps.

Routed models are treated alike, with variants as steps; the differences are in `variants`.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime import backends
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.modelconfig import ConfigError, check_steps, is_decoupled
from argosy_runtime.modelconfig.ensembles import nesting
from argosy_runtime.modelconfig.parameters.adapters import may_be_adapter
from argosy_runtime.modelconfig.parameters.variants import is_routed, may_be_routed, variant_routing
from argosy_runtime.modelconfig.rules.model import check_response_cache
from argosy_runtime.modelconfig.rules.sequence_batching import sequences_cached
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps

from . import variants
from .adapters.loading import follow as follow_base
from .folders.layout import ModelFolder
from .namespaces import NamedModels
from .preparing import Prepared, declared_versions
from .preparing import steps_of as steps_of_config
from .records import UNLOADED, ModelRecord
from .retirement import Retirement
from .serving.ensemble import ServedEnsemble
from .serving.routed import ServedVariants
from .steps import step_models
from .work import serving_error

_log = logging.getLogger("argosy.repository")


def steps_of(folder: ModelFolder, override: str | None) -> list[str]:
    """Return the models that the versions to serve of a folder run, in order, each once.

    These are an ensemble's steps, the variants of a routed model, an adapter's base model. None for other models and
    unreadable configurations.
    """
    # To parse thousands of configurations only to learn that they are none takes seconds.
    if not any(map(_may_have_steps, _texts(folder, override))):
        return []
    steps: list[str] = []
    for config in declared_versions(folder, override):
        with suppress(ConfigError):
            steps += _ordered_steps(config)
    return list(dict.fromkeys(steps))


def steps_among(folders: Sequence[ModelFolder]) -> dict[str, list[str]]:
    """Return the steps of each ensemble among some folders that are among them, too, all by identifier."""
    of_name = defaultdict[str, list[str]](list)
    for folder in folders:
        of_name[folder.name].append(folder.identifier)
    steps = {folder.identifier: steps_of(folder, None) for folder in folders}
    return {
        ensemble: [identifier for step in names for identifier in of_name.get(step, ())]
        for ensemble, names in steps.items()
        if names
    }


def _texts(folder: ModelFolder, override: str | None) -> list[str]:
    return [override or folder.config_text or "", *folder.version_configs.values()]


def _may_have_steps(text: str) -> bool:
    return "ensemble" in text.lower() or may_be_routed(text) or may_be_adapter(text)


def _ordered_steps(config: ModelConfig) -> list[str]:
    if is_routed(config):
        return [variant.model for variant in variant_routing(config).variants]
    if config.HasField("ensemble_scheduling"):
        return [step.model_name for step in config.ensemble_scheduling.step]
    return sorted(steps_of_config(config))


def serves_without(folder: ModelFolder, override: str | None) -> bool:
    """Return whether a model serves while some of its steps do not: those of a routed model are alternatives."""
    return any(map(may_be_routed, _texts(folder, override)))


def step_missing(ensemble: str, step: str, error: ServingError) -> ServingError:
    """Return the error of an ensemble's load whose step could not be loaded, in Triton's words with the step's error.

    The repositories have no step of that name, or none whose configuration can be read; or its load failed.
    """
    _, failed, why = error.message.partition(f"load failed for model '{step}': ")
    if failed:
        text = f"ensemble '{ensemble}' depends on '{step}' which has no loaded version. "
        return invalid(f"load failed for model '{ensemble}': {text}Model '{step}' loading failed with error: {why}")
    text = f"ensemble {ensemble} contains models that are not available or ambiguous: {step}\n"
    return invalid(f"load failed for model '{ensemble}': {text}{error.message}\n")


def needed(models: NamedModels) -> set[str]:
    """Return the identifiers of the models that a desired ensemble runs."""
    return {step for record in models.records.values() if record.desired for step in models.steps_of(record)}


def follow(models: NamedModels, changed: ModelRecord, retirement: Retirement) -> None:
    """Put every ensemble that runs a changed model on the present versions, or take it down."""
    ensembles = {name: record for name, record in models.records.items() if record.steps and record.desired}
    steps = {name: models.may_run(record) for name, record in ensembles.items()}
    for ensemble in nesting.dependents(steps, changed.identifier):
        record = ensembles[ensemble]
        records = models.seen_from(record.namespace)
        assert record.prepared is not None
        for version, prepared in record.prepared.versions.items():
            if prepared.is_adapter:
                follow_base(record, prepared, version, records)
            elif prepared.is_ensemble and not (
                prepared.is_routed and variants.follow(record, prepared, version, records)
            ):
                _follow(record, prepared, version, models, retirement)


def _follow(
    record: ModelRecord,
    prepared: Prepared,
    version: int,
    models: NamedModels,
    retirement: Retirement,
) -> None:
    try:
        served = compile_version(prepared, version, models)
    except Exception as cause:
        error = serving_error(cause)
        records = models.seen_from(record.namespace)
        lost = any(step in records and not records[step].desired for step in record.steps)
        retirement.retire(record, version, UNLOADED if lost else error.message)
        _log.warning("ensemble '%s' cannot serve: %s", record.name, error.message)
    else:
        retirement.replace(record, version, served)


def compile_version(prepared: Prepared, version: int, models: NamedModels) -> ServedEnsemble | ServedVariants:
    """Return an ensemble's version on the models that serve now. Raises ServingError where they do not fit.

    Its counters go on from the version that serves now, since a step's reload is no new ensemble.
    """
    _refuse_circle(prepared, models)
    records = models.seen_from(prepared.folder.namespace)
    if prepared.is_routed:
        return variants.compile_version(prepared, version, records)
    config = ModelConfig()
    config.CopyFrom(prepared.config)
    served = step_models(config, records)
    by_name = {name: model.config for (name, _), model in served.items()}
    violations = check_steps(config, by_name)
    if violations:
        raise invalid("; ".join(map(str, violations)))
    config.model_transaction_policy.decoupled = is_decoupled(config, by_name)
    _check_cache(config, prepared.steps, models, prepared.folder.namespace)
    if prepared.folder.namespace:
        for step in config.ensemble_scheduling.step:
            step.model_namespace = records[step.model_name].namespace
    compiled = EnsembleSteps.of(
        config, lambda name, step_version: served[name, step_version].config, backends.takes_device_tensors
    )
    old = records[config.name].answering.get(str(version))
    statistics = old.statistics if old is not None else prepared.new_statistics()
    numbered = {(name, "" if number < 0 else str(number)): model for (name, number), model in served.items()}
    return ServedEnsemble(prepared.with_config(config), version, compiled, numbered, statistics)


def _check_cache(config: ModelConfig, steps: Iterable[str], models: NamedModels, namespace: str) -> None:
    """Raise ServingError where an ensemble caches responses that are several, or that sequences decide."""
    if not config.response_cache.enable:
        return
    for violation in check_response_cache(config):
        raise invalid(str(violation))
    for step in steps:
        record = models.seen_from(namespace)[step]
        if record.prepared is None:
            continue
        for version in record.prepared.versions.values():
            if version.config.HasField("sequence_batching"):
                raise invalid(sequences_cached(config.name))
        _check_cache(config, record.steps, models, record.namespace)


def _refuse_circle(prepared: Prepared, models: NamedModels) -> None:
    steps = {name: models.steps_of(record) for name, record in models.records.items() if record.steps}
    seen = models.seen_from(prepared.folder.namespace)
    name = prepared.folder.identifier
    wrong = nesting.circle(name, {**steps, name: {seen[s].identifier if s in seen else s for s in prepared.steps}})
    if wrong is not None:
        raise invalid(wrong)
