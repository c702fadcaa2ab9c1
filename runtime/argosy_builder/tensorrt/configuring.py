"""The builder's configuration, by TensorRT's own names."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_builder.options import invalid
from argosy_runtime.backends.tensorrt.library import trt

from .profiles import Profile


def configure(builder: Any, config: Any, attributes: Mapping[str, Any]) -> None:
    """Set the requested attributes. Raises BuildError (INVALID_OPTIONS) where this release has no such name."""
    for name, value in attributes.items():
        _SPECIAL.get(name, _plain(name))(builder, config, value)


def set_flags(config: Any, flags: Sequence[str], cleared: Sequence[str]) -> None:
    """Set and clear flags by name: their numbers differ from release to release."""
    for flag in flags:
        config.set_flag(_member("BuilderFlag", flag, "precision or its options"))
    for flag in cleared:
        config.clear_flag(_member("BuilderFlag", flag, "precision"))


def add_profiles(builder: Any, config: Any, profiles: Sequence[Profile]) -> list[Any]:
    """Add the profiles, in order, and return TensorRT's. Raises BuildError where it refuses one."""
    made = []
    for index, requested in enumerate(profiles):
        profile = builder.create_optimization_profile()
        try:
            for name, (least, best, most) in requested.shapes.items():
                profile.set_shape(name, least, best, most)
            for name, (least, best, most) in requested.values.items():
                profile.set_shape_input(name, least, best, most)
        except RuntimeError as error:
            raise invalid(f"profiles[{index}]", f"TensorRT refuses it: {error}") from error
        if config.add_optimization_profile(profile) < 0:
            raise invalid(f"profiles[{index}]", "TensorRT refuses it: it is not valid for the network")
        made.append(profile)
    return made


def calibrate(builder: Any, config: Any, calibrator: Any, profiles: Sequence[Profile], size: int) -> None:
    """Set a calibrator for int8 ranges, in batches of `size`, 0 where the model has none.

    TensorRT calibrates at the best shapes of a profile of its own, so those have the calibrator's batch.
    """
    config.int8_calibrator = calibrator
    if not profiles:
        return
    own = builder.create_optimization_profile()
    for name, (least, best, most) in profiles[0].shapes.items():
        shape = [size, *best[1:]] if size and least[0] <= size <= most[0] else best
        own.set_shape(name, shape, shape, shape)
    for name, (_, best, _) in profiles[0].values.items():
        own.set_shape_input(name, best, best, best)
    config.set_calibration_profile(own)


def _member(enum: str, name: str, option: str) -> Any:
    members = getattr(trt, enum)
    if not hasattr(members, name):
        raise invalid(option, f"TensorRT {trt.__version__} has no {enum}.{name}; leave it out")
    return getattr(members, name)


def _plain(name: str) -> Any:
    enum = _ENUMS.get(name)

    def put(builder: Any, config: Any, value: Any) -> None:
        setattr(config, name, value if enum is None else _member(enum, value, name))

    return put


def _workspace(builder: Any, config: Any, value: int) -> None:
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, value)


def _max_threads(builder: Any, config: Any, value: int) -> None:
    builder.max_threads = value


def _tactic_sources(builder: Any, config: Any, value: Sequence[str]) -> None:
    bits = 0
    for name in value:
        bits |= 1 << int(_member("TacticSource", name, "tactic_sources"))
    config.set_tactic_sources(bits)


_SPECIAL = {"workspace": _workspace, "max_threads": _max_threads, "tactic_sources": _tactic_sources}
_ENUMS = {
    "tiling_optimization_level": "TilingOptimizationLevel",
    "hardware_compatibility_level": "HardwareCompatibilityLevel",
    "profiling_verbosity": "ProfilingVerbosity",
}

__all__ = ["add_profiles", "calibrate", "configure", "set_flags"]
