"""Models of trees over HTTP and gRPC, and as a step of an ensemble."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tests.runtime.backends.fil.trees import CONFIG, ROWS, forest, lgb, move_leaves, parameters, xgb

ENSEMBLE = """
name: "both" platform: "ensemble" max_batch_size: 64
input [ { name: "rows" data_type: TYPE_FP32 dims: [ 5 ] } ]
output [ { name: "values" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "classes" data_type: TYPE_FP32 dims: [ 3 ] } ]
ensemble_scheduling { step [
  { model_name: "values" model_version: -1
    input_map { key: "input__0" value: "rows" } output_map { key: "output__0" value: "values" } },
  { model_name: "classes" model_version: -1
    input_map { key: "input__0" value: "rows" } output_map { key: "output__0" value: "classes" } }
] }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, argosy_server: Any) -> Any:
    repository = tmp_path_factory.mktemp("trees")
    batching = "dynamic_batching { max_queue_delay_microseconds: 2000 }"
    _write(repository, "values", 1, batching, model_type="xgboost_ubj", is_classifier="false", algo="NAIVE")
    xgb("reg:squarederror", 1).save(repository / "values" / "1" / "xgboost.ubj")
    _write(repository, "classes", 3, "", model_type="lightgbm", is_classifier="true", predict_proba="true")
    lgb("multiclass", 3).save(repository / "classes" / "1" / "model.txt")
    settings = {"model_type": "treelite_checkpoint", "is_classifier": "false", "cpu_nthread": "1"}
    _write(repository, "damaged", 3, "", **settings)
    forest().save(repository / "damaged" / "1" / "checkpoint.tl")
    move_leaves(repository / "damaged" / "1" / "checkpoint.tl")
    (repository / "both" / "1").mkdir(parents=True)
    (repository / "both" / "config.pbtxt").write_text(ENSEMBLE)
    return argosy_server(repository)


def _write(repository: Path, name: str, dims: int, more: str, **values: str) -> None:
    (repository / name / "1").mkdir(parents=True)
    text = CONFIG.replace('"m"', f'"{name}"') % dims + more + parameters(**values)
    (repository / name / "config.pbtxt").write_text(text)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_answers_over_the_wire(server: Any, protocol: str) -> None:
    module = {"http": tritonclient.http, "grpc": tritonclient.grpc}[protocol]
    with module.InferenceServerClient(getattr(server, protocol)) as client:
        values = _answer(module, client, "values", "input__0", "output__0")
        # A dimension of 1 is left out, as by Triton's backend.
        assert values.shape == (30,)
        np.testing.assert_allclose(values, xgb("reg:squarederror", 1).values[:30], rtol=1e-5, atol=1e-6)
        classes = _answer(module, client, "classes", "input__0", "output__0")
        np.testing.assert_allclose(classes, lgb("multiclass", 3).values[:30], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(_answer(module, client, "both", "rows", "classes"), classes)
        np.testing.assert_array_equal(_answer(module, client, "both", "rows", "values"), values)


def test_a_file_that_ends_its_process_leaves_the_server_and_other_models(server: Any) -> None:
    with tritonclient.http.InferenceServerClient(server.http) as client:
        # The second request meets the process that replaces the first one, or none yet.
        for _ in range(2):
            with pytest.raises(tritonclient.utils.InferenceServerException):
                _answer(tritonclient.http, client, "damaged", "input__0", "output__0")
            values = _answer(tritonclient.http, client, "values", "input__0", "output__0")
            np.testing.assert_allclose(values, xgb("reg:squarederror", 1).values[:30], rtol=1e-5, atol=1e-6)


def test_the_index_names_parameters_without_effect(server: Any) -> None:
    with tritonclient.http.InferenceServerClient(server.http) as client:
        reasons = {row["name"]: row.get("reason", "") for row in client.get_model_repository_index()}
    assert reasons["values"] == "parameters.algo has no effect on this server"
    assert not reasons["classes"]


def _answer(module: Any, client: Any, model: str, name: str, output: str) -> np.ndarray:
    tensor = module.InferInput(name, [30, 5], "FP32")
    tensor.set_data_from_numpy(ROWS[:30])
    answered: np.ndarray = client.infer(model, [tensor]).as_numpy(output)
    return answered
