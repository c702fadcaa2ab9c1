"""Bringing inputs to where a model is and outputs home: at once, or on the instance's own CUDA stream."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import groupby
from typing import Any, Final, Protocol

import numpy as np
import torch

from argosy_runtime.backends import staging
from argosy_runtime.backends.batching import Output, joined_shape
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.tensors.device_arrays import DEVICE_TRANSFERS, DeviceArray

from . import tensors

_cuda: Any = torch.cuda  # untyped

HOSTS: Final = ["cpu"]
"""torch's names of the devices that compute in the host's own memory."""


class Transfers(Protocol):
    """Where one instance's tensors are. `Framework` tells what is called when."""

    def batch(self) -> AbstractContextManager[None]:
        """Return a context around one run."""

    def gather(self, given: Sequence[Tensor]) -> torch.Tensor:
        """Return the tensors of several requests, joined, on the model's device."""

    def output(self, value: torch.Tensor) -> Output:
        """Return what the model gave, where it is."""

    def synchronize(self) -> None:
        """Wait until all that was begun is over."""

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Outputs on the host."""


def transfers_of(spec: InstanceSpec, device: torch.device) -> Transfers:
    """A device that is the instance's alone has a stream and staging buffers; one instance over several devices, and
    the host, have not."""
    if device.type in HOSTS or spec.kind == "KIND_MODEL":
        return PlainTransfers(device)
    return StreamTransfers(spec, device)


class PlainTransfers:
    """One copy after the other, each waited for.

    On the host too, one of each input and output: a model may work in place, and may answer with a buffer of its own.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def batch(self) -> AbstractContextManager[None]:
        """See `Transfers`."""
        return nullcontext()

    def gather(self, given: Sequence[Tensor]) -> torch.Tensor:
        """See `Transfers`."""
        arrays = [tensor.array for tensor in given]
        host = tensors.from_numpy(np.array(arrays[0], order="C") if len(arrays) == 1 else np.concatenate(arrays))
        if self._device.type == "cpu":
            return host
        DEVICE_TRANSFERS.sent(host.nbytes)
        return host.to(self._device)

    def output(self, value: torch.Tensor) -> Output:
        """See `Transfers`."""
        if value.device.type == "cpu":
            return tensors.to_numpy(value).copy()
        DEVICE_TRANSFERS.fetched(value.nbytes)
        return tensors.to_numpy(value.cpu())

    def synchronize(self) -> None:
        """See `Transfers`."""

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """See `Transfers`."""
        return {name: value for name, value in outputs.items() if not isinstance(value, DeviceArray)}


class StreamTransfers:
    """Copies and kernels one after the other on a stream of the instance's own, through page-locked buffers.

    What lies on the device already is copied there, as what is left there is, for the reason that is told above.
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
        """See `Transfers`."""
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

    def gather(self, given: Sequence[Tensor]) -> torch.Tensor:
        """See `Transfers`."""
        pieces: list[torch.Tensor] = []
        for here, run in groupby(given, key=self._is_here):
            neighbours = list(run)
            pieces += map(_taken, neighbours) if here else [self._sent(neighbours)]
        if len(pieces) > 1:
            return torch.cat(pieces)
        return pieces[0].clone() if self._is_here(given[0]) else pieces[0]

    def _is_here(self, tensor: Tensor) -> bool:
        return tensor.device is not None and tensor.device.memory.__dlpack_device__() == self._here

    def _sent(self, given: Sequence[Tensor]) -> torch.Tensor:
        """The wire's bytes of several tensors side by side, and all together to the device."""
        parts = [np.frombuffer(tensor.data, np.uint8) for tensor in given]
        size = sum(map(len, parts))
        room = self._incoming.take(size)
        buffer = np.empty(size, np.uint8) if room is None else room
        np.concatenate(parts, out=buffer)
        shape = joined_shape(given)
        dtype = tensors.TORCH_DTYPES[given[0].datatype]
        host = torch.from_numpy(buffer).view(dtype).reshape(shape)
        DEVICE_TRANSFERS.sent(size)
        return torch.empty(shape, dtype=dtype, device=self._device).copy_(host, non_blocking=True)

    def output(self, value: torch.Tensor) -> Output:
        """See `Transfers`."""
        own = value.detach().clone(memory_format=torch.contiguous_format)
        return DeviceArray(tensors.TorchMemory(own), tuple(value.shape))

    def synchronize(self) -> None:
        """See `Transfers`."""
        if self._stream is not None:
            self._stream.synchronize()

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """See `Transfers`."""
        fetched: dict[str, Array] = {}
        staged: dict[str, torch.Tensor] = {}
        for name, output in outputs.items():
            if not isinstance(output, DeviceArray):
                fetched[name] = output
                continue
            assert isinstance(output.memory, tensors.TorchMemory)
            tensor = output.memory.tensor
            DEVICE_TRANSFERS.fetched(tensor.nbytes)
            room = self._outgoing.take(tensor.nbytes)
            if room is None:
                fetched[name] = tensors.to_numpy(tensor.cpu())
            else:
                host = torch.from_numpy(room).view(tensor.dtype).reshape(tensor.shape)
                staged[name] = host.copy_(tensor, non_blocking=True)
        self.synchronize()
        # Out of the buffer, which the next batch writes to.
        return fetched | {name: tensors.to_numpy(host).copy() for name, host in staged.items()}


def _taken(tensor: Tensor) -> torch.Tensor:
    assert tensor.device is not None
    return tensors.from_device(tensor.datatype, tensor.device)
