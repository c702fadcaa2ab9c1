"""The assistant's manifests are valid, point at files that are there, and make configs that fit together."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import Ensemble, InferenceModel, ServingPool
from argosy.local.manifests.reading import read_manifests
from argosy.planning.facts import Node
from argosy.reconcile import reconcile
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.model_config import Devices, model_config
from argosy.snapshot import FleetSnapshot
from argosy_runtime.modelconfig import check, check_steps, is_decoupled, normalize

ASSISTANT = Path(__file__).parents[2] / "examples" / "assistant"
STAGES = ["tokenize", "embed", "safety", "llm", "detokenize"]


def of_kind(kind: type) -> list[Any]:
    manifests = read_manifests(ASSISTANT)
    assert not manifests.problems
    return [resource for resource in manifests.resources if isinstance(resource, kind)]


def configs() -> dict[str, ModelConfig]:
    return {model.name: model_config(model, Devices(), [1]) for model in of_kind(InferenceModel)}


def test_one_pool_serves_one_ensemble_of_five_models() -> None:
    (pool,) = of_kind(ServingPool)
    (ensemble,) = of_kind(Ensemble)
    models = of_kind(InferenceModel)
    assert [model.name for model in models] == [step.model for step in ensemble.spec.steps] == STAGES
    assert {resource.spec.pool_ref.name for resource in (*models, ensemble)} == {pool.name}
    assert [model.spec.model_format.backend for model in models] == [
        "python", "pytorch", "onnxruntime", "transformers", "python",
    ]  # fmt: skip


def test_one_cpu_node_serves_it_all() -> None:
    resources = read_manifests(ASSISTANT).resources
    outcome = reconcile(FleetSnapshot(tuple(resources), (Node("laptop", ()),)), datetime.now(UTC))
    assert not outcome.problems
    ((step,),) = outcome.steps.values()
    assert {model.name for model in step.repository.models} == {*STAGES, "assistant"}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_has_its_files_and_a_valid_config(name: str) -> None:
    (model,) = [candidate for candidate in of_kind(InferenceModel) if candidate.name == name]
    folder = ASSISTANT / "models" / name
    assert model.spec.storage_uri == folder.as_uri()
    assert any(folder.iterdir())
    assert not check(normalize(configs()[name], name, gpus=[]))


def test_every_tensor_of_the_ensemble_fits_its_ends() -> None:
    (ensemble,) = of_kind(Ensemble)
    config = ensemble_config(ensemble, dict.fromkeys(STAGES, 1))
    assert not check(normalize(config, "assistant", gpus=[]))
    assert not check_steps(config, configs())
    assert is_decoupled(config, configs())
