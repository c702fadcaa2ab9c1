"""Warmup samples: their inputs have a type, a fixed shape and data."""

from collections.abc import Iterator

from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelWarmup

from argosy_runtime.modelconfig.errors import Violation
from argosy_runtime.modelconfig.shapes import WILDCARD, shape_text


def check_warmup(config: ModelConfig) -> Iterator[Violation]:
    """Yield what is wrong with `model_warmup`. A sample of batch size 0 is skipped by the server, and here."""
    for index, sample in enumerate(config.model_warmup):
        if sample.batch_size == 0:
            continue
        for name in sorted(sample.inputs):
            path = f'model_warmup[{index}].inputs["{name}"]'
            yield from _check_input(config, path, name, sample.inputs[name])


def _check_input(config: ModelConfig, path: str, name: str, given: ModelWarmup) -> Iterator[Violation]:
    if given.data_type == pb.TYPE_INVALID:
        message = f"warmup setting expects input '{name}' to have data_type set for {config.name}"
        yield Violation(f"{path}.data_type", message)
    if WILDCARD in given.dims:
        message = f"warmup setting expects all variable-size dimensions are specified for input '{name}'"
        yield Violation(f"{path}.dims", message)
    elif any(dim < 0 for dim in given.dims):
        message = f"tensor '{name}' contains an invalid dimension {shape_text(given.dims)}"
        yield Violation(f"{path}.dims", message)
    if given.WhichOneof("input_data_type") is None:
        message = f"warmup setting expects input '{name}' to have input_data_type set"
        yield Violation(path, message)
