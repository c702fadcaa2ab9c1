"""One run of a PyTorch model: names to positions, the settings it runs under, and where its tensors are."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from argosy_runtime.backends.batching import BatchedInstance, Output, state_outputs
from argosy_runtime.backends.contract import ExecutionTimes, Host, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.messages import Array, InferRequest, Tensor
from argosy_runtime.modelconfig import v2_name

from . import naming, structure, tensors
from .graphs import Call, with_graphs
from .opening import OpenModel
from .transfers import Transfers, transfers_of

_jit: Any = torch.jit  # untyped


class TorchFramework:
    """A `Framework` on a PyTorch model."""

    def __init__(self, spec: InstanceSpec, call: Call, transfers: Transfers) -> None:
        self._name = spec.config.name
        self._call = call
        self._transfers = transfers
        outputs = [*spec.config.output, *state_outputs(spec.config).values()]
        self._datatypes = {output.name: v2_name(output.data_type) for output in outputs}
        parameters = Parameters(spec.config)
        self._inference_mode = parameters.flag("INFERENCE_MODE", True)
        self._optimized = not parameters.flag("DISABLE_OPTIMIZED_EXECUTION", False)
        self._cudnn = not parameters.flag("DISABLE_CUDNN", False)

    @contextmanager
    def batch(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode() if self._inference_mode else torch.no_grad())
            if not self._optimized:
                stack.enter_context(_jit.optimized_execution(False))
            if not self._cudnn:
                stack.enter_context(torch.backends.cudnn.flags(enabled=False))
            stack.enter_context(self._transfers.batch())
            yield

    def gather(self, name: str, inputs: Sequence[Tensor]) -> Any:
        """Return an input joined on the device; a list of str for BYTES."""
        if inputs[0].datatype == "BYTES":
            return tensors.to_texts(self._name, name, [tensor.array for tensor in inputs])
        return self._transfers.gather(inputs)

    def run(self, inputs: Mapping[str, Any], requested: Sequence[str]) -> Mapping[str, Output]:
        leaves, values = structure.result_leaves(self._call(inputs))
        positions = naming.positions(self._name, "output", list(self._datatypes), leaves)
        outputs = {name: self._output(name, values[positions[name]]) for name in requested}
        self._transfers.synchronize()
        return outputs

    def _output(self, name: str, value: Any) -> Output:
        tensors.check_datatype(self._name, name, value, self._datatypes[name])
        return tensors.from_texts(value) if isinstance(value, list) else self._transfers.output(value)

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        return self._transfers.fetch(outputs)


class TorchInstance(BatchedInstance):
    """A model on the instance's device."""

    def __init__(self, spec: InstanceSpec, model: OpenModel, host: Host) -> None:
        call = with_graphs(spec, model.call, model.device, host)
        super().__init__(spec.config, spec.version, TorchFramework(spec, call, transfers_of(spec, model.device)))
        # Shared with other instances of this process where they share its weights.
        self._model: OpenModel | None = model
        self._on_gpu = model.device.type == "cuda"
        self._cleans_cache = self._on_gpu and Parameters(spec.config).flag("ENABLE_CACHE_CLEANING", False)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Execute a batch, and empty torch's cache where the configuration asks for that."""
        times = super().execute(requests, responder)
        if self._cleans_cache:
            torch.cuda.empty_cache()
        return times

    def close(self) -> None:
        """Release the model and its memory."""
        super().close()
        self._model = None
        if self._on_gpu:
            torch.cuda.empty_cache()
