"""An ensemble against the models its steps run: names, types, shapes, batch sizes, decoupled responses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.datatypes import config_name
from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.shapes import full_shape, shape_text, tensors_fit

from .graph import EnsembleGraph, EnsembleStep, Lineage


@dataclass(frozen=True, slots=True)
class _Inferred:
    """Type and shape of an ensemble tensor, and the model that they come from."""

    model: str
    data_type: int
    dims: tuple[int, ...]
    max_batch_size: int


def check_steps(config: ModelConfig, configs_of_steps: Mapping[str, ModelConfig]) -> list[Violation]:
    """Return the contradictions of an ensemble and its models (complete configurations by name), in Triton's words.

    The path names the step and the tensor: `ensemble_scheduling.step[1].input_map["INPUT0"]`.
    """
    graph = EnsembleGraph.parse(config)
    unknown = [step for step in graph.steps if step.model_name not in configs_of_steps]
    if unknown:
        names = ", ".join(sorted({step.model_name for step in unknown}))
        return [
            Violation(
                f"{_path(step)}.model_name",
                f"ensemble {config.name} contains models that are not available or ambiguous: {names}",
            )
            for step in unknown
        ]
    violations: list[Violation] = []
    tensors = _declared(config)
    for step in graph.steps:
        model = configs_of_steps[step.model_name]
        violations += _check_batch(config, step, model)
        violations += _check_inputs(config, step, model, tensors)
        violations += _check_outputs(config, step, model, tensors)
    violations += _check_lineage(graph, configs_of_steps)
    return violations


def is_decoupled(config: ModelConfig, configs_of_steps: Mapping[str, ModelConfig]) -> bool:
    """Return whether an ensemble answers any number of times: one of its reachable steps does."""
    graph = EnsembleGraph.parse(config)
    return any(
        configs_of_steps[step.model_name].model_transaction_policy.decoupled for wave in graph.waves() for step in wave
    )


def _path(step: EnsembleStep) -> str:
    return f"ensemble_scheduling.step[{step.index}]"


def _declared(config: ModelConfig) -> dict[str, _Inferred]:
    return {
        spec.name: _Inferred(
            config.name,
            spec.data_type,
            tuple(spec.reshape.shape if spec.HasField("reshape") else spec.dims),
            config.max_batch_size,
        )
        for spec in (*config.output, *config.input)
    }


def _check_batch(config: ModelConfig, step: EnsembleStep, model: ModelConfig) -> Iterator[Violation]:
    # A model without batching may still fit: its first dimension then takes the ensemble's batch.
    if model.max_batch_size != 0 and model.max_batch_size < config.max_batch_size:
        yield Violation(
            f"{_path(step)}.model_name",
            f"ensemble {config.name} allows maximum batch size {config.max_batch_size}, but it contains "
            f"model {step.model_name} which only allows maximum batch size to be {model.max_batch_size}",
        )


def _check_inputs(
    config: ModelConfig, step: EnsembleStep, model: ModelConfig, tensors: dict[str, _Inferred]
) -> Iterator[Violation]:
    begin = f"in ensemble {config.name}, "
    specs = {spec.name: spec for spec in model.input}
    for name, tensor in step.inputs.items():
        path = f'{_path(step)}.input_map["{name}"]'
        if name in specs:
            yield from _check_tensor(config, path, tensor, _from_model(step, model, specs[name]), tensors)
        else:
            yield Violation(
                path,
                f"{begin}ensemble tensor {tensor} is mapping to non-existing input {name} in model {step.model_name}",
            )
    for name, spec in specs.items():
        if name not in step.inputs and not spec.optional:
            message = f"input {name} in model {step.model_name} is not mapped to any ensemble tensors"
            yield Violation(f'{_path(step)}.input_map["{name}"]', begin + message)


def _check_outputs(
    config: ModelConfig, step: EnsembleStep, model: ModelConfig, tensors: dict[str, _Inferred]
) -> Iterator[Violation]:
    specs = {spec.name: spec for spec in model.output}
    for name, tensor in step.outputs.items():
        path = f'{_path(step)}.output_map["{name}"]'
        if name in specs:
            yield from _check_tensor(config, path, tensor, _from_model(step, model, specs[name]), tensors)
        else:
            yield Violation(
                path,
                f"in ensemble {config.name}, ensemble tensor {tensor} is mapped from non-existing output "
                f"{name} in model {step.model_name}",
            )


def _from_model(step: EnsembleStep, model: ModelConfig, spec: ModelConfig) -> _Inferred:
    return _Inferred(step.model_name, spec.data_type, tuple(spec.dims), model.max_batch_size)


def _check_tensor(
    config: ModelConfig, path: str, tensor: str, inferred: _Inferred, tensors: dict[str, _Inferred]
) -> Iterator[Violation]:
    """Compare a tensor with earlier steps and the ensemble, and record it for later ones."""
    first = tensors.setdefault(tensor, inferred)
    begin = f"in ensemble {config.name}, ensemble tensor {tensor}: inconsistent"
    if first.data_type != inferred.data_type:
        yield Violation(
            path,
            f"{begin} data type: {config_name(first.data_type)} is inferred from model {first.model} while "
            f"{config_name(inferred.data_type)} is inferred from model {inferred.model}",
        )
    elif not tensors_fit(first.dims, first.max_batch_size, inferred.dims, inferred.max_batch_size):
        yield Violation(
            path,
            f"{begin} shape: {shape_text(full_shape(first.dims, first.max_batch_size))} is inferred from "
            f"model {first.model} while {shape_text(full_shape(inferred.dims, inferred.max_batch_size))} "
            f"is inferred from model {inferred.model}",
        )


def _check_lineage(graph: EnsembleGraph, models: Mapping[str, ModelConfig]) -> Iterator[Violation]:
    lineage = Lineage.of(graph, lambda step: models[step.model_name].model_transaction_policy.decoupled)
    for step in lineage.mixed:
        path, model = (_path(step), step.model_name) if step is not None else ("output", graph.name)
        yield Violation(
            path,
            f"in ensemble {graph.name}, step of model '{model}' receives inputs originated from different decoupled "
            "models",
        )
