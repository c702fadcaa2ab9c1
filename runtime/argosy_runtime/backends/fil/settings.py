"""The parameters of a model of trees."""

from dataclasses import dataclass
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import internal, invalid, unsupported
from argosy_runtime.modelconfig.modelfiles import TREE_FILES
from argosy_runtime.modelconfig.parameters.trees import FLAGS, classifier_parameter

_MOST_THREADS: Final = 2**31 - 1
"""The largest number that Treelite takes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a model's parameters say: its format, what it answers, and its threads (0 or less: as many as there are)."""

    model_type: str
    is_classifier: bool
    predict_proba: bool
    threshold: float
    allow_unknown_field: bool
    threads: int

    @classmethod
    def read(cls, config: ModelConfig) -> "Settings":
        """Return the settings of a configuration. Raises ServingError that names the parameter."""
        parameters = Parameters(config)
        model_type = parameters.text("model_type", "xgboost")
        if model_type not in TREE_FILES:
            raise unsupported(
                f"{model_type} not recognized as a valid serialization format. Set the parameter 'model_type' of model "
                f"'{config.name}' to one of {', '.join(TREE_FILES)}"
            )
        return cls(
            model_type,
            _is_classifier(parameters, config.name),
            _flag(parameters, "predict_proba"),
            parameters.number("threshold", 0.5),
            _flag(parameters, "xgboost_allow_unknown_field"),
            parameters.integer("cpu_nthread", -1, -_MOST_THREADS - 1, _MOST_THREADS),
        )

    @property
    def answers_classes(self) -> bool:
        """Whether a row is answered with the number of its class."""
        return self.is_classifier and not self.predict_proba

    def widths(self, classes: int) -> tuple[int, ...]:
        """Return how many values a row may be answered with, for a model that has `classes` values for a row.

        A model of two classes has the second one's probability; the configuration may ask for both.
        """
        if self.answers_classes:
            return (1,)
        return (1, 2) if self.is_classifier and classes == 1 else (classes,)


def _is_classifier(parameters: Parameters, model: str) -> bool:
    if name := classifier_parameter(parameters.starting_with("")):
        return _flag(parameters, name)
    raise invalid(
        f"Required parameter is_classifier not found in config of model '{model}': set it to true for a model that "
        "predicts classes, or to false for one that predicts values"
    )


def _flag(parameters: Parameters, name: str) -> bool:
    value = parameters.text(name, "false")
    if value not in FLAGS:
        raise internal(f"Expected 'true' or 'false' for parameter '{name}', got: '{value}'")
    return value == "true"
