"""Files that the operator writes into a model's version folders, where the model's own files have none of that name."""

import json
from collections.abc import Mapping
from typing import Any

from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.render.config.language import POD_REPOSITORY, VLLM, vllm_arguments
from argosy.render.config.model_config import Devices
from argosy_agent.contract.models import VERSION

MODEL_JSON = "model.json"
"""The arguments of vLLM's engine; NVIDIA's backend loads no model without it."""


def version_texts(model: InferenceModel, devices: Devices) -> Mapping[str, str]:
    """Return the texts of the files by name. `${version}` in them stands for the version's number."""
    if model.spec.backend != VLLM or devices.runtime is not RuntimeName.TRITON:
        return {}
    return {MODEL_JSON: json.dumps(_arguments(model, len(devices.gpus)), indent=2, sort_keys=True) + "\n"}


def _arguments(model: InferenceModel, gpus: int) -> dict[str, Any]:
    """Return the arguments of `AsyncEngineArgs`. The model's path is absolute, since the backend resolves none."""
    return {"model": f"{POD_REPOSITORY}/{model.served_name}/{VERSION}", **vllm_arguments(model.spec, gpus)}
