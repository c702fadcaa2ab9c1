"""Parameters of models of trees, which the backend `fil` reads as Triton's does."""

from collections.abc import Mapping
from typing import Final

IS_CLASSIFIER: Final = "is_classifier"
FLAGS: Final = ("true", "false")
"""The values of a parameter that is true or false, in this spelling alone."""
_NAMES: Final = ("output_class", IS_CLASSIFIER)


def classifier_parameter(values: Mapping[str, str]) -> str:
    """Return the parameter that says whether a model predicts classes; empty where none does, although one has to.

    It is `is_classifier`, or `output_class`, its name before 25.09, which decides where both are set.
    """
    return next((name for name in _NAMES if values.get(name)), "")
