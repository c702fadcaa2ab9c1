"""Loading plans and running them."""

import ctypes
import json
from enum import Enum
from math import prod
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import played_cuda

from . import _enums, _plans

Severity = Enum("Severity", "INTERNAL_ERROR ERROR WARNING INFO VERBOSE", start=0)
NUMPY = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
}


class Strict:
    """Only the names in `_settable` can be set, as with a binding."""

    _settable: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._settable:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r} that can be set")
        object.__setattr__(self, name, value)


class ILogger:
    """Subclasses must call its `__init__`."""

    Severity = Severity

    def __init__(self) -> None:
        self._initialized = True

    def log(self, severity: Any, msg: str) -> None:
        raise NotImplementedError


class Logger(ILogger):
    """Prints."""

    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = Severity

    def __init__(self, min_severity: Any = Severity.WARNING) -> None:
        super().__init__()
        self.min_severity = min_severity

    def log(self, severity: Any, msg: str) -> None:
        if severity.value <= self.min_severity.value:
            print(f"[TRT] [{severity.name[0]}] {msg}")


def checked_logger(logger: Any) -> ILogger:
    """Return the logger; TypeError where it is none, or its base was not initialized."""
    if not isinstance(logger, ILogger) or not getattr(logger, "_initialized", False):
        raise TypeError("incompatible function arguments: logger")
    return logger


def init_libnvinfer_plugins(logger: Any, namespace: str) -> bool:
    checked_logger(logger)
    assert type(namespace) is str
    return True


class IProgressMonitor:
    def __init__(self) -> None:
        self._initialized = True


class IOutputAllocator:
    def __init__(self) -> None:
        self._initialized = True


class IHostMemory(bytes):
    """A buffer; before Python 3.12 only what is bytes can be one."""

    @property
    def nbytes(self) -> int:
        return len(self)


class Runtime(Strict):
    """Loads plans onto the device that is current."""

    _settable = ("engine_host_code_allowed", "max_threads", "temporary_directory")

    def __init__(self, logger: Any) -> None:
        self._logger = checked_logger(logger)
        self.engine_host_code_allowed = False

    def deserialize_cuda_engine(self, serialized_engine: Any) -> "ICudaEngine | None":
        played_cuda.DRIVER._check_context("to deserialize")
        content = bytes(serialized_engine)
        try:
            written, meta, model = _plans.read(content)
        except ValueError as error:
            return self._error(f"IRuntime::deserializeCudaEngine: Error Code 1: Serialization ({error})")
        import tensorrt

        here = tuple(int(part) for part in tensorrt.__version__.split("."))
        if meta.host_code:
            if not self.engine_host_code_allowed:
                return self._error("Error Code 4: API Usage Error (Cannot deserialize engine with lean runtime.)")
        elif written != here:
            return self._error(
                "The engine plan file is not compatible with this version of TensorRT, expecting library version "
                f"{'.'.join(map(str, here))} got {'.'.join(map(str, written))}, please rebuild."
            )
        device = played_cuda.DRIVER.compute_capability
        major = meta.compute_capability.split(".")[0], device.split(".")[0]
        fits = meta.compute_capability == device or (meta.compatibility == "AMPERE_PLUS" and major[1] >= "8")
        if not fits:
            return self._error(
                "IRuntime::deserializeCudaEngine: Error Code 6: API Usage Error (The engine plan file is generated on "
                f"an incompatible device, expecting compute {device} got compute {meta.compute_capability}, please "
                "rebuild.)"
            )
        return ICudaEngine(model, meta, self._logger)

    def _error(self, text: str) -> None:
        self._logger.log(Severity.ERROR, text)


