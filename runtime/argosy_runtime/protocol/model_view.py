"""A codec's view of a model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig


def no_labels(output: str) -> Sequence[str]:
    """Return the label lookup of a model whose outputs have none."""
    return ()


@dataclass(frozen=True, slots=True)
class TensorView:
    """A declared input or output. `shape` has the batch dimension (-1) where the model batches; -1 is any
    size.
    """

    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model's declared tensors, whether it batches, and the classification labels of its outputs."""

    name: str
    inputs: Mapping[str, TensorView]
    max_batch_size: int = 0
    labels: Callable[[str], Sequence[str]] = no_labels

    @property
    def batches(self) -> bool:
        """Whether the first dimension of every tensor is the batch."""
        return self.max_batch_size > 0


def view_of(
    metadata: pb.ModelMetadataResponse,
    config: ModelConfig,
    labels: Callable[[str], Sequence[str]] = no_labels,
) -> ModelView:
    """Return the view of a model from its metadata and configuration messages."""
    inputs = {tensor.name: TensorView(tensor.datatype, tuple(tensor.shape)) for tensor in metadata.inputs}
    return ModelView(metadata.name, inputs, config.max_batch_size, labels)
