"""Building plans from ONNX."""

import ctypes
import math
import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import played_cuda
from onnx import numpy_helper

from . import _enums, _plans
from ._network import INetworkDefinition
from ._runtime import IHostMemory, IProgressMonitor, Severity, Strict, checked_logger


class IOptimizationProfile(Strict):
    """Shapes and values for the inputs."""

    def __init__(self) -> None:
        self._shapes: dict[str, Any] = {}
        self._values: dict[str, Any] = {}

    def set_shape(self, input: str, min: Any, opt: Any, max: Any) -> None:  # noqa: A002
        self._shapes[input] = self._checked(min, opt, max)

    def set_shape_input(self, input: str, min: Any, opt: Any, max: Any) -> None:  # noqa: A002
        self._values[input] = self._checked(min, opt, max)

    def _checked(self, least: Any, best: Any, most: Any) -> list[list[int]]:
        parts = [list(part) for part in (least, best, most)]
        for name, part in zip(("opt", "max"), parts[1:], strict=True):
            if len(part) != len(parts[0]):
                raise RuntimeError(f"Shape provided for {name} is inconsistent with other shapes.")
        if not all(a <= b <= c for a, b, c in zip(*parts, strict=True)):
            raise RuntimeError("Shape provided for opt is inconsistent with other shapes.")
        return parts

    def __bool__(self) -> bool:
        return True


