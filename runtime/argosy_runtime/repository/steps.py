"""The models of an ensemble's steps among those that serve: pinned versions, and versions that share the requests."""

import logging
from collections.abc import Iterator, Mapping
from functools import partial

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime import backends
from argosy_runtime.errors import unavailable
from argosy_runtime.modelconfig import check_steps

from .records import ModelRecord
from .serving.ensemble import DividedModel, StepModel
from .serving.version import ServedVersion

_log = logging.getLogger("argosy.repository")
_LATEST = -1


def step_models(config: ModelConfig, records: Mapping[str, ModelRecord]) -> dict[tuple[str, int], StepModel]:
    """Return the model of each step of an ensemble, by name and pinned version (-1: none).

    Raises ServingError where one is not loaded. Whether they fit is for `check_steps` to say.
    """
    steps = sorted({(step.model_name, step.model_version) for step in config.ensemble_scheduling.step})
    models: dict[tuple[str, int], StepModel] = {step: _served(config.name, records, *step) for step in steps}
    for step in steps:
        record = records[step[0]]
        if step[1] == _LATEST and record.split is not None:
            by_name = {name: model.config for (name, _), model in models.items()}
            models[step] = _divided(config, by_name, record)
    return models


def _served(ensemble: str, records: Mapping[str, ModelRecord], name: str, version: int) -> ServedVersion:
    record = records.get(name)
    if record is not None:
        served = record.answering.get("" if version < 0 else str(version))
        if served is not None:
            return served
    dependency = f"'{name}' version {version}" if version >= 0 else f"'{name}'"
    why = f": {record.failure}" if record is not None and record.failure else ""
    raise unavailable(f"ensemble '{ensemble}' depends on {dependency} which has no loaded version{why}")


def _divided(config: ModelConfig, by_name: Mapping[str, ModelConfig], record: ModelRecord) -> StepModel:
    """Return the versions that share a step's requests: those that fit like the first of them, by falling weight."""
    candidates = dict(_weighted(record))
    fitting = {v: s for v, s in candidates.items() if not check_steps(config, {**by_name, record.name: s.config})}
    main = next(iter(fitting.values()), None)
    if main is None:
        return record.answering[""]
    alike = {version: served for version, served in fitting.items() if _runs_like(served.config, main.config)}
    for version in candidates.keys() - alike.keys():
        _log.warning(
            "ensemble '%s' sends no requests to version %d of '%s', which does not fit it like version %d",
            config.name,
            version,
            record.name,
            main.version,
        )
    return DividedModel(main, alike, partial(record.destination, among=frozenset(alike)))


def _weighted(record: ModelRecord) -> Iterator[tuple[int, ServedVersion]]:
    for version in record.split.order if record.split is not None else ():
        if (served := record.answering.get(str(version))) is not None:
            yield version, served


def _runs_like(config: ModelConfig, other: ModelConfig) -> bool:
    """Return whether an ensemble that is compiled for one configuration runs the other, too."""
    return (
        config.model_transaction_policy.decoupled == other.model_transaction_policy.decoupled
        and {tensor.name for tensor in config.input if tensor.optional}
        == {tensor.name for tensor in other.input if tensor.optional}
        and backends.takes_device_tensors(config) == backends.takes_device_tensors(other)
    )
