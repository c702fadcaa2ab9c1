"""Copies of inputs to the model's device and of outputs to the host: at once, or on the instance's own CUDA stream."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import groupby
from typing import Any, Final, Protocol

import numpy as np
import torch

from argosy_runtime.backends.batching import Output, joined_shape
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.devices import staging
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.tensors.device_arrays import DEVICE_TRANSFERS, DeviceArray

from . import tensors

_cuda: Any = torch.cuda  # untyped

HOSTS: Final = ["cpu"]
"""torch's names of the devices that compute in the host's own memory."""


class Transfers(Protocol):
    """Copies of one instance's tensors, in the order that `Framework` calls them."""

    def batch(self) -> AbstractContextManager[None]:
        """Return a context around one run."""

    def gather(self, inputs: Sequence[Tensor]) -> torch.Tensor:
        """Return the tensors of several requests, joined, on the model's device."""

    def output(self, value: torch.Tensor) -> Output:
        """Return a model's output, where it is."""

    def synchronize(self) -> None:
        """Wait until all copies and kernels have ended."""

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Return the outputs on the host."""


def transfers_of(spec: InstanceSpec, device: torch.device) -> Transfers:
    """Return the copies of an instance: on a stream with staging buffers where it has a device of its own.

    An instance over several devices, and one on the host, copies at once.
    """
    if device.type in HOSTS or spec.kind == "KIND_MODEL":
        return PlainTransfers(device)
    return StreamTransfers(spec, device)


class PlainTransfers:
    """Copies one after the other, each waited for.

    On the host, too, each input and output is copied: a model may work in place, and may return a buffer of its
    own.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def batch(self) -> AbstractContextManager[None]:
        return nullcontext()

    def gather(self, inputs: Sequence[Tensor]) -> torch.Tensor:
        arrays = [tensor.array for tensor in inputs]
        host = tensors.from_numpy(np.array(arrays[0], order="C") if len(arrays) == 1 else np.concatenate(arrays))
        if self._device.type == "cpu":
            return host
        DEVICE_TRANSFERS.sent(host.nbytes)
        return host.to(self._device)

    def output(self, value: torch.Tensor) -> Output:
        if value.device.type == "cpu":
            return tensors.to_numpy(value).copy()
        DEVICE_TRANSFERS.fetched(value.nbytes)
        return tensors.to_numpy(value.cpu())

    def synchronize(self) -> None:
        """Return at once: every copy was waited for."""

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        return {name: value for name, value in outputs.items() if not isinstance(value, DeviceArray)}


class StreamTransfers:
    """Copies and kernels one after the other on a stream of the instance's own, through page-locked buffers.

    Tensors that are on the device already, and outputs that stay there, are copied too: a model may work in place,
    and may return a buffer of its own.
    """

    def __init__(self, spec: InstanceSpec, device: torch.device) -> None:
        self._device = device
        on_cuda = device.type == "cuda"
        self._stream = _cuda.Stream(device) if on_cuda else None

        def allocate(size: int) -> Array:
            buffer: Array = torch.empty(size, dtype=torch.uint8, pin_memory=on_cuda).numpy()
            return buffer

        self._incoming, self._outgoing = staging.buffers(spec.config.optimization, allocate)
        kind, index = torch.empty(0, device=device).__dlpack_device__()
        self._here = (int(kind), index)

    @contextmanager
    def batch(self) -> Iterator[None]:
        with ExitStack() as stack:
            if self._stream is not None:
                stack.enter_context(torch.cuda.device(self._device))
                stack.enter_context(torch.cuda.stream(self._stream))
            try:
                yield
            finally:
                self.synchronize()
                self._incoming.reset()
                self._outgoing.reset()

    def gather(self, inputs: Sequence[Tensor]) -> torch.Tensor:
        pieces: list[torch.Tensor] = []
        for here, run in groupby(inputs, key=self._is_here):
            neighbours = list(run)
            pieces += map(_taken, neighbours) if here else [self._sent(neighbours)]
        if len(pieces) > 1:
            return torch.cat(pieces)
        return pieces[0].clone() if self._is_here(inputs[0]) else pieces[0]

    def _is_here(self, tensor: Tensor) -> bool:
        return tensor.device is not None and tensor.device.memory.__dlpack_device__() == self._here

    def _sent(self, inputs: Sequence[Tensor]) -> torch.Tensor:
        """Copy several tensors' bytes to the device together."""
        parts = [np.frombuffer(tensor.data, np.uint8) for tensor in inputs]
        size = sum(map(len, parts))
        pinned = self._incoming.take(size)
        buffer = np.empty(size, np.uint8) if pinned is None else pinned
        np.concatenate(parts, out=buffer)
        shape = joined_shape(inputs)
        dtype = tensors.TORCH_DTYPES[inputs[0].datatype]
        host = torch.from_numpy(buffer).view(dtype).reshape(shape)
        DEVICE_TRANSFERS.sent(size)
        return torch.empty(shape, dtype=dtype, device=self._device).copy_(host, non_blocking=True)

    def output(self, value: torch.Tensor) -> Output:
        own = value.detach().clone(memory_format=torch.contiguous_format)
        return DeviceArray(tensors.TorchMemory(own), tuple(value.shape))

    def synchronize(self) -> None:
        if self._stream is not None:
            self._stream.synchronize()

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        fetched: dict[str, Array] = {}
        staged: dict[str, torch.Tensor] = {}
        for name, output in outputs.items():
            if not isinstance(output, DeviceArray):
                fetched[name] = output
                continue
            assert isinstance(output.memory, tensors.TorchMemory)
            tensor = output.memory.tensor
            DEVICE_TRANSFERS.fetched(tensor.nbytes)
            pinned = self._outgoing.take(tensor.nbytes)
            if pinned is None:
                fetched[name] = tensors.to_numpy(tensor.cpu())
            else:
                host = torch.from_numpy(pinned).view(tensor.dtype).reshape(tensor.shape)
                staged[name] = host.copy_(tensor, non_blocking=True)
        self.synchronize()
        # Out of the buffer, which the next batch writes to.
        return fetched | {name: tensors.to_numpy(host).copy() for name, host in staged.items()}


def _taken(tensor: Tensor) -> torch.Tensor:
    assert tensor.device is not None
    return tensors.from_device(tensor.datatype, tensor.device)
