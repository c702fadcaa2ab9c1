"""A plan's file: which file, which TensorRT built it, and opening it on a device."""

import struct
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import unavailable

from . import library
from .library import Logger, trt

DEFAULT_FILE: Final = "model.plan"
_MAGIC: Final = b"ftrt"
_HEADER: Final = struct.Struct("<4sI16x4B")


@dataclass(slots=True, weakref_slot=True)
class OpenPlan:
    """An engine whose execution contexts any number of instances on its device create.

    `runtime` and `logger` must outlive it.
    """

    engine: Any
    runtime: Any
    logger: Logger


_opening = threading.Lock()
_open: "weakref.WeakValueDictionary[tuple[str, int, bool], OpenPlan]" = weakref.WeakValueDictionary()


def plan_file(config: ModelConfig, version_dir: Path, instance: str) -> Path:
    """Return the file that the configuration names. Raises ServingError (UNAVAILABLE) without it."""
    path = version_dir / (config.default_model_filename or DEFAULT_FILE)
    if not path.is_file():
        raise unavailable(f"unable to find '{path}' for model instance '{instance}'")
    return path


def opened(config: ModelConfig, path: Path, device_id: int, enter: Callable[[], None]) -> OpenPlan:
    """Return the plan on a device, shared by all of this process that open the same file there.

    `enter` makes the device this thread's. Raises ServingError (INTERNAL) with the reason, and an advice.
    """
    host_code = library.runs_host_code(config)
    key = (f"{path.resolve()}:{path.stat().st_mtime_ns}", device_id, host_code)
    with _opening:
        plan = _open.get(key)
        if plan is None:
            enter()
            _open[key] = plan = _deserialized(path, host_code)
        return plan


def _deserialized(path: Path, host_code: bool) -> OpenPlan:
    library.load_plugins()
    logger = Logger()
    try:
        runtime = trt.Runtime(logger)
    except TypeError as error:  # how its binding says that the library gave none: no driver, no GPU
        logger.last_error = logger.last_error or str(error)
        raise logger.failure("unable to create TensorRT runtime") from error
    if host_code:
        runtime.engine_host_code_allowed = True
    content = path.read_bytes()
    engine = runtime.deserialize_cuda_engine(content)
    if engine is None:
        raise logger.failure("unable to create TensorRT engine", _way_out(path, content, logger.reason()))
    return OpenPlan(engine, runtime, logger)


def built_by(content: bytes) -> tuple[int, ...] | None:
    """Return the version of TensorRT that wrote a plan: major, minor, patch, build; None where that cannot be read.

    The header is read as TensorRT's own `trtexec --getPlanVersionOnly` reads it.
    """
    if len(content) < _HEADER.size:
        return None
    magic, layout, *version = _HEADER.unpack_from(content)
    return tuple(version) if (magic, layout) == (_MAGIC, 0) else None


def _way_out(path: Path, content: bytes, reason: str) -> str:
    if not content.startswith(_MAGIC):
        return f"; '{path.name}' is no TensorRT plan: build one from the model, by spec.engine or trtexec"
    built, here = built_by(content), library.version()
    if built is not None and built != here[: len(built)]:
        return (
            f"; '{path.name}' was built by TensorRT {_text(built)} and this server has {_text(here)}: build it again "
            "with this version, or with VERSION_COMPATIBLE and serve it with the parameter VERSION_COMPATIBLE: true"
        )
    if "incompatible device" in reason or "compute" in reason:
        return (
            f"; '{path.name}' was built for another kind of GPU: give each its own plan by cc_model_filenames, or "
            "build it with the hardware compatibility level AMPERE_PLUS or SAME_COMPUTE_CAPABILITY"
        )
    return ""


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
