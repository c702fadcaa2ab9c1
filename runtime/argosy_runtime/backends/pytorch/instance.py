"""One PyTorch model that answers batches."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from argosy_runtime.backends.batching import Batcher, state_outputs
from argosy_runtime.backends.contract import ExecutionTimes, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array, InferRequest
from argosy_runtime.modelconfig import v2_name

from . import naming, structure, tensors
from .forms import OpenModel

_jit: Any = torch.jit  # untyped


class TorchInstance:
    """A loaded model."""

    def __init__(self, spec: InstanceSpec, model: OpenModel) -> None:
        self._name = spec.config.name
        self._model: OpenModel | None = model
        self._batcher = Batcher(spec.config, spec.version, self._run)
        outputs = [*spec.config.output, *state_outputs(spec.config).values()]
        self._datatypes = {output.name: v2_name(output.data_type) for output in outputs}
        parameters = Parameters(spec.config)
        self._inference_mode = parameters.flag("INFERENCE_MODE", True)
        self._optimized = not parameters.flag("DISABLE_OPTIMIZED_EXECUTION", False)
        self._cudnn = not parameters.flag("DISABLE_CUDNN", False)
        self._cleans_cache = parameters.flag("ENABLE_CACHE_CLEANING", False) and model.device.type == "cuda"

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Join, run once, split."""
        times = self._batcher.execute(requests, responder)
        if self._cleans_cache:
            torch.cuda.empty_cache()
        return times

    def close(self) -> None:
        """Release the model and its memory."""
        on_gpu = self._model is not None and self._model.device.type == "cuda"
        self._model = None
        if on_gpu:
            torch.cuda.empty_cache()

    def _run(self, inputs: Mapping[str, Array], wanted: Sequence[str]) -> dict[str, Array]:
        if self._model is None:
            raise internal(f"model '{self._name}' is unloaded")
        device = self._model.device
        with self._settings():
            given = {name: tensors.to_torch(self._name, name, array, device) for name, array in inputs.items()}
            leaves, values = structure.result_leaves(self._model.call(given))
            places = naming.positions(self._name, "output", list(self._datatypes), leaves)
            outputs = {name: tensors.to_numpy(self._name, name, values[places[name]]) for name in wanted}
        for name, array in outputs.items():
            tensors.check_datatype(self._name, name, array, self._datatypes[name])
        return outputs

    @contextmanager
    def _settings(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode() if self._inference_mode else torch.no_grad())
            if not self._optimized:
                stack.enter_context(_jit.optimized_execution(False))
            if not self._cudnn:
                stack.enter_context(torch.backends.cudnn.flags(enabled=False))
            yield
