"""An ensemble's graph: tensors are written once and read, types and shapes agree, nothing runs in circles."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from argosy.api.ensemble import Ensemble, Step
from argosy.api.inferencemodel import InferenceModel
from argosy.api.values.base import Fault
from argosy.api.values.tensors import Tensor
from argosy.api.values.versions import VersionPolicy
from argosy.planning.cycles import find_cycle
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.variants import RoutedModel
from argosy_common.wording import did_you_mean
from argosy_runtime.modelconfig.shapes import full_shape, shape_text, tensors_fit

Served = InferenceModel | Ensemble
"""What a step may run."""
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class End:
    """One end of an ensemble tensor: `source` writes or reads it, at `path` of the spec.

    `batch` is the largest one, 0 without a batch dimension, None where only the model's files say.
    """

    source: str
    path: Path
    batch: int | None = 0
    tensor: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Invalid:
    """The `names` of resources that exist and take no part, because they have errors of their own.

    A reference to one of them is an error only if `is_error`, and then its message says so.
    """

    names: Collection[str] = ()
    is_error: bool = False


NONE_INVALID = Invalid()


def check_graph(
    ensemble: Ensemble, models: Mapping[str, Served], invalid: Invalid = NONE_INVALID, has_pool: bool = True
) -> list[Fault]:
    """Return all errors between an ensemble and its steps' models, with paths from the resource's root.

    `models` are the models and ensembles of its namespace by name, `invalid` the invalid ones there: steps that run one
    are checked only for their position in the graph. Without `has_pool` the ensemble's pool does not exist, and models
    in other pools are no further error.
    """
    graph = Graph.of(ensemble, models)
    return [
        *_check_models(ensemble, models, invalid, has_pool),
        *_check_mappings(ensemble, models),
        *_check_flow(graph),
        *_check_tensors(graph),
    ]


@dataclass(frozen=True, slots=True)
class Graph:
    """The tensors of an ensemble, each with the ends that write it and those that read it."""

    ensemble: Ensemble
    writers: Mapping[str, tuple[End, ...]]
    readers: Mapping[str, tuple[End, ...]]

    @classmethod
    def of(cls, ensemble: Ensemble, models: Mapping[str, Served]) -> "Graph":
        """Return the graph of an ensemble. Tensors of models that are not in `models` have an unknown type."""
        writers: dict[str, list[End]] = {}
        readers: dict[str, list[End]] = {}
        batch = ensemble.spec.max_batch_size
        for index, declared in enumerate(ensemble.spec.inputs):
            end = End("the ensemble's inputs", ("spec", "inputs", index), batch, declared)
            writers.setdefault(declared.name, []).append(end)
        for index, step in enumerate(ensemble.spec.steps):
            for name, tensor in step.inputs.items():
                readers.setdefault(tensor, []).append(_end(index, step, models, "inputs", name))
            for name, tensor in step.outputs.items():
                writers.setdefault(tensor, []).append(_end(index, step, models, "outputs", name))
        for index, output in enumerate(ensemble.spec.outputs):
            end = End("the ensemble's outputs", ("spec", "outputs", index), batch, output)
            readers.setdefault(output.name, []).append(end)
        return cls(ensemble, _frozen(writers), _frozen(readers))


def _frozen(ends: dict[str, list[End]]) -> dict[str, tuple[End, ...]]:
    return {tensor: tuple(readers) for tensor, readers in ends.items()}


def _end(index: int, step: Step, models: Mapping[str, Served], side: str, name: str) -> End:
    model = models.get(step.model)
    declared = {tensor.name: tensor for tensor in getattr(model.spec, side)} if model else {}
    batch = _batch(model) if model else 0
    return End(_step_name(index, step), ("spec", "steps", index, side, name), batch, declared.get(name))


def _batch(served: Served) -> int | None:
    return served.spec.max_batch_size if isinstance(served, Ensemble) else served.spec.batch_size


def _step_name(index: int, step: Step) -> str:
    return f"steps[{index}] ({step.model})"


def _check_models(
    ensemble: Ensemble, models: Mapping[str, Served], invalid: Invalid, has_pool: bool
) -> Iterator[Fault]:
    for index, step in enumerate(ensemble.spec.steps):
        path: Path = ("spec", "steps", index)
        model = models.get(step.model)
        if model is not None:
            yield from _check_step(ensemble, step, model, path, has_pool)
        elif step.model not in invalid.names:
            yield Fault(_no_model(step.model, ensemble, models), (*path, "model"))
        elif invalid.is_error:
            yield Fault(f"{step.model!r} is not valid itself; correct that first", (*path, "model"))


def _check_step(ensemble: Ensemble, step: Step, model: Served, path: Path, has_pool: bool) -> Iterator[Fault]:
    if has_pool and model.spec.pool_ref != ensemble.spec.pool_ref:
        yield Fault(
            f"{step.model!r} is in pool {model.spec.pool_ref.name!r}, "
            f"and the ensemble in {ensemble.spec.pool_ref.name!r}; all of an ensemble is served by one pool",
            (*path, "model"),
        )
    if isinstance(model, RoutedModel) and model.is_separate:
        yield Fault(
            f"the variants of {step.model!r} have servers of their own (routing.placement: Separate), and all that an "
            "ensemble runs shares one; set SameServer there",
            (*path, "model"),
        )
    if not isinstance(model, PinnedEnsemble) and not _serves(model, step.version):
        yield Fault(
            f"{step.model!r} serves version {model.spec.default_version}, and not {step.version}; "
            "leave version out, or list it in the model's versionPolicy.specific.versions",
            (*path, "version"),
        )
    batch = _batch(model)
    if batch and batch < ensemble.spec.max_batch_size:
        yield Fault(
            f"{step.model!r} takes batches of at most {batch}, "
            f"and the ensemble's maxBatchSize is {ensemble.spec.max_batch_size}; "
            "lower it, or raise the model's",
            (*path, "model"),
        )


def _no_model(name: str, ensemble: Ensemble, models: Mapping[str, Served]) -> str:
    return (
        f"there is no InferenceModel or Ensemble {name!r} in namespace {ensemble.namespace!r}"
        f"{did_you_mean(name, sorted(models))}"
    )


def _serves(model: Served, version: int | None) -> bool:
    """Return whether a version may be served; with `latest` and `all` any may, since only the storage decides."""
    declared = {model.spec.version} if isinstance(model, Ensemble) else set(model.spec.declared_versions)
    if version is None or version in declared:
        return True
    policy: VersionPolicy | None = getattr(model.spec, "version_policy", None)
    if policy is None or version > model.spec.default_version:
        return False
    if policy.specific is not None:
        return version in policy.specific.versions
    return policy.latest is None or policy.latest.num_versions > 1


def _check_mappings(ensemble: Ensemble, models: Mapping[str, Served]) -> Iterator[Fault]:
    """Yield faults of mappings: a step names its model's tensors, and all required ones. A model without tensors
    declares none.
    """
    for index, step in enumerate(ensemble.spec.steps):
        model = models.get(step.model)
        if model is None:
            continue
        for side in ("inputs", "outputs"):
            declared: tuple[Tensor, ...] = getattr(model.spec, side)
            names = [tensor.name for tensor in declared]
            for name in getattr(step, side) if names else ():
                if name not in names:
                    yield Fault(
                        f"{step.model!r} has no {side[:-1]} {name!r}{did_you_mean(name, names)}",
                        ("spec", "steps", index, side, name),
                    )
        for tensor in model.spec.inputs:
            if not tensor.optional and tensor.name not in step.inputs:
                yield Fault(
                    f"{step.model!r} requires input {tensor.name!r}; map it to a tensor of the ensemble",
                    ("spec", "steps", index, "inputs"),
                )


def _check_flow(graph: Graph) -> Iterator[Fault]:
    """Yield faults of the flow: every tensor has one writer and a reader, and no step waits for itself."""
    for tensor, ends in graph.readers.items():
        if tensor not in graph.writers:
            written = set(graph.writers)
            for end in ends:
                yield Fault(
                    f"no step writes {tensor!r}, nor is it an input{did_you_mean(tensor, sorted(written))}",
                    end.path,
                )
    for tensor, ends in graph.writers.items():
        for end in ends[1:]:
            yield Fault(f"{tensor!r} is already written by {ends[0].source}; give it another name", end.path)
        if tensor not in graph.readers:
            yield Fault(f"nothing reads {tensor!r}; remove it, or map a step's input or an output to it", ends[0].path)
    cycle = step_cycle(graph.ensemble)
    if cycle:
        steps = graph.ensemble.spec.steps
        named = " → ".join(_step_name(index, steps[index]) for index in (*cycle, cycle[0]))
        yield Fault(f"the steps wait for each other: {named}; a graph of steps has no circle", ("spec", "steps"))


def step_cycle(ensemble: Ensemble) -> tuple[int, ...]:
    """Return the indexes of steps that wait for each other in a circle, in the order of the flow; empty if none do."""
    steps = ensemble.spec.steps
    inputs = {tensor.name for tensor in ensemble.spec.inputs}
    after = {
        index: tuple(
            later
            for later, reader in enumerate(steps)
            if (set(step.outputs.values()) - inputs) & set(reader.inputs.values())
        )
        for index, step in enumerate(steps)
    }
    return find_cycle(after)


def _check_tensors(graph: Graph) -> Iterator[Fault]:
    """Yield faults where writer and readers of a tensor disagree on its type or shape, as far as they are declared."""
    for name, readers in graph.readers.items():
        writer = next((end for end in graph.writers.get(name, ()) if end.tensor is not None), None)
        if writer is None:
            writer, readers = _first_resolved(readers)
        for reader in readers:
            fault = _disagreement(name, writer, reader) if writer else None
            if fault is not None:
                yield fault


def _first_resolved(ends: tuple[End, ...]) -> tuple[End | None, tuple[End, ...]]:
    """Return the writer, or the first reader that declares the tensor where the writer does not."""
    resolved = [end for end in ends if end.tensor is not None]
    return (resolved[0], tuple(resolved[1:])) if resolved else (None, ())


def _disagreement(name: str, one: End, other: End) -> Fault | None:
    if one.tensor is None or other.tensor is None:
        return None
    if one.tensor.data_type is not other.tensor.data_type:
        return Fault(
            f"{name!r} is {one.tensor.data_type} in {one.source} and {other.tensor.data_type} in {other.source}; "
            "make them the same",
            other.path,
        )
    pairs = ((left, right) for left in _possible(one.batch) for right in _possible(other.batch))
    if any(tensors_fit(one.tensor.dims, left, other.tensor.dims, right) for left, right in pairs):
        return None
    return Fault(
        f"{name!r} has shape {_shape(one)} in {one.source} and {_shape(other)} in {other.source}; "
        "each size must be the same, or -1 on one side",
        other.path,
    )


def _possible(batch: int | None) -> tuple[int, ...]:
    """Return one batch size of every kind that it may be: with a batch dimension, and without."""
    return (0, 1) if batch is None else (batch,)


def _shape(end: End) -> str:
    dims = end.tensor.dims if end.tensor else ()
    batch = " with the batch" if end.batch else ""
    return f"{shape_text(full_shape(dims, end.batch or 0))}{batch}"


def nesting_cycle(ensembles: Mapping[str, Ensemble]) -> tuple[str, ...]:
    """Return names of ensembles (of one namespace, by name) that hold each other in a circle; empty if none do."""
    inner = {
        name: tuple(step.model for step in ensemble.spec.steps if step.model in ensembles)
        for name, ensemble in ensembles.items()
    }
    return find_cycle(inner)


def members(ensemble: Ensemble, ensembles: Mapping[str, Ensemble]) -> tuple[str, ...]:
    """Return names of all models that must share its server: its steps', and those of ensembles nested in it.

    Each once, nested ensembles left out, in the order of the steps. `ensembles` are the namespace's by name.
    """
    names: dict[str, None] = {}
    waiting, seen = [ensemble], {ensemble.name}
    while waiting:
        for step in waiting.pop().spec.steps:
            inner = ensembles.get(step.model)
            if inner is None:
                names[step.model] = None
            elif inner.name not in seen:
                seen.add(inner.name)
                waiting.append(inner)
    return tuple(names)
