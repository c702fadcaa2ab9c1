"""One model file, answering through the backend that serves it, in this process."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime import backends
from argosy_runtime.backends.contract import Call, EngineState, Infer, InstanceSpec, ServerCall
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.tensors import Tensor

from .models import Subject


class Served:
    """An instance of the backend with one model."""

    def __init__(self, subject: Subject, file: Path) -> None:
        config = ModelConfig(name="model", backend=subject.backend, max_batch_size=16, default_model_filename=file.name)
        for side, specs in (("input", subject.inputs), ("output", subject.outputs)):
            for spec in specs:
                getattr(config, side).add(name=spec.name, data_type=spec.data_type, dims=spec.dims)
        spec = InstanceSpec(config, 1, file.parent, file.parent, "model_0", "KIND_CPU", 0)
        self._instance = backends.resolve(subject.backend).load(spec, _Host())
        self._output = subject.outputs[0].name

    def rate(self, x: np.ndarray, seconds: float) -> float:
        """Return the samples/s of requests of the batch `x`, one after the other, for so long."""
        done, begin = 0, time.perf_counter()
        while (spent := time.perf_counter() - begin) < seconds:
            self.answer(x)
            done += len(x)
        return done / spent

    def answer(self, x: np.ndarray) -> np.ndarray:
        """Return the output of one request."""
        responder = _Responder()
        self._instance.execute([InferRequest("model", {"x": Tensor("x", "FP32", x)})], responder)
        response = responder.response
        assert response is not None
        if response.error is not None:
            raise response.error
        return np.asarray(next(tensor.array for tensor in response.outputs if tensor.name == self._output))


class _Responder:
    def __init__(self) -> None:
        self.response: InferResponse | None = None

    def send(self, index: int, response: InferResponse) -> None:
        self.response = response

    def is_cancelled(self, index: int) -> bool:
        return False

    def is_paused(self, index: int) -> bool:
        return False


class _Host:
    def call(self, what: Infer | ServerCall) -> Call:
        raise NotImplementedError("these models ask nothing of their server")

    def log(self, level: str, message: str) -> None:
        pass

    def report(self, state: EngineState) -> None:
        pass

    def lost(self, error: ServingError) -> None:
        raise error


def in_turns(served: Sequence[Served], x: np.ndarray, rounds: int, seconds: float) -> list[list[float]]:
    """Return the rates of each server, round by round, so that other load of the machine affects all of them."""
    for server in served:
        server.rate(x, seconds / 4)
    return [[server.rate(x, seconds) for server in served] for _ in range(rounds)]
