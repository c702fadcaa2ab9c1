"""Ensembles among the models of a server: which steps they need, in which order they load, whether they can run now."""

from collections.abc import Iterable, Mapping

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, invalid, unavailable
from argosy_runtime.modelconfig import ConfigError, check_cycles, check_steps, is_decoupled
from argosy_runtime.scheduling.ensemble import EnsembleSteps
from argosy_runtime.telemetry.statistics import ModelStatistics

from .layout import ModelFolder
from .preparing import Prepared, declared_config
from .records import ModelRecord
from .served import ServedEnsemble, ServedVersion


def looks_like_one(folder: ModelFolder) -> bool:
    """Whether its configuration has steps; a configuration that cannot be read has none."""
    return bool(steps_of(folder, None))


def steps_of(folder: ModelFolder, override: str | None) -> list[str]:
    """The models of an ensemble's steps, in order, each once; none where it is no ensemble."""
    try:
        config = declared_config(folder, override)
    except ConfigError:
        return []
    return list(dict.fromkeys(step.model_name for step in config.ensemble_scheduling.step))


def step_names(prepared: Prepared) -> set[str]:
    """The models that an ensemble runs."""
    return {step.model_name for step in prepared.config.ensemble_scheduling.step}


def in_order(folders: list[ModelFolder]) -> list[ModelFolder]:
    """Ensembles so that those which others contain come first; those in a cycle come last, to fail with a message."""
    waiting = {folder.name: folder for folder in folders}
    ordered: list[ModelFolder] = []
    while waiting:
        ready = [name for name, folder in waiting.items() if not set(steps_of(folder, None)) & waiting.keys()]
        if not ready:
            return [*ordered, *waiting.values()]
        ordered += [waiting.pop(name) for name in ready]
    return ordered


def inner_first(records: list[ModelRecord]) -> list[ModelRecord]:
    """The same for what is already prepared."""
    folders = [record.prepared.folder for record in records if record.prepared is not None]
    by_name = {record.name: record for record in records}
    return [by_name[folder.name] for folder in in_order(folders)]


def lost_step(prepared: Prepared, records: Mapping[str, ModelRecord]) -> bool:
    """Whether a model that it runs was taken out of service."""
    return any(name in records and not records[name].wanted for name in step_names(prepared))


def needed(records: Iterable[ModelRecord]) -> set[str]:
    """Models that some wanted ensemble runs."""
    return {
        step
        for record in records
        if record.wanted and record.is_ensemble and record.prepared is not None
        for step in step_names(record.prepared)
    }


def compile_version(
    prepared: Prepared,
    version: int,
    records: Mapping[str, ModelRecord],
    old: ServedVersion | None,
) -> ServedEnsemble:
    """An ensemble's version on the models as they are served now. Raises ServingError where they do not fit.

    Its counters go on from `old`, since a step's reload is no new ensemble.
    """
    config = ModelConfig()
    config.CopyFrom(prepared.config)
    _refuse_cycle(config, records)
    steps = {(step.model_name, step.model_version) for step in config.ensemble_scheduling.step}
    served = {step: _served(config.name, records, *step) for step in sorted(steps)}
    by_name = {name: model.config for (name, _), model in served.items()}
    violations = check_steps(config, by_name)
    if violations:
        raise invalid("; ".join(map(str, violations)))
    config.model_transaction_policy.decoupled = is_decoupled(config, by_name)
    compiled = EnsembleSteps.of(config, lambda name, step_version: served[name, step_version].config)
    statistics = old.statistics if old is not None else ModelStatistics()
    models = {(name, "" if number < 0 else str(number)): model for (name, number), model in served.items()}
    return ServedEnsemble(Prepared(prepared.folder, config, prepared.versions), version, compiled, models, statistics)


def _refuse_cycle(config: ModelConfig, records: Mapping[str, ModelRecord]) -> None:
    known = {
        record.name: record.prepared.config
        for record in records.values()
        if record.is_ensemble and record.prepared is not None
    }
    cycles = [violation for violation in check_cycles({**known, config.name: config}) if violation.path == config.name]
    if cycles:
        raise invalid("; ".join(violation.message for violation in cycles))


def _served(ensemble: str, records: Mapping[str, ModelRecord], name: str, version: int) -> ServedVersion:
    record = records.get(name)
    versions = record.versions if record is not None else {}
    serving = {number: held.served for number, held in versions.items() if held.served is not None}
    if version >= 0 and version in serving:
        return serving[version]
    if version < 0 and serving:
        return serving[max(serving)]
    wanted = f"'{name}' version {version}" if version >= 0 else f"'{name}'"
    why = f": {record.failure}" if record is not None and record.failure else ""
    raise unavailable(f"ensemble '{ensemble}' depends on {wanted} which has no loaded version{why}")


__all__ = [
    "ServingError",
    "compile_version",
    "in_order",
    "inner_first",
    "looks_like_one",
    "lost_step",
    "needed",
    "step_names",
    "steps_of",
]
