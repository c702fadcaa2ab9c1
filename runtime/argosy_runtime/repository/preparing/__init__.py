"""From a model's folder to the complete, checked configurations that its versions are served with."""

from .declared import declared_config, declared_versions, load_timeout, steps_of
from .labels import label_lines
from .prepared import LoadedRevision, NoVersionError, Prepared, PreparedModel
from .preparer import Preparer

__all__ = [
    "LoadedRevision",
    "NoVersionError",
    "Prepared",
    "PreparedModel",
    "Preparer",
    "declared_config",
    "declared_versions",
    "label_lines",
    "load_timeout",
    "steps_of",
]
