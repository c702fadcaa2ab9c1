"""One PyTorch model that answers batches."""

from collections.abc import Sequence

import torch

from argosy_runtime.backends.batching import Batcher
from argosy_runtime.backends.contract import ExecutionTimes, Host, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import internal
from argosy_runtime.messages import InferRequest

from .forms import OpenModel
from .graphs import with_graphs
from .running import TorchFramework
from .transfers import transfers_of


class TorchInstance:
    """A loaded model."""

    def __init__(self, spec: InstanceSpec, model: OpenModel, host: Host) -> None:
        self._name = spec.config.name
        self._on_gpu = model.device.type == "cuda"
        self._cleans_cache = Parameters(spec.config).flag("ENABLE_CACHE_CLEANING", False) and self._on_gpu
        call = with_graphs(spec, model.call, model.device, host)
        framework = TorchFramework(spec, call, transfers_of(spec, model.device))
        self._batcher: Batcher | None = Batcher(spec.config, spec.version, framework)
        # With others of this process, where they share its weights.
        self._model: OpenModel | None = model

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Join, run once, split."""
        if self._batcher is None:
            raise internal(f"model '{self._name}' is unloaded")
        times = self._batcher.execute(requests, responder)
        if self._cleans_cache:
            torch.cuda.empty_cache()
        return times

    def close(self) -> None:
        """Release the model and its memory."""
        self._batcher = self._model = None
        if self._on_gpu:
            torch.cuda.empty_cache()
