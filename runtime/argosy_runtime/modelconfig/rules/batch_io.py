"""batch_input and batch_output: tensors the server derives from a batch, and outputs it scatters."""

from collections.abc import Iterator

from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.grpc.model_config_pb2 import BatchInput, BatchOutput, ModelConfig

from argosy_runtime.modelconfig.errors import Violation


def check_batch_io(config: ModelConfig) -> Iterator[Violation]:
    """Check that each has one existing source and a type of its kind, and that targets are unique."""
    for index, batch_input in enumerate(config.batch_input):
        path = f"batch_input[{index}]"
        kind = _kind_name(BatchInput.Kind, batch_input.kind)
        yield from _check_sources(config, path, f"batch input kind '{kind}'", batch_input)
        if batch_input.data_type not in (pb.TYPE_INT32, pb.TYPE_FP32):
            message = f"batch input data type must be TYPE_INT32 or TYPE_FP32 for {config.name}"
            yield Violation(f"{path}.data_type", message)
    for index, batch_output in enumerate(config.batch_output):
        path = f"batch_output[{index}]"
        kind = _kind_name(BatchOutput.Kind, batch_output.kind)
        yield from _check_sources(config, path, f"batch output kind '{kind}'", batch_output)
        yield from _check_targets(config, path, batch_output)


def _kind_name(kinds: type[BatchInput.Kind], kind: int) -> str:
    return str(kinds.Name(kind)) if kind in kinds.values() else str(kind)


def _check_sources(config: ModelConfig, path: str, kind: str, batch_io: BatchInput) -> Iterator[Violation]:
    if len(batch_io.source_input) != 1:
        message = f"{kind} expects 1 source input, got {len(batch_io.source_input)} for {config.name}"
        yield Violation(f"{path}.source_input", message)
    names = {spec.name for spec in config.input}
    for index, name in enumerate(batch_io.source_input):
        if name not in names:
            message = f"unknown source input name '{name}' for {config.name}"
            yield Violation(f"{path}.source_input[{index}]", message)


def _check_targets(config: ModelConfig, path: str, batch_output: BatchOutput) -> Iterator[Violation]:
    names = {spec.name for spec in config.output}
    seen: set[str] = set()
    for index, name in enumerate(batch_output.target_name):
        where = f"{path}.target_name[{index}]"
        if name not in names:
            yield Violation(where, f"unknown target output name '{name}' for {config.name}")
        elif name in seen:
            yield Violation(where, f"target output name '{name}' can only be specified once for {config.name}")
        seen.add(name)
