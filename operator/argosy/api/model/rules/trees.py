"""Rules of models of trees, whose backend has to know whether a model predicts classes or values."""

from collections.abc import Iterator
from typing import Any

from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.model.modelformat import TREES
from argosy.api.values.base import Fault, Rule
from argosy.api.values.storage import suffix_of
from argosy_runtime.modelconfig.modelfiles import TREE_SUFFIXES
from argosy_runtime.modelconfig.parameters.trees import FLAGS, IS_CLASSIFIER, classifier_parameter

_PARAMETERS = "parameters"


def _is_classifier(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.backend != TREES:
        return
    values = _texts(spec.config.get(_PARAMETERS))
    name = classifier_parameter(values)
    if name and values[name] not in FLAGS:
        yield Fault(f"expected 'true' or 'false'; found {values[name]!r}", ("config", _PARAMETERS, name))
    elif not name and _is_lone_file(spec):
        yield Fault(
            f"is required by models of format {spec.model_format.name}: set {{string_value: 'true'}} for a model that "
            "predicts classes, or {string_value: 'false'} for one that predicts values",
            ("config", _PARAMETERS, IS_CLASSIFIER),
        )


def _is_lone_file(spec: InferenceModelFields) -> bool:
    """Return whether the files are one of trees; a folder may have a `config.pbtxt` with the parameter."""
    suffixes = TREE_SUFFIXES[spec.model_format.name]
    uris = [files.storage_uri for files in spec.declared.values()]
    return bool(uris) and all(suffix_of(uri) in suffixes for uri in uris)


def _texts(parameters: Any) -> dict[str, str]:
    """Return the parameters with a text for a value. The schema's own check names the others."""
    entries = parameters.items() if isinstance(parameters, dict) else ()
    texts = {name: value.get("string_value") for name, value in entries if isinstance(value, dict)}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


TREE_RULES = (
    Rule(("config", "engine", "model_format", "version", "versions", "storage_uri", "digest"), _is_classifier),
)
