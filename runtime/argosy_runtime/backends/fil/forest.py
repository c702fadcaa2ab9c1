"""A model's file, opened by Treelite."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import treelite
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import internal, unavailable, unsupported
from argosy_runtime.modelconfig.modelfiles import TREE_FILES

from . import structure
from .settings import Settings

_PREFIX: Final = re.compile(r"^\[[\d:]+\] \S+: (Check failed: )?")
_LONGEST_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class Forest:
    """An open model: the columns of its input, and how many values it has for a row, one where it tells two classes."""

    model: treelite.Model
    features: int
    classes: int


_READERS: Final[Mapping[str, Callable[[Path, bool], Any]]] = {
    "xgboost": lambda path, _: treelite.frontend.load_xgboost_model_legacy_binary(path),
    "xgboost_json": lambda path, allow: treelite.frontend.load_xgboost_model(
        path, format_choice="json", allow_unknown_field=allow
    ),
    "xgboost_ubj": lambda path, allow: treelite.frontend.load_xgboost_model(
        path, format_choice="ubjson", allow_unknown_field=allow
    ),
    "lightgbm": lambda path, _: treelite.frontend.load_lightgbm_model(path),
    "treelite_checkpoint": lambda path, _: treelite.Model.deserialize(str(path)),
}


def open_forest(settings: Settings, version_dir: Path, config: ModelConfig) -> Forest:
    """Return a version's model.

    Raises ServingError: UNAVAILABLE without the file, INTERNAL where it cannot be read or its trees are damaged,
    UNSUPPORTED for several targets.
    """
    path = _model_file(settings, version_dir, config)
    try:
        model = _READERS[settings.model_type](path, settings.allow_unknown_field)
        structure.check(model)
    except Exception as error:
        raise internal(
            f"failed to load '{path}' for model '{config.name}' as {settings.model_type} (parameter 'model_type'): "
            f"{explained(error)}"
        ) from error
    header = model.get_header_accessor()
    if int(header.get_field("num_target")[0]) != 1:
        raise unsupported(f"model '{config.name}': Multi-target model not supported")
    return Forest(model, int(model.num_feature), int(header.get_field("num_class")[0]))


def explained(error: Exception) -> str:
    """Return Treelite's words on one line, without the time and the place in its source that they begin with."""
    return " ".join(_PREFIX.sub("", str(error)).split())[:_LONGEST_REASON]


def _model_file(settings: Settings, version_dir: Path, config: ModelConfig) -> Path:
    path: Path = version_dir / config.default_model_filename
    if path.is_dir():
        path = path / TREE_FILES[settings.model_type]
    if not path.is_file():
        raise unavailable(
            f"unable to find '{path}' for model '{config.name}', whose parameter 'model_type' is "
            f"{settings.model_type}; name another file by default_model_filename"
        )
    return path
