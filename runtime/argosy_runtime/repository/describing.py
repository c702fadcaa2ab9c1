"""Descriptions of the models: metadata, statistics, the index, as the protocol's messages."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelInput, ModelOutput

from argosy_runtime.errors import invalid
from argosy_runtime.modelconfig.datatypes import v2_name
from argosy_runtime.scheduling.traffic.split import TrafficSplit
from argosy_runtime.telemetry.exposition import Labels
from argosy_runtime.telemetry.series import InService, ModelSeries, VersionShare
from argosy_runtime.telemetry.statistics import ModelStatistics

from .folders.layout import DUPLICATE
from .folders.repositories import RepositoryModels
from .records import ModelRecord, State
from .serving.routed import ServedVariants
from .serving.version import ServedVersion

TensorMetadata: TypeAlias = pb.ModelMetadataResponse.TensorMetadata
_Row: TypeAlias = tuple[str, int, str, str]
_Memory: TypeAlias = Callable[[str, int], list[pb.MemoryUsage]]


def metadata(served: ServedVersion, record: ModelRecord, version: str) -> pb.ModelMetadataResponse:
    """Return a version's tensors, with the batch dimension where there is one.

    Its versions are the one that the client names, or all serving ones where `version` is "".
    """
    config = served.config
    batch = config.max_batch_size > 0
    return pb.ModelMetadataResponse(
        name=record.name,
        versions=[str(served.version)] if version else [str(number) for number, _ in record.serving()],
        platform=config.platform or config.backend,
        inputs=[_tensor(tensor, batch) for tensor in config.input],
        outputs=[_tensor(tensor, batch) for tensor in config.output],
    )


def _tensor(tensor: ModelInput | ModelOutput, batch: bool) -> TensorMetadata:
    shape = [-1, *tensor.dims] if batch else list(tensor.dims)
    return TensorMetadata(name=tensor.name, datatype=v2_name(tensor.data_type), shape=shape)


def statistics(records: Iterable[ModelRecord], name: str, version: str, memory: _Memory) -> pb.ModelStatisticsResponse:
    """Return the counters of the serving versions of `name` and `version`. Raises ServingError where none serves.

    Without a name, those of all versions, whatever `version` is.

    `memory` returns what a version of a model, by its identifier, uses.
    """
    serving = [(record, str(number), served) for record in records for number, served in record.serving()]
    if name and not serving:
        raise invalid(f"requested model '{name}' is not available")
    chosen = [(record, number, served) for record, number, served in serving if not name or version in ("", number)]
    if name and not chosen:
        raise invalid(f"requested model version is not available for model '{name}'")
    response = pb.ModelStatisticsResponse()
    for record, number, served in chosen:
        message = served.statistics.message(record.name, number)
        message.memory_usage.extend(memory(record.identifier, int(number)))
        response.model_stats.append(message)
    return response


class Index:
    """The repository index: the same message while nothing changes, so that frequent requests cost little."""

    def __init__(self) -> None:
        self._rows: dict[bool, list[_Row]] = {}
        self._messages: dict[bool, pb.RepositoryIndexResponse] = {}

    def message(
        self, records: Mapping[str, ModelRecord], listed: RepositoryModels, ready_only: bool
    ) -> pb.RepositoryIndexResponse:
        """Return the state of every version of every `listed` model; one that was never loaded is there by name alone.

        A model that is not listed is there while it serves, or is on its way.

        The message is shared by all callers: not to be changed.
        """
        rows = _rows(records, listed, ready_only)
        if rows != self._rows.get(ready_only):
            self._rows[ready_only] = rows
            message = self._messages[ready_only] = pb.RepositoryIndexResponse()
            for name, number, state, reason in rows:
                version = str(number) if number >= 0 else ""
                message.models.add(name=name, version=version, state=state, reason=reason)
        return self._messages[ready_only]


def _rows(records: Mapping[str, ModelRecord], listed: RepositoryModels, ready_only: bool) -> list[_Row]:
    rows: list[_Row] = []
    for identifier in sorted(records.keys() | listed.names.keys()):
        record = records.get(identifier)
        idle = record is None or record.idle
        if idle and (ready_only or identifier not in listed.names):
            continue
        name = listed.names[identifier] if record is None else record.name
        if idle and identifier in listed.duplicates:
            rows.append((name, -1, State.UNAVAILABLE, DUPLICATE))
        elif record is not None and record.versions:
            rows += _version_rows(record, ready_only)
        elif not ready_only:
            why = record.failure if record is not None and record.registered else ""
            rows.append((name, -1, State.UNAVAILABLE if why else "", why))
    return rows


def _version_rows(record: ModelRecord, ready_only: bool) -> Iterator[_Row]:
    for number, version in sorted(record.versions.items()):
        state = version.state
        if state is State.READY:
            yield record.name, number, state, version.caution
        elif not ready_only:
            yield record.name, number, state, version.status


def series(records: Iterable[ModelRecord], now: int) -> list[ModelSeries]:
    """Return the metrics at a time of every version in service, ready or not, and of versions that failed to load."""
    return [
        ModelSeries(
            _labels(record, number),
            version_record.served.statistics if version_record.served is not None else ModelStatistics(),
            version_record.failed_loads,
            _in_service(version_record.served) if version_record.served is not None else None,
            _share(record.split, number),
            now,
            version_record.served is not None or version_record.failed_tags is not None,
        )
        for record in records
        for number, version_record in sorted(record.versions.items())
        if version_record.served is not None or version_record.failed_loads
    ]


def _share(split: TrafficSplit | None, version: int) -> VersionShare | None:
    if split is None:
        return None
    routed = {by.value: counts.get(version, 0) for by, counts in split.routed.items()}
    return VersionShare(split.weight(version), routed)


def _in_service(served: ServedVersion) -> InService:
    config, engines = served.config, served.statistics.engines
    return InService(
        running=served.running,
        instances=served.instances,
        engine=engines.load(served.instance_names) if engines.any else None,
        decoupled=served.decoupled,
        max_batch_size=max(config.dynamic_batching.preferred_batch_size, default=config.max_batch_size),
        max_queue_delay_us=config.dynamic_batching.max_queue_delay_microseconds,
        variants=served.runner.series() if isinstance(served, ServedVariants) else (),
    )


def _labels(model: ModelRecord, number: int) -> Labels:
    version = model.versions[number]
    tags = version.served.config.metric_tags if version.served is not None else version.failed_tags or {}
    names = {"model": model.name, **({"namespace": model.namespace} if model.namespace else {})}
    return Labels({**names, "version": str(number), **{f"_{key}": value for key, value in tags.items()}})
