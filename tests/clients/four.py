"""tritonclient's four clients under one face: each call returns its result, an asyncio client's as well.

The clients themselves are unchanged; only what differs between their signatures is levelled here.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import triton_to_np_dtype

MODULES: dict[str, ModuleType] = {
    "http": tritonclient.http,
    "http.aio": tritonclient.http.aio,
    "grpc": tritonclient.grpc,
    "grpc.aio": tritonclient.grpc.aio,
}
NUMPY_TYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
    "BF16": triton_to_np_dtype("BF16"),
}
"""What the client takes and gives for each datatype; for BF16 its releases differ."""


@dataclass
class FourClient:
    """One of the four clients, connected; `name` is its key in MODULES."""

    name: str
    module: ModuleType
    inner: Any
    runner: asyncio.Runner

    @property
    def is_grpc(self) -> bool:
        """True for the clients over gRPC."""
        return self.name.startswith("grpc")

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Return any method of the client's own, run to its end."""
        call = getattr(self.inner, method)

        def run(*args: Any, **kwargs: Any) -> Any:
            return self._result(lambda: call(*args, **kwargs))

        return run

    def _result(self, call: Callable[[], Any]) -> Any:
        """Return the result of `call`, awaited in the runner's loop where it is a coroutine."""

        async def in_loop() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        return self.runner.run(in_loop()) if self.name.endswith("aio") else call()

    def message(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a management call's answer as JSON values."""
        if self.is_grpc:
            kwargs["as_json"] = True
        return getattr(self, method)(*args, **kwargs)

    def tensor(self, name: str, datatype: str, array: npt.ArrayLike, **kwargs: Any) -> Any:
        """Return an input with its data; `kwargs` go to set_data_from_numpy."""
        values = np.asarray(array, dtype=NUMPY_TYPES[datatype])
        made = self.module.InferInput(name, list(values.shape), datatype)
        made.set_data_from_numpy(values, **kwargs)
        return made

    def tensors(self, arrays: Mapping[str, tuple[str, npt.ArrayLike]]) -> list[Any]:
        """Return inputs of `{name: (datatype, array)}`."""
        return [self.tensor(name, datatype, array) for name, (datatype, array) in arrays.items()]

    def output(self, name: str, **kwargs: Any) -> Any:
        """Return an output to request."""
        return self.module.InferRequestedOutput(name, **kwargs)

    def add_sub(self, left: npt.ArrayLike, right: npt.ArrayLike, **kwargs: Any) -> Any:
        """Return the answer of the model add_sub."""
        inputs = self.tensors({"INPUT0": ("INT32", left), "INPUT1": ("INT32", right)})
        return self.infer("add_sub", inputs, **kwargs)


def connect(name: str, http: str, grpc: str, **options: Any) -> FourClient:
    """Return the client `name` of a server at the two addresses, host:port. `options` are the client's own."""
    module = MODULES[name]
    address = grpc if name.startswith("grpc") else http
    runner = asyncio.Runner()
    client = FourClient(name, module, None, runner)
    client.inner = client._result(lambda: module.InferenceServerClient(address, **options))
    return client


def close(client: FourClient) -> None:
    """Disconnect, and end the client's event loop."""
    client.close()
    client.runner.close()
