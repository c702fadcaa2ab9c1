"""The two sides of the accuracy gate: the ONNX model by ONNX Runtime, and the plan by the server's own backend."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import Array, BuildError, Runner
from argosy_runtime.backends.devices.cuda import CudaStream
from argosy_runtime.backends.tensorrt import plan as plans
from argosy_runtime.backends.tensorrt import profiles
from argosy_runtime.backends.tensorrt.execution import InputBinding, OutputBinding, ProfileContext
from argosy_runtime.backends.tensorrt.memory import BlockPool
from argosy_runtime.backends.tensorrt.signature import read_profile, read_signature
from argosy_runtime.errors import ServingError
from argosy_runtime.modelconfig.datatypes import numpy_dtype

from .building import PLAN
from .opening import config_of, model_file


@contextmanager
def runner(folder: Path, request: BuildRequest) -> Iterator[Runner]:
    """Yield a runner of the plan where the folder has one, else of the ONNX model. Raises BuildError."""
    if not (folder / PLAN).is_file():
        yield _Baseline(model_file(folder, request.filename))
        return
    try:
        stream = CudaStream(0)
        engine = _Engine(folder, bool(request.options.get("version_compatible")), stream)
    except ServingError as error:
        raise BuildError(BuildFailure.BUILD_FAILED, f"the plan does not open: {error.message}") from error
    try:
        yield engine
    finally:
        engine.close()


class _Baseline:
    """On the host: exact, and no other GPU is needed."""

    def __init__(self, path: Path) -> None:
        import onnxruntime as ort

        try:
            self._session: Any = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception as error:
            raise BuildError(
                BuildFailure.MODEL_INVALID, f"spec.storageUri: {path.name} cannot be run as the baseline: {error}"
            ) from error
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the outputs by name. Raises BuildError."""
        try:
            outputs = self._session.run(self._outputs, dict(inputs))
        except Exception as error:
            raise _refused(error) from error
        return dict(zip(self._outputs, outputs, strict=True))


class _Engine:
    """On the GPU, each sample under the profile that fits it best."""

    def __init__(self, folder: Path, host_code: bool, stream: CudaStream) -> None:
        self._stream = stream
        self._pool = BlockPool(stream)
        self._plan = plans.opened(config_of(PLAN, host_code), folder / PLAN, 0, stream.enter)
        self._signature = read_signature(self._plan.engine)
        self._contexts = [self._context(index) for index in range(self._signature.profiles)]

    def _context(self, index: int) -> ProfileContext:
        context = self._plan.engine.create_execution_context()
        if context is None:
            raise BuildError(
                BuildFailure.OUT_OF_GPU_MEMORY,
                f"the GPU's memory is not enough to run the engine: {self._plan.logger.reason()}",
            )
        if index:
            context.set_optimization_profile_async(index, self._stream.handle)
            self._stream.synchronize()
        used = read_profile(self._plan.engine, self._signature, index, str(index))
        return ProfileContext(context, used, self._signature, self._stream, self._plan.logger, "the engine")

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the outputs by name. Raises BuildError."""
        try:
            bindings = {name: self._bound(name, array) for name, array in inputs.items()}
            made = self._fitting(bindings).run(bindings, self._pool)
            return {name: self._home(name, binding) for name, binding in made.items()}
        except ServingError as error:
            raise _refused(error.message) from error

    def _bound(self, name: str, array: Array) -> InputBinding:
        info = self._signature.inputs.get(name)
        if info is None:
            raise _refused(f"the engine has no input '{name}', but {', '.join(self._signature.inputs)}")
        contiguous = np.ascontiguousarray(array, numpy_dtype(info.datatype or ""))
        values = tuple(map(int, contiguous.reshape(-1))) if info.is_shape else None
        if info.on_host:
            return InputBinding(contiguous.ctypes.data, contiguous.shape, contiguous, values)
        block = self._pool.take(contiguous.nbytes)
        self._stream.copy(block.address, contiguous.ctypes.data, contiguous.nbytes)
        return InputBinding(block.address, contiguous.shape, (block, contiguous), values)

    def _fitting(self, bindings: Mapping[str, InputBinding]) -> ProfileContext:
        shapes = {name: binding.shape for name, binding in bindings.items()}
        values = {name: binding.values for name, binding in bindings.items() if binding.values is not None}
        used, fits = profiles.chosen([binding.profile for binding in self._contexts], shapes, values)
        if not fits:
            raise _refused(f"shapes {shapes} fit none of the engine's profiles")
        return next(binding for binding in self._contexts if binding.profile is used)

    def _home(self, name: str, made: OutputBinding) -> Array:
        if made.host is not None:
            return made.host.copy()
        assert made.block is not None
        target = np.empty(made.shape, numpy_dtype(self._signature.outputs[name].datatype or ""))
        self._stream.copy(target.ctypes.data, made.block.address, target.nbytes)
        self._stream.synchronize()
        return target

    def close(self) -> None:
        """Give back what is the device's."""
        self._contexts.clear()
        self._pool.close()
        self._stream.close()


def _refused(error: object) -> BuildError:
    return BuildError(
        BuildFailure.ACCURACY_DATA_INVALID,
        f"spec.engine.accuracy.dataUri: the model does not take this sample: {error}; correct spec.inputs or the data",
    )


__all__ = ["runner"]
