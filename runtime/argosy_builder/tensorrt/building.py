"""Building a plan from an ONNX file, on this process's first GPU."""

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from argosy_agent.contract.builds import BuildFailure, TensorSpec
from argosy_builder.contract import BuildError, Progress
from argosy_builder.data import Purpose, read_samples
from argosy_runtime.backends.devices.cuda import CudaStream, compute_capability
from argosy_runtime.backends.tensorrt.library import V2_NAMES, Logger, load_plugins, trt
from argosy_runtime.modelconfig.datatypes import config_name, config_type

from .calibrating import Batches, calibrator, check
from .causes import failed
from .configuring import add_profiles, calibrate, configure, set_flags
from .monitoring import Monitor
from .profiles import NetworkInput, Profile, profiles_of
from .settings import STRONG_ONLY, Settings

PLAN: Final = "model.plan"
PROFILES: Final = "profiles.json"
"""The profiles that the plan was built for, next to it: they are compared with those in the plan."""
CACHE: Final = "timing.cache"


class BuildLogger(Logger):
    """Collects the lines that may be the reason of a failure, and passes on the others as progress."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._progress = progress

    def log(self, severity: Any, msg: str) -> None:
        """Collect or pass on a line of TensorRT's."""
        if severity.name in ("INTERNAL_ERROR", "ERROR", "WARNING"):
            self.lines.append(msg)
        if severity.name != "VERBOSE":
            self._progress(-1, f"{severity.name}: {msg}")


def build(
    source: str,
    target: str,
    settings: dict[str, Any],
    architecture: str,
    inputs: Sequence[tuple[str, str, Sequence[int]]],
    max_batch_size: int,
    batch_sizes: Sequence[int],
    data: str,
    samples: int,
    timings: str,
    progress: Progress,
) -> None:
    """Write the plan of `source` to the folder `target`. `inputs` are the declared ones: name, type, dims.

    `data` is the folder to calibrate on, "" where it is not; `timings` the file with layers' times, "" where none are
    kept. Raises BuildError.
    """
    requested = Settings(**settings)
    declared = [TensorSpec(name, kind, tuple(dims)) for name, kind, dims in inputs]
    stream = _stream(architecture)
    load_plugins()
    logger = BuildLogger(progress)
    builder = _builder(logger)
    network, parser = _parsed(builder, logger, source, requested.strong)
    tensors = network_inputs(network)
    profiles = profiles_of(tensors, declared, max_batch_size, batch_sizes, requested.profiles)
    config = _configured(builder, parser, requested, profiles)
    calibration: Any = None
    if requested.calibrated:
        rows = read_samples(Path(data), _specs(declared, tensors, max_batch_size), samples, Purpose.CALIBRATION).rows
        size = min(max(max_batch_size, 1), len(rows))
        calibration = calibrator(requested.calibrator, Batches(rows, size, stream, progress))
        calibrate(builder, config, calibration, profiles, size if max_batch_size else 0)
    monitor = Monitor(progress)
    with _ended_by_signal(monitor), _timed(config, timings, progress):
        plan = _serialized(builder, network, config, monitor)
    if calibration is not None:
        check(calibration)
    if plan is None:
        raise failed(logger.lines, monitor.cancelled.is_set())
    Path(target, PLAN).write_bytes(plan)
    Path(target, PROFILES).write_text(json.dumps(_document(profiles)))
    stream.close()


def _configured(builder: Any, parser: Any, requested: Settings, profiles: Sequence[Profile]) -> Any:
    """Return the builder's configuration. Raises BuildError where this release has not what is requested."""
    config = builder.create_builder_config()
    set_flags(config, requested.flags, requested.cleared)
    configure(builder, config, requested.attributes)
    if "VERSION_COMPATIBLE" in requested.flags:
        config.plugins_to_serialize = parser.get_used_vc_plugin_libraries()
    add_profiles(builder, config, profiles)
    return config


def _serialized(builder: Any, network: Any, config: Any, monitor: Monitor) -> Any:
    """Return the plan, None where TensorRT built none; `monitor` must outlive the build."""
    config.progress_monitor = monitor
    return builder.build_serialized_network(network, config)


