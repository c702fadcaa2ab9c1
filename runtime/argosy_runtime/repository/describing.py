"""What is told of the models: metadata, statistics, the index, as the protocol's messages."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelInput, ModelOutput

from argosy_runtime.errors import invalid
from argosy_runtime.modelconfig.datatypes import v2_name

from .records import ModelRecord, State
from .served import ServedVersion

TensorMetadata: TypeAlias = pb.ModelMetadataResponse.TensorMetadata


def metadata(served: ServedVersion, record: ModelRecord) -> pb.ModelMetadataResponse:
    """A version's tensors, with the batch dimension where there is one; all versions that serve."""
    config = served.config
    batch = config.max_batch_size > 0
    return pb.ModelMetadataResponse(
        name=record.name,
        versions=[str(number) for number, _ in record.serving()],
        platform=config.platform or config.backend,
        inputs=[_tensor(tensor, batch) for tensor in config.input],
        outputs=[_tensor(tensor, batch) for tensor in config.output],
    )


def _tensor(tensor: ModelInput | ModelOutput, batch: bool) -> TensorMetadata:
    shape = [-1, *tensor.dims] if batch else list(tensor.dims)
    return TensorMetadata(name=tensor.name, datatype=v2_name(tensor.data_type), shape=shape)


def statistics(records: Iterable[ModelRecord], name: str, version: str) -> pb.ModelStatisticsResponse:
    """The counters of what serves. `name` and `version` are what was asked for; ServingError where that does not."""
    serving = [(record.name, str(number), served) for record in records for number, served in record.serving()]
    if name and not serving:
        raise invalid(f"requested model '{name}' is not available")
    chosen = [(model, number, served) for model, number, served in serving if version in ("", number)]
    if version and not chosen:
        raise invalid(f"requested model version is not available for model '{name}'")
    return pb.ModelStatisticsResponse(
        model_stats=[served.statistics.message(model, number) for model, number, served in chosen]
    )


def index(records: Mapping[str, ModelRecord], names: Iterable[str], ready_only: bool) -> pb.RepositoryIndexResponse:
    """The state of every version of these models; one that was never loaded is there by name alone."""
    response = pb.RepositoryIndexResponse()
    for name in sorted(names):
        versions = records[name].versions if name in records else {}
        for number, held in sorted(versions.items()):
            state = held.state
            if not ready_only or state is State.READY:
                response.models.add(name=name, version=str(number), state=state.value, reason=held.reason)
        if not versions and not ready_only:
            response.models.add(name=name)
    return response
