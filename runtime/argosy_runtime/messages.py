"""The one request and the one response that every front end, scheduler and backend speaks.

Nothing here knows a wire format. Arrays are numpy; BYTES tensors are object arrays of `bytes`, BF16 tensors use
`ml_dtypes.bfloat16`. Where a model's `max_batch_size` is above 0 the first dimension is the batch.
"""

from dataclasses import dataclass, field
from pickle import PickleBuffer

import numpy as np
import numpy.typing as npt

from .errors import ServingError
from .modelconfig.datatypes import numpy_dtype

Parameter = str | int | bool | float
Array = npt.NDArray[np.generic]

# Below this many bytes an array is cheaper inside the pickle than as a buffer beside it.
_INLINE_BYTES = 4096


@dataclass(slots=True, frozen=True)
class Tensor:
    """A named array. `datatype` is its V2 name: BOOL, INT64, FP32, BYTES, BF16 …"""

    name: str
    datatype: str
    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions, the batch first where there is one."""
        return self.array.shape

    def renamed(self, name: str) -> "Tensor":
        """The same data under another name (how an ensemble passes a tensor on: no copy)."""
        return Tensor(name, self.datatype, self.array)

    def __reduce__(self) -> tuple[object, ...]:
        # Far cheaper than what dataclasses and numpy do by themselves, and paid for each tensor of each request.
        array = self.array
        if array.dtype.hasobject:
            return (Tensor, (self.name, self.datatype, array))
        small = array.nbytes < _INLINE_BYTES
        data = bytearray(array.tobytes()) if small else PickleBuffer(_as_bytes(array))
        return (_rebuild, (self.name, self.datatype, array.shape, data))


def _as_bytes(array: Array) -> memoryview:
    # As plain bytes, because numpy exports no buffer of the types it does not know itself, BF16 for one.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _rebuild(name: str, datatype: str, shape: tuple[int, ...], data: bytearray | memoryview) -> Tensor:
    return Tensor(name, datatype, np.frombuffer(data, numpy_dtype(datatype)).reshape(shape))


@dataclass(slots=True)
class InferRequest:
    """One inference request, decoded.

    `model_version` is "" where the version policy decides. `requested_outputs` empty means all of them.
    `timeout_us` 0 and `priority` 0 mean the model's defaults. `sequence_id` 0 or "" means no sequence.
    """

    model_name: str
    inputs: dict[str, Tensor]
    model_version: str = ""
    id: str = ""
    requested_outputs: tuple[str, ...] = ()
    parameters: dict[str, Parameter] = field(default_factory=dict)
    sequence_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    priority: int = 0
    timeout_us: int = 0

    def __reduce__(self) -> tuple[object, ...]:
        return (InferRequest, tuple([getattr(self, name) for name in self.__slots__]))

    @property
    def log_prefix(self) -> str:
        """How Triton begins the messages about a request."""
        return f"[request id: {self.id or '<id_unknown>'}] "


@dataclass(slots=True)
class InferResponse:
    """One response. A decoupled model sends any number; `final` marks the last, which may hold no outputs.

    Exactly one of `outputs` and `error` says something. `repeated` names the outputs that were made once for the whole
    request and stood in an earlier response to it.
    """

    model_name: str
    model_version: str
    id: str = ""
    outputs: list[Tensor] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    error: ServingError | None = None
    final: bool = True
    repeated: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[object, ...]:
        return (InferResponse, tuple([getattr(self, name) for name in self.__slots__]))

    @property
    def is_empty(self) -> bool:
        """A bare final flag: nothing a client that did not ask for it should see."""
        return not self.outputs and self.error is None
