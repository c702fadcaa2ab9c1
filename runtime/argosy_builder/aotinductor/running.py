"""Runs a PyTorch file for the accuracy check, opened by the backend that serves it."""

from collections.abc import Mapping
from pathlib import Path

import torch
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_agent.contract.builds import BuildFailure, BuildRequest, TensorSpec
from argosy_builder.contract import Array, BuildError
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.pytorch import naming, opening, structure, tensors
from argosy_runtime.errors import ServingError

from .files import model_file


class TorchRunner:
    """Runs the model of a request through the PyTorch backend, on the device of the request's architecture."""

    def __init__(self, folder: Path, request: BuildRequest) -> None:
        path = model_file(folder, request.filename)
        config = _config(request, path)
        kind = "KIND_GPU" if request.architecture[:1].isdigit() else "KIND_CPU"
        spec = InstanceSpec(config, 1, folder, folder, "model", kind, 0)
        try:
            self._model = opening.open_model(spec, path)
        except ServingError as error:
            raise BuildError(BuildFailure.MODEL_INVALID, str(error)) from error
        self._outputs = [output.name for output in config.output]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the outputs by name. Raises BuildError."""
        arguments = {name: tensors.from_numpy(array).to(self._model.device) for name, array in inputs.items()}
        try:
            with torch.inference_mode():
                leaves, values = structure.result_leaves(self._model.call(arguments))
            positions = naming.positions("model", "output", self._outputs, leaves)
        except (ServingError, RuntimeError, KeyError, TypeError, AssertionError) as error:
            raise BuildError(
                BuildFailure.ACCURACY_DATA_INVALID,
                f"spec.engine.accuracy.dataUri: the model does not take this sample: {error}; correct spec.inputs or "
                "the data",
            ) from error
        return {name: tensors.to_numpy(values[position].cpu()) for name, position in positions.items()}


def _config(request: BuildRequest, path: Path) -> ModelConfig:
    if not request.inputs or not request.outputs:
        raise BuildError(
            BuildFailure.MODEL_INVALID, "spec.inputs and spec.outputs: are required, as PyTorch's files tell neither"
        )
    config = ModelConfig(name="model", backend="pytorch", default_model_filename=path.name)
    if path.suffix == ".py":
        config.runtime = opening.RUNTIME
    for side, specs in (("input", request.inputs), ("output", request.outputs)):
        for spec in specs:
            _add(config, side, spec)
    return config


def _add(config: ModelConfig, side: str, spec: TensorSpec) -> None:
    getattr(config, side).add(name=spec.name, data_type=spec.data_type, dims=spec.dims)
