"""Model files: the formats by backend and platform, and the file that an instance opens on its device."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

BY_COMPUTE_CAPABILITY: Final = frozenset({"onnxruntime", "pytorch", "libtorch", "tensorrt"})
"""The backends that open the files of `cc_model_filenames`. Those of Python code and of full folders do not."""

TREE_FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "xgboost": "xgboost.model",
        "xgboost_json": "xgboost.json",
        "xgboost_ubj": "xgboost.ubj",
        "lightgbm": "model.txt",
        "treelite_checkpoint": "checkpoint.tl",
    }
)
"""The file of a `fil` model by its parameter `model_type`, where the configuration names none."""

TREE_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "xgboost": (".model", ".bin"),
        "xgboost_json": (".json",),
        "xgboost_ubj": (".ubj",),
        "lightgbm": (".txt", ".model"),
        "treelite_checkpoint": (".tl",),
    }
)
"""How the names of such files end."""


def is_inside(relative: str) -> bool:
    """Return whether a path that a configuration names stays in its folder.

    Its parts alone decide: links may lead anywhere, since repositories are made of them.
    """
    path = PurePosixPath(relative)
    return not path.is_absolute() and ".." not in path.parts


def for_device(config: ModelConfig, compute_capability: str | None) -> ModelConfig:
    """Return `config` for an instance on a GPU of that compute capability ("9.0"), or on none.

    It is a copy with the GPU's own file as `default_model_filename` where `cc_model_filenames` has exactly this
    key, since Triton takes no nearest one; otherwise `config` itself.
    """
    own = config.cc_model_filenames.get(compute_capability or "") if config.backend in BY_COMPUTE_CAPABILITY else None
    if own is None:
        return config
    resolved = ModelConfig()
    resolved.CopyFrom(config)
    resolved.default_model_filename = own
    return resolved


def first_gpu(config: ModelConfig, gpus: Mapping[int, str]) -> int | None:
    """Return the GPU whose file completes the configuration: the first of the first group that may have one.

    `gpus` are the machine's, ordinal to compute capability. None where the instances run on none of them.
    """
    for group in config.instance_group:
        if group.kind in (ModelInstanceGroup.KIND_GPU, ModelInstanceGroup.KIND_AUTO):
            named = [gpu for gpu in (group.gpus or sorted(gpus)) if gpu in gpus]
            return named[0] if named else None
    return None if config.instance_group or not gpus else min(gpus)


__all__ = ["BY_COMPUTE_CAPABILITY", "TREE_FILES", "TREE_SUFFIXES", "first_gpu", "for_device", "is_inside"]

ENSEMBLE = "ensemble"


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """One kind of model file. `platforms[0]` is filled in; some files may be directories."""

    backend: str
    platforms: tuple[str, ...]
    filename: str
    may_be_directory: bool

    @property
    def platform(self) -> str:
        """Platform that is filled in where the configuration names none; "" where the backend has none."""
        return self.platforms[0] if self.platforms else ""


AUTOFILLED = (
    ModelFormat("tensorrt", ("tensorrt_plan",), "model.plan", False),
    ModelFormat("onnxruntime", ("onnxruntime_onnx",), "model.onnx", True),
    ModelFormat("openvino", (), "model.xml", True),
    ModelFormat("pytorch", ("pytorch_libtorch", "libtorch"), "model.pt", False),
    ModelFormat("pytorch", ("torch_aoti",), "model.pt2", False),
    ModelFormat("python", (), "model.py", True),
)

# Named by a configuration, never guessed from files: the backend is retired.
NAMED_ONLY = (
    ModelFormat("tensorflow", ("tensorflow_savedmodel",), "model.savedmodel", True),
    ModelFormat("tensorflow", ("tensorflow_graphdef",), "model.graphdef", False),
)

FORMATS = (*NAMED_ONLY, *AUTOFILLED)


def platforms_of(backend: str) -> frozenset[str]:
    """Return the platforms that go with a backend; empty where any does."""
    return frozenset(platform for row in FORMATS if row.backend == backend for platform in row.platforms)