class ICudaEngine(Strict):
    """An engine."""

    def __init__(self, model: onnx.ModelProto, meta: _plans.Meta, logger: ILogger) -> None:
        self._model = model
        self._meta = meta
        self._logger = logger
        self._inputs = {info.name: info for info in model.graph.input}
        self._outputs = {info.name: info for info in model.graph.output}
        self._tensors = {**self._inputs, **self._outputs}
        self._session = ort.InferenceSession(model.SerializeToString())

    @property
    def num_io_tensors(self) -> int:
        return len(self._tensors)

    @property
    def num_optimization_profiles(self) -> int:
        return max(len(self._meta.profiles), 1)

    @property
    def hardware_compatibility_level(self) -> Any:
        return _enums.HardwareCompatibilityLevel[self._meta.compatibility]

    def get_tensor_name(self, index: int) -> str:
        return list(self._tensors)[index]

    def get_tensor_mode(self, name: str) -> Any:
        return _enums.TensorIOMode.INPUT if name in self._inputs else _enums.TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        named = self._meta.types.get(name)
        return _enums.DataType[named or _plans.TYPES[self._tensors[name].type.tensor_type.elem_type]]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return _plans.shape_of(self._tensors[name])

    def get_tensor_location(self, name: str) -> Any:
        return _enums.TensorLocation.HOST if self.is_shape_inference_io(name) else _enums.TensorLocation.DEVICE

    def get_tensor_format(self, name: str) -> Any:
        return _enums.TensorFormat[self._meta.formats.get(name, "LINEAR")]

    def is_shape_inference_io(self, name: str) -> bool:
        assert name in self._tensors
        return name in self._meta.shape_tensors

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[tuple[int, ...]]:
        assert name in self._inputs
        if not self._meta.profiles:
            return [self.get_tensor_shape(name)] * 3
        profile = self._meta.profiles[profile_index].get(name) or [self.get_tensor_shape(name)] * 3
        return [tuple(part) for part in profile]

    def get_tensor_profile_values(self, name: Any, profile_index: Any, /) -> list[list[int]]:
        # The binding's labels are the wrong way round: what is called `name` is the index.
        index, tensor = name, profile_index
        if type(index) is not int or tensor not in self._meta.shape_tensors:
            raise RuntimeError("get_tensor_profile_values failed")
        return [list(part) for part in self._meta.values[index][tensor]]

    def create_execution_context(self, strategy: Any = _enums.ExecutionContextAllocationStrategy.STATIC) -> Any:
        assert isinstance(strategy, _enums.ExecutionContextAllocationStrategy)
        played_cuda.DRIVER._check_context("to create a context")
        return IExecutionContext(self)

    def create_engine_inspector(self) -> "EngineInspector":
        return EngineInspector(self)


class EngineInspector(Strict):
    _settable = ("execution_context",)

    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine

    def get_engine_information(self, fmt: Any) -> str:
        assert fmt is _enums.LayerInformationFormat.JSON
        return json.dumps({"Layers": self._engine._meta.layers, "Bindings": list(self._engine._tensors)})


