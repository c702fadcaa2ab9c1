"""Batches that a model has CUDA graphs for: `optimization { cuda { graphs: true graph_spec [ … ] } }`.

Without torch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInput, ModelOptimizationPolicy

from argosy_runtime.errors import invalid

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Batches of `smallest` to `rows` rows run as one of `rows`; `shapes` are the inputs' without the batch.

    `rows` is 0 for a model without a batch dimension, whose shapes are complete.
    """

    smallest: int
    rows: int
    shapes: Mapping[str, Shape]

    def takes(self, rows: int, shapes: Mapping[str, Shape]) -> bool:
        """Return whether a batch belongs to the bucket; `rows` is 0 where the model does not batch."""
        return self.smallest <= rows <= self.rows and shapes == self.shapes


def buckets(config: ModelConfig) -> list[Bucket]:
    """Return the buckets, smallest first; none where no graphs are requested, or where no shape is fixed.

    Without a `graph_spec` there is one for each power of two, each preferred batch size and the largest batch;
    shapes must then be fixed. With one, a batch is padded only where `graph_lower_bound` allows it. Raises
    ServingError (INVALID_ARG) for a specification that no batch of this model can fit.
    """
    cuda = config.optimization.cuda
    if not cuda.graphs:
        return []
    result = [_specified(config, spec) for spec in cuda.graph_spec] if cuda.graph_spec else _default(config)
    return sorted(result, key=lambda bucket: bucket.rows)


def _default(config: ModelConfig) -> list[Bucket]:
    shapes = {entry.name: _dims(entry) for entry in config.input}
    if any(size < 0 for shape in shapes.values() for size in shape):
        return []
    largest = config.max_batch_size
    if largest == 0:
        return [Bucket(0, 0, shapes)]
    preferred = (size for size in config.dynamic_batching.preferred_batch_size if size <= largest)
    sizes = sorted({*_powers_of_two(largest), *preferred, largest})
    return [Bucket(below + 1, size, shapes) for below, size in zip([0, *sizes], sizes, strict=False)]


def _powers_of_two(largest: int) -> Iterable[int]:
    return (1 << exponent for exponent in range(largest.bit_length()))


def _specified(config: ModelConfig, spec: ModelOptimizationPolicy.Cuda.GraphSpec) -> Bucket:
    rows, largest = spec.batch_size, config.max_batch_size
    fits = 1 <= rows <= largest if largest else rows in (0, 1)
    if not fits:
        raise invalid(f"model '{config.name}': graph_spec has batch_size {rows}, and max_batch_size is {largest}")
    if not largest:
        rows = 0
    smallest = rows
    if largest and spec.HasField("graph_lower_bound"):
        smallest = max(spec.graph_lower_bound.batch_size, 1)
    shapes = {entry.name: _specified_shape(config, entry, spec) for entry in config.input}
    return Bucket(smallest, rows, shapes)


def _specified_shape(config: ModelConfig, entry: ModelInput, spec: ModelOptimizationPolicy.Cuda.GraphSpec) -> Shape:
    shape = tuple(spec.input[entry.name].dim) if entry.name in spec.input else _dims(entry)
    about = f"model '{config.name}': graph_spec, input '{entry.name}': "
    if any(size < 0 for size in shape):
        raise invalid(f"{about}its shape {list(shape)} varies; say for which one the graph is")
    lower = spec.graph_lower_bound.input
    if entry.name in lower and tuple(lower[entry.name].dim) != shape:
        raise invalid(f"{about}graph_lower_bound may lower the batch size alone, not the shape {list(shape)}")
    return shape


def _dims(entry: ModelInput) -> Shape:
    return tuple(entry.reshape.shape if entry.HasField("reshape") else entry.dims)