class ITimingCache:
    """Timings, of one device and one release."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def serialize(self) -> IHostMemory:
        return IHostMemory(self.content)

    def combine(self, input_cache: "ITimingCache", ignore_mismatch: bool) -> bool:
        self.content += input_cache.content
        return True


class IInt8EntropyCalibrator2:
    """Subclasses must call its `__init__`; what they raise is printed and goes no further."""

    def __init__(self) -> None:
        self._initialized = True


class IInt8EntropyCalibrator(IInt8EntropyCalibrator2):
    """A calibrator of another kind, with the same methods."""


class IInt8MinMaxCalibrator(IInt8EntropyCalibrator2):
    """A calibrator of another kind, with the same methods."""


class IBuilderConfig(Strict):
    """Settings of a build."""

    _settable = (
        "builder_optimization_level",
        "max_num_tactics",
        "avg_timing_iterations",
        "max_aux_streams",
        "hardware_compatibility_level",
        "profiling_verbosity",
        "progress_monitor",
        "runtime_platform",
        "tiling_optimization_level",
        "l2_limit_for_tiling",
        "plugins_to_serialize",
        "int8_calibrator",
    )

    def __init__(self) -> None:
        import tensorrt

        self._flag_type = tensorrt.BuilderFlag
        self._flags = {self._flag_type.TF32}
        self._profiles: list[IOptimizationProfile] = []
        self._limits: dict[Any, int] = {}
        self._cache: ITimingCache | None = None
        self._calibration_profile: IOptimizationProfile | None = None
        self.builder_optimization_level = 3
        self.hardware_compatibility_level = _enums.HardwareCompatibilityLevel.NONE
        self.profiling_verbosity = _enums.ProfilingVerbosity.LAYER_NAMES_ONLY
        self.progress_monitor = None

    def __setattr__(self, name: str, value: Any) -> None:
        import tensorrt

        if name == "int8_calibrator" and tensorrt.__version__.startswith("11"):
            raise AttributeError(name)
        super().__setattr__(name, value)

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None:
        assert isinstance(pool, _enums.MemoryPoolType)
        assert type(pool_size) is int
        self._limits[pool] = pool_size

    def set_flag(self, flag: Any) -> None:
        if not isinstance(flag, self._flag_type):
            raise TypeError("incompatible function arguments: flag")
        self._flags.add(flag)

    def clear_flag(self, flag: Any) -> None:
        if not isinstance(flag, self._flag_type):
            raise TypeError("incompatible function arguments: flag")
        self._flags.discard(flag)

    def get_flag(self, flag: Any) -> bool:
        return flag in self._flags

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        assert type(tactic_sources) is int
        return True

    def add_optimization_profile(self, profile: Any) -> int:
        assert isinstance(profile, IOptimizationProfile)
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def set_calibration_profile(self, profile: Any) -> bool:
        self._calibration_profile = profile
        return True

    def create_timing_cache(self, serialized_timing_cache: Any) -> ITimingCache:
        return ITimingCache(bytes(serialized_timing_cache))

    def set_timing_cache(self, cache: Any, ignore_mismatch: bool) -> bool:
        assert isinstance(cache, ITimingCache)
        assert type(ignore_mismatch) is bool
        if cache.content and b"9.0" not in cache.content:
            return False
        self._cache = cache
        return True

    def get_timing_cache(self) -> ITimingCache | None:
        return self._cache


class Builder(Strict):
    """Builds."""

    _settable = ("max_threads",)

    def __init__(self, logger: Any) -> None:
        self._logger = checked_logger(logger)
        if os.environ.get("STANDIN_TENSORRT_GPU") == "none":
            self._logger.log(
                Severity.ERROR, "CUDA initialization failure with error: 35. Please check your CUDA installation"
            )
            raise TypeError("pybind11::init(): factory function returned nullptr")

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        assert type(flags) is int
        return INetworkDefinition(flags, self)

    def create_builder_config(self) -> IBuilderConfig:
        return IBuilderConfig()

    def create_optimization_profile(self) -> IOptimizationProfile:
        return IOptimizationProfile()

    def build_serialized_network(self, network: Any, config: Any) -> IHostMemory | None:
        assert isinstance(network, INetworkDefinition)
        assert isinstance(config, IBuilderConfig)
        import tensorrt

        model = network._model
        assert model is not None
        self._misbehave(model.doc_string)
        problem = self._problem(network, config, model)
        if problem:
            self._logger.log(Severity.ERROR, problem)
            return None
        if not self._progress(config.progress_monitor):
            return None
        flags = sorted(flag.name for flag in config._flags)
        calibrator = getattr(config, "int8_calibrator", None)
        ranges: dict[str, list[float]] = {}
        if calibrator is not None:
            ranges = self._calibrate(calibrator, network, config._calibration_profile)
        if config._cache is not None:
            config._cache.content += b"9.0 " + f"{len(model.graph.node)};".encode()
        layers = [
            {
                "Name": node.name,
                "LayerType": node.op_type,
                "Outputs": [{"Name": node.output[0], "Format/Datatype": self._type(flags, model)}],
            }
            for node in model.graph.node
        ]
        meta = _plans.Meta(
            compute_capability=played_cuda.DRIVER.compute_capability,
            profiles=[{**profile._shapes} for profile in config._profiles],
            values=[{**profile._values} for profile in config._profiles],
            shape_tensors=[
                tensor.name
                for side in ("input", "output")
                for tensor in network._tensors(side)
                if tensor.is_shape_tensor
            ],
            compatibility=config.hardware_compatibility_level.name,
            host_code="VERSION_COMPATIBLE" in flags,
            flags=flags,
            layers=layers if config.profiling_verbosity is _enums.ProfilingVerbosity.DETAILED else [],
            ranges=ranges,
        )
        return IHostMemory(_plans.write(model, meta, tensorrt.__version__))

    def _misbehave(self, how: str) -> None:
        """Fail in the way that a model's doc_string requests."""
        if how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "hang":
            threading.Event().wait()

    def _problem(self, network: INetworkDefinition, config: IBuilderConfig, model: onnx.ModelProto) -> str:
        import tensorrt

        strong = network.get_flag(
            tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED
        ) or tensorrt.__version__.startswith("11")
        weak = {"FP16", "BF16", "INT8", "FP8", "INT4", "FP4"} & {flag.name for flag in config._flags}
        if strong and weak:
            return f"BuilderFlag::k{min(weak)} is not compatible with a strongly typed network"
        inputs = network._tensors("input")
        if any(-1 in tensor.shape or tensor.is_shape_tensor for tensor in inputs) and not config._profiles:
            return (
                "Error Code 4: API Usage Error (Network has dynamic or shape inputs, but no optimization profile has "
                "been defined.)"
            )
        for profile in config._profiles:
            for tensor in inputs:
                if -1 in tensor.shape and tensor.name not in profile._shapes:
                    return f"Error Code 4: Internal Error (Input {tensor.name} has missing shape information.)"
                if tensor.is_shape_tensor and tensor.name not in profile._values:
                    return f"Error Code 4: Internal Error (Input {tensor.name} has missing shape values.)"
        if model.doc_string == "oom":
            self._logger.log(
                Severity.WARNING,
                "Tactic Device request: 4720MB Available: 2777MB. Device memory is insufficient to use tactic.",
            )
            return (
                "IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any implementation "
                "for node {ForeignNode[a...b]}.)"
            )
        return ""

    def _progress(self, monitor: Any) -> bool:
        if monitor is None:
            return True
        if not isinstance(monitor, IProgressMonitor) or not getattr(monitor, "_initialized", False):
            raise TypeError("incompatible function arguments: progress_monitor")
        monitor.phase_start("Building Engine", None, 2)
        monitor.phase_start("Selecting Tactics", "Building Engine", 4)
        for step in range(4):
            if not monitor.step_complete("Selecting Tactics", step):
                return False
        monitor.phase_finish("Selecting Tactics")
        for step in range(2):
            if not monitor.step_complete("Building Engine", step):
                return False
        monitor.phase_finish("Building Engine")
        return True

    def _calibrate(self, calibrator: Any, network: INetworkDefinition, profile: Any) -> dict[str, list[float]]:
        """Read every batch, from the device, in the best shapes of the calibration's profile."""
        assert isinstance(calibrator, IInt8EntropyCalibrator2)
        assert getattr(calibrator, "_initialized", False)
        calibrator.read_calibration_cache()
        size = calibrator.get_batch_size()
        assert type(size) is int
        names = [tensor.name for tensor in network._tensors("input")]
        ranges: dict[str, list[float]] = {}
        if any(-1 in tensor.shape for tensor in network._tensors("input")):
            assert all(best[0] == size for _, best, _ in profile._shapes.values())
        while True:
            try:
                batch = calibrator.get_batch(names)
            except Exception as error:
                print(f"[ERROR] Exception caught in get_batch(): {error}")
                break
            if not batch:
                break
            assert all(type(address) is int and played_cuda.DRIVER.is_live(address) for address in batch)
            for tensor, address in zip(network._tensors("input"), batch, strict=True):
                shape = profile._shapes[tensor.name][1] if -1 in tensor.shape else tensor.shape
                seen = _read(address, shape, tensor._info.type.tensor_type.elem_type)
                ranges[tensor.name] = [*ranges.get(tensor.name, []), float(seen.min()), float(seen.max())]
        calibrator.write_calibration_cache(memoryview(b"ranges"))
        return {name: [min(values), max(values)] for name, values in ranges.items()}

    def _type(self, flags: list[str], model: onnx.ModelProto) -> str:
        """Return the type in which most layers compute."""
        for name, layer_type in (("INT8", "Int8"), ("FP8", "FP8"), ("FP16", "Half"), ("BF16", "BFloat16")):
            if name in flags:
                return layer_type
        kinds = {numpy_helper.to_array(tensor).dtype for tensor in model.graph.initializer}
        if any(node.op_type == "QuantizeLinear" for node in model.graph.node):
            return "Int8"
        return "Half" if np.dtype(np.float16) in kinds else "Float"


def _read(address: int, shape: Sequence[int], elem_type: int) -> Any:
    """Return a tensor of the device, in the type that the network has for it."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(elem_type)
    size = math.prod(shape) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype)