class IExecutionContext(Strict):
    """Runs on the stream of each call, in its order."""

    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self._profile = 0
        self._shapes = {name: engine.get_tensor_shape(name) for name in engine._inputs}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, IOutputAllocator] = {}

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        played_cuda.DRIVER.stream(stream_handle)
        if not 0 <= profile_index < self._engine.num_optimization_profiles:
            raise RuntimeError("Error in set optimization profile async.")
        self._profile = profile_index
        return True

    def set_input_shape(self, name: str, shape: Any) -> bool:
        least, _, most = self._engine.get_tensor_profile_shape(name, self._profile)
        sizes = tuple(shape)
        assert all(type(size) is int for size in sizes)
        if len(sizes) != len(least) or not all(a <= b <= c for a, b, c in zip(least, sizes, most, strict=True)):
            self._engine._logger.log(
                Severity.ERROR,
                "IExecutionContext::setInputShape: Error Code 3: API Usage Error (Parameter check failed, condition: "
                "satisfyProfile Runtime dimension does not satisfy any optimization profile.)",
            )
            return False
        self._shapes[name] = sizes
        return True

    def set_tensor_address(self, name: str, memory: int) -> bool:
        assert name in self._engine._tensors
        if type(memory) is not int:
            raise TypeError("incompatible function arguments: memory")
        device = self._engine.get_tensor_location(name) is _enums.TensorLocation.DEVICE
        if memory == 0 or (device and memory % 256):
            self._engine._logger.log(Severity.ERROR, f"address of {name} is not 256-byte aligned")
            return False
        if device and not played_cuda.DRIVER.is_live(memory):
            played_cuda.DRIVER.faults.append(f"{name} is not on the device")
        self._addresses[name] = memory
        return True

    def set_output_allocator(self, name: str, output_allocator: Any) -> bool:
        assert name in self._engine._outputs
        if output_allocator is None:
            return self._allocators.pop(name, None) is not None
        if not isinstance(output_allocator, IOutputAllocator):
            raise TypeError("incompatible function arguments: output_allocator")
        self._allocators[name] = output_allocator
        return True

    def _values(self) -> dict[str, np.ndarray]:
        return {name: self._read(name) for name in self._engine._inputs if self._engine.is_shape_inference_io(name)}

    def _read(self, name: str, shape: tuple[int, ...] | None = None, address: int | None = None) -> np.ndarray:
        shape = self._shapes[name] if shape is None else shape
        dtype = np.dtype(NUMPY[self._engine.get_tensor_dtype(name).name])
        begin = self._addresses[name] if address is None else address
        raw = ctypes.string_at(begin, prod(shape) * dtype.itemsize)
        return np.frombuffer(raw, dtype).reshape(shape)

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        if name in self._engine._inputs:
            return self._shapes[name]
        return _plans.output_shapes(self._engine._model, self._shapes, self._values())[name]

    def infer_shapes(self) -> list[str]:
        unset = [name for name, shape in self._shapes.items() if -1 in shape]
        unset += [
            name
            for name in self._engine._inputs
            if self._engine.is_shape_inference_io(name) and name not in self._addresses
        ]
        if unset:
            return unset
        outputs = [name for name in self._engine._outputs if self._engine.is_shape_inference_io(name)]
        if outputs:
            feed = {**{name: self._zeros(name) for name in self._engine._inputs}, **self._values()}
            for name, value in zip(outputs, self._engine._session.run(outputs, feed), strict=True):
                ctypes.memmove(self._addresses[name], value.ctypes.data, value.nbytes)
        return []

    def _zeros(self, name: str) -> np.ndarray:
        return np.zeros(self._shapes[name], NUMPY[self._engine.get_tensor_dtype(name).name])

    def execute_async_v3(self, stream_handle: int) -> bool:
        stream = played_cuda.DRIVER.stream(stream_handle)
        names = [*self._engine._inputs, *(n for n in self._engine._outputs if n not in self._allocators)]
        missing = [name for name in names if name not in self._addresses]
        if missing or any(-1 in shape for shape in self._shapes.values()):
            self._engine._logger.log(Severity.ERROR, f"Neither address or allocator is set for {missing}")
            return False
        if self._allocators:
            return self._execute_asking(stream, stream_handle)
        shapes, addresses, values = dict(self._shapes), dict(self._addresses), self._values()

        def work() -> None:
            for name, value in self._computed(shapes, addresses, values).items():
                if not self._engine.is_shape_inference_io(name):
                    played_cuda.DRIVER.check_address(addresses[name], value.nbytes)
                    ctypes.memmove(addresses[name], value.ctypes.data, value.nbytes)

        stream.add(work)
        return True

    def _execute_asking(self, stream: Any, handle: int) -> bool:
        """Execute with shapes that depend on the data: wait for it, ask, and return once the shapes are known."""
        if stream.captured is not None:
            stream.broken = True
            return False
        stream.synchronize()
        for name, value in self._computed(self._shapes, self._addresses, self._values()).items():
            allocator = self._allocators.get(name)
            target = self._addresses.get(name, 0)
            if allocator is not None:
                target = allocator.reallocate_output_async(name, 0, max(value.nbytes, 1), 256, handle)
                assert type(target) is int
                assert target
                allocator.notify_shape(name, value.shape)
            content = value.tobytes()
            stream.add(lambda target=target, content=content: ctypes.memmove(target, content, len(content)))
        return True

    def _computed(self, shapes: Any, addresses: Any, values: Any) -> dict[str, np.ndarray]:
        feed = {
            name: values[name] if name in values else self._read(name, shapes[name], addresses[name])
            for name in self._engine._inputs
        }
        names = list(self._engine._outputs)
        outputs = self._engine._session.run(names, feed)
        return {name: np.ascontiguousarray(value) for name, value in zip(names, outputs, strict=True)}