def _stream(architecture: str) -> CudaStream:
    """Open the GPU of this process. Raises BuildError where it is of another kind than the engine is for."""
    stream = CudaStream(0)
    here = compute_capability(0)
    if here != architecture:
        raise BuildError(
            BuildFailure.BUILD_FAILED,
            f"tensorrt: the engine is for compute capability {architecture}, and this GPU has {here}: build it on a "
            "node with that GPU",
        )
    return stream


def _builder(logger: BuildLogger) -> Any:
    try:
        return trt.Builder(logger)
    except TypeError as error:  # how its binding says that the library gave none
        raise failed([*logger.lines, str(error)]) from error


def _parsed(builder: Any, logger: BuildLogger, source: str, strong: bool) -> tuple[Any, Any]:
    flags = 0
    if strong and int(str(trt.__version__).split(".")[0]) < STRONG_ONLY:
        flags = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, logger)
    parser.set_flag(trt.OnnxParserFlag.NATIVE_INSTANCENORM)
    if not parser.parse_from_file(source):
        raise _unparsed(parser, logger)
    return network, parser


def _unparsed(parser: Any, logger: BuildLogger) -> BuildError:
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    if not errors:
        return failed(logger.lines)
    if any(error.code() == trt.ErrorCode.MODEL_DESERIALIZE_FAILED for error in errors):
        return BuildError(
            BuildFailure.MODEL_INVALID, f"spec.storageUri: TensorRT cannot read the ONNX file: {errors[0].desc()}"
        )
    nodes = "; ".join(
        f"node {error.node()} '{error.node_name()}' ({error.node_operator()}): {error.desc()}" for error in errors
    )
    return BuildError(
        BuildFailure.UNSUPPORTED_MODEL,
        f"TensorRT cannot take this model: {nodes}; export it without these operators, or use another engine.builder",
    )


def network_inputs(network: Any) -> list[NetworkInput]:
    """Return the inputs of the parsed network."""
    inputs = []
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        shape = tuple(tensor.shape)
        names = tuple(tensor.get_dimension_name(dimension) or "" for dimension in range(len(shape)))
        inputs.append(NetworkInput(tensor.name, shape, names, bool(tensor.is_shape_tensor), _data_type(tensor.dtype)))
    return inputs


def _data_type(of: Any) -> str:
    """Return the data type of a configuration for one of TensorRT's types, "" where there is none."""
    v2 = V2_NAMES.get(of.name)
    return "" if v2 is None else config_name(config_type(v2))


def _specs(declared: Sequence[TensorSpec], inputs: Sequence[NetworkInput], max_batch_size: int) -> list[TensorSpec]:
    """Return the specs of samples: types of the network, whatever files of text hold, and declared dims."""
    dims = {spec.name: spec.dims for spec in declared}
    batch = 1 if max_batch_size else 0
    return [TensorSpec(spec.name, spec.data_type, dims.get(spec.name, spec.shape[batch:])) for spec in inputs]


def _document(profiles: Sequence[Profile]) -> list[dict[str, Any]]:
    return [{"shapes": dict(profile.shapes), "values": dict(profile.values)} for profile in profiles]


@contextmanager
def _ended_by_signal(monitor: Monitor) -> Iterator[None]:
    """Cancel the build at its next step once SIGTERM comes."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: monitor.cancelled.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _timed(config: Any, file: str, progress: Progress) -> Iterator[None]:
    """Use the timing cache of earlier builds, and save it with this build's times."""
    if not file:
        config.set_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)
        yield
        return
    path = Path(file)
    before = path.read_bytes() if path.is_file() else b""
    cache = config.create_timing_cache(before)
    if not config.set_timing_cache(cache, False):
        progress(-1, "the timing cache is of another device or release; starting with an empty one")
        cache = config.create_timing_cache(b"")
        config.set_timing_cache(cache, False)
    yield
    content = bytes(config.get_timing_cache().serialize())
    if content and content != before:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


__all__ = ["PROFILES", "CACHE", "PLAN", "BuildLogger", "build", "network_inputs"]
