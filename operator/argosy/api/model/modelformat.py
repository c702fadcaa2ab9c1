"""Formats of models, and the backends that run them."""

from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from argosy.api.values.base import ApiModel
from argosy_common.wording import did_you_mean
from argosy_runtime.modelconfig.modelfiles import TREE_FILES

TREES = "fil"
"""The backend of boosted trees and forests, each of whose formats is a `model_type` of it."""
BACKENDS = {
    "onnx": "onnxruntime",
    "pytorch": "pytorch",
    "python": "python",
    "huggingface": "transformers",
    "tensorrt": "tensorrt",
    "tensorrt_llm": "tensorrtllm",
    "vllm": "vllm",
    **dict.fromkeys(TREE_FILES, TREES),
}
"""The backend that runs each model format."""


LANGUAGE_BACKENDS = frozenset({"vllm", "tensorrtllm", "transformers"})
"""Backends of language models, whose engines OpenAI's API reaches and report what an endpoint picker reads."""


OPENED_BY_PATH = frozenset({"tensorrtllm"})
"""Backends whose engines are opened by a path that all versions of a model share: no server has two of them."""


_OTHERS = {backend: name for name, backend in BACKENDS.items()} | {
    "transformers": "huggingface",
    "torch": "pytorch",
    "torchscript": "pytorch",
    "trt": "tensorrt",
    TREES: "xgboost_json",
    "treelite": "treelite_checkpoint",
}


def backend_for(model_format: str) -> str:
    """Return the backend's name in `config.pbtxt`. Raises ValueError, which lists the formats, for an unknown one."""
    if model_format not in BACKENDS:
        hint = did_you_mean(_OTHERS.get(model_format, model_format), BACKENDS)
        formats = "" if hint.endswith(")") else f" (known: {', '.join(BACKENDS)})"
        raise ValueError(f"{model_format!r} is no model format{hint}{formats}")
    return BACKENDS[model_format]


def _check_format(name: str) -> str:
    backend_for(name)
    return name


class ModelFormat(ApiModel):
    """The format of a model's files."""

    name: Annotated[str, AfterValidator(_check_format), WithJsonSchema({"type": "string", "enum": list(BACKENDS)})] = (
        Field(
            description="The format, which selects the backend: onnx, pytorch, python, huggingface, tensorrt, "
            "tensorrt_llm, vllm; of boosted trees and forests xgboost, xgboost_json, xgboost_ubj, lightgbm, "
            "treelite_checkpoint, which need is_classifier in config.parameters. tensorrt_llm has never run: the "
            "backend is tested without a GPU."
        )
    )
    version: str | None = Field(
        default=None, max_length=64, description="The version of the format, for information only. Default: none."
    )

    @property
    def backend(self) -> str:
        """The backend's name in `config.pbtxt`."""
        return BACKENDS[self.name]
