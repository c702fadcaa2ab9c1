"""One ONNX Runtime session that answers batches."""

from collections.abc import Sequence

import onnxruntime as ort

from argosy_runtime.backends.batching import Batcher
from argosy_runtime.backends.contract import ExecutionTimes, InstanceSpec, Responder
from argosy_runtime.errors import internal
from argosy_runtime.messages import InferRequest

from . import options
from .binding import Device, DeviceFramework
from .running import HostFramework
from .session import signature


class OnnxInstance:
    """A loaded model; `device` is None where it computes on the host.

    A model of strings goes by the host in any case: ONNX Runtime itself brings its other tensors to the device.
    """

    def __init__(self, spec: InstanceSpec, session: ort.InferenceSession, device: Device | None) -> None:
        config, found, run_options = spec.config, signature(session), options.run_options(spec.config)
        framework = (
            HostFramework(config.name, session, found, run_options)
            if device is None or found.has_strings
            else DeviceFramework(config, session, found, run_options, device)
        )
        self._name = config.name
        self._device = device
        self._batcher: Batcher | None = Batcher(config, spec.version, framework)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Join, run once, split."""
        if self._batcher is None:
            raise internal(f"model '{self._name}' is unloaded")
        return self._batcher.execute(requests, responder)

    def close(self) -> None:
        """Release the session and its memory."""
        self._batcher = None
        if self._device is not None:
            self._device.stream.close()
