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

from . import contents, structure
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
        contents.check_classes(path, contents.named_classes(path, settings.model_type))
        model = _READERS[settings.model_type](path, settings.allow_unknown_field)
        contents.check_classes(path, _number(model, "num_class"))
        structure.check(model)
    except Exception as error:
        raise internal(
            f"failed to load '{path}' for model '{config.name}' as {settings.model_type} (parameter 'model_type'): "
            f"{explained(error)}{_other_type(path, settings.model_type)}"
        ) from error
    if _number(model, "num_target") != 1:
        raise unsupported(f"model '{config.name}': Multi-target model not supported")
    return Forest(model, int(model.num_feature), _number(model, "num_class"))


def explained(error: Exception) -> str:
    """Return Treelite's words on one line, without the time and the place in its source that they begin with."""
    return " ".join(_PREFIX.sub("", str(error)).split())[:_LONGEST_REASON]


def _number(model: treelite.Model, field: str) -> int:
    return int(model.get_header_accessor().get_field(field)[0])


def _other_type(path: Path, configured: str) -> str:
    """Return what to add to an error for a file of another type than the configured one."""
    apparent = contents.apparent_type(path)
    if apparent in ("", configured):
        return ""
    later = ", which XGBoost from 3.1 on writes as xgboost.model, too" if apparent == "xgboost_ubj" else ""
    return (
        f"; the file begins as one of type {apparent}{later}: set model_type to {apparent}, and default_model_filename "
        "to the name of the file"
    )


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
