"""An ensemble by itself: what it may not set, and that every tensor is written and read."""

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.ensembles.graph import EnsembleGraph
from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.modelfiles import ENSEMBLE

_PATH = "ensemble_scheduling"


def check_ensemble(config: ModelConfig) -> Iterator[Violation]:
    """Check that scheduling and platform go together; then the steps and the flow between them."""
    if config.HasField("ensemble_scheduling"):
        yield from _check_fields(config)
        broken = list(_check_steps(config))
        yield from broken
        if not broken:
            yield from _check_flow(config)
    elif config.platform == ENSEMBLE:
        message = f"ensemble scheduling must be set for ensemble {config.name} whose platform is {ENSEMBLE}"
        yield Violation(_PATH, message)


def _check_fields(config: ModelConfig) -> Iterator[Violation]:
    name = config.name
    if config.platform != ENSEMBLE:
        message = f"ensemble scheduling cannot be set for model '{name}' whose platform is not {ENSEMBLE}"
        yield Violation("platform", message)
    if config.instance_group:
        yield Violation("instance_group", f"instance group should not be specified for ensemble '{name}'")
    if config.HasField("optimization"):
        yield Violation("optimization", f"optimization should not be specified for ensemble '{name}'")
    if config.model_warmup:
        yield Violation("model_warmup", f"model_warmup can not be specified for ensemble '{name}'")
    if not config.ensemble_scheduling.step:
        yield Violation(f"{_PATH}.step", f"must specify 'step' for ensemble '{name}'")


def _check_steps(config: ModelConfig) -> Iterator[Violation]:
    written: set[str] = set()
    for step in EnsembleGraph.parse(config).steps:
        path = f"{_PATH}.step[{step.index}]"
        fields = {"model_name": step.model_name, "input_map": step.inputs, "output_map": step.outputs}
        for field, value in fields.items():
            if not value:
                message = f"must specify '{field}' in step {step.index} of ensemble '{config.name}'"
                yield Violation(f"{path}.{field}", message)
        for output, tensor in step.outputs.items():
            if tensor in written:
                yield Violation(
                    f'{path}.output_map["{output}"]',
                    f"ensemble tensor '{tensor}' can appear in an output map only once for ensemble "
                    f"'{config.name}' step {step.index}",
                )
            written.add(tensor)


def _check_flow(config: ModelConfig) -> Iterator[Violation]:
    graph = EnsembleGraph.parse(config)
    read = {tensor for step in graph.steps for tensor in step.consumes}
    tensors = read | {tensor for step in graph.steps for tensor in step.produces}
    for index, name in enumerate(graph.inputs):
        if name not in tensors:
            message = f"ensemble input '{name}' for ensemble {config.name} is not used"
            yield Violation(f"input[{index}].name", message)
    ready = graph.reachable()
    for index, name in enumerate(graph.outputs):
        if name not in tensors:
            message = f"ensemble output '{name}' for ensemble {config.name} is not used"
            yield Violation(f"output[{index}].name", message)
        elif name not in ready:
            yield Violation(f"output[{index}].name", _unwritten(graph, name, ready))
    for tensor in sorted(tensors - set(graph.outputs)):
        if tensor not in ready or tensor not in read:
            message = f"ensemble tensor '{tensor}' is unused in ensemble '{config.name}'"
            yield Violation(_first_mention(graph, tensor), message)


def _unwritten(graph: EnsembleGraph, output: str, ready: frozenset[str]) -> str:
    """Return the error of an output that is never written: where its chain of tensors breaks or closes a cycle."""
    message = f"output '{output}' for ensemble '{graph.name}' is not written"
    source, seen = output, {output}
    while step := graph.producer(source):
        waiting = sorted(step.consumes - ready - seen)
        if not waiting:
            break
        source = waiting[0]
        seen.add(source)
    if source == output:
        return message
    return f"{message}: at least one of its depending tensors, '{source}', is not connected"


def _first_mention(graph: EnsembleGraph, tensor: str) -> str:
    for step in graph.steps:
        for field, mapping in (("input_map", step.inputs), ("output_map", step.outputs)):
            for name, mapped in mapping.items():
                if mapped == tensor:
                    return f'{_PATH}.step[{step.index}].{field}["{name}"]'
    return _PATH
