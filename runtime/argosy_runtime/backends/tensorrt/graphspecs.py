"""CUDA graphs of an instance: `optimization { cuda { graphs: true graph_spec [ … ] } }`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelOptimizationPolicy

from argosy_runtime.errors import invalid

from .signature import Profile, Shape

_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """Batches of `smallest` to `rows` rows run as one of `rows`, 0 where the model does not batch.

    `shapes` are those of the inputs that differ from the profile's best ones, without the batch.
    """

    smallest: int
    rows: int
    shapes: Mapping[str, Shape]

    def full(self, profile: Profile) -> dict[str, Shape] | None:
        """Return the inputs' full shapes under a profile; None where the profile does not take them."""
        batch = (self.rows,) if self.rows else ()
        shapes = {}
        for name, allowed in profile.shapes.items():
            inner = self.shapes.get(name, allowed.best[len(batch) :])
            shapes[name] = (*batch, *inner)
        return shapes if profile.distance(shapes, {}) is not None else None


def graph_specs(config: ModelConfig) -> list[GraphSpec]:
    """Return the graphs to capture, smallest first; none where no graphs are requested.

    Without a `graph_spec` there is one for a batch of 1, each preferred size and the largest; without dynamic
    batching for the usual small ones. Raises ServingError (INVALID_ARG) in Triton's words for one that no batch can
    fit.
    """
    cuda = config.optimization.cuda
    if not cuda.graphs:
        return []
    if cuda.graph_spec:
        graphs = [_specified(config, spec) for spec in cuda.graph_spec]
    else:
        graphs = [GraphSpec(size, size, {}) for size in _default_sizes(config)]
    return sorted(graphs, key=lambda spec: (spec.rows, spec.smallest))


def _default_sizes(config: ModelConfig) -> list[int]:
    largest = config.max_batch_size
    if largest == 0:
        return [0]
    preferred = (1, *config.dynamic_batching.preferred_batch_size)
    sizes = preferred if config.HasField("dynamic_batching") else _SIZES
    return [size for size in sorted({*sizes, largest}) if size <= largest]


def _specified(config: ModelConfig, spec: ModelOptimizationPolicy.Cuda.GraphSpec) -> GraphSpec:
    lower = spec.graph_lower_bound
    smallest = lower.batch_size if spec.HasField("graph_lower_bound") else spec.batch_size
    largest = config.max_batch_size
    if largest == 0 and (spec.batch_size or smallest):
        raise invalid("graph spec expects 'batch_size' to be 0 if 'max_batch_size' is 0")
    if largest and not (1 <= spec.batch_size <= largest and 1 <= smallest <= largest):
        raise invalid(f"graph spec expects 'batch_size' to be >= 1 and <= {largest}")
    if smallest > spec.batch_size:
        raise invalid("graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'")
    shapes = {name: tuple(shape.dim) for name, shape in spec.input.items()}
    for name, shape in shapes.items():
        if any(size < 0 for size in shape):
            raise invalid(f"graph spec expects input '{name}' to have dimension >= 0")
        if name in lower.input and tuple(lower.input[name].dim) != shape:
            raise invalid(
                f"model '{config.name}': graph_spec, input '{name}': graph_lower_bound may lower the batch size alone, "
                f"not the shape {list(shape)}"
            )
    return GraphSpec(smallest, spec.batch_size, shapes)


__all__ = ["GraphSpec", "graph_specs"]
