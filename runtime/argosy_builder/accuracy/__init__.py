"""The gate: an engine's answers held against those of the model that it was built from.

`judge`: both answer the same samples, and one number is held against the bounds. `metrics`: that number, pure, one
function a metric. `language`: the likelihood that a language model gives to a text. `scripts`: a user's own measure.
"""

from .judge import judge
from .language import LanguageRunner
from .metrics import METRICS

__all__ = ["METRICS", "LanguageRunner", "judge"]
