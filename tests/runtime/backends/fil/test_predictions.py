"""Answers of models of trees are the predictions of the libraries that trained them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.runtime.backends.fil.trees import CONFIG, ROWS, Trained, forest, lgb, parameters, xgb
from tests.runtime.backends.requests import named
from treelite import gtil

from argosy_runtime.backends import fil as backend
from argosy_runtime.backends.fil import running
from argosy_runtime.errors import ErrorKind

ANSWERED = 64


@pytest.fixture
def answers(model_folder: Callable[[str], Any], host: Any, responder: Any) -> Callable[..., np.ndarray]:
    def answer(trained: Trained, file: str, dims: int, rows: np.ndarray = ROWS, **values: str) -> np.ndarray:
        folder = model_folder(CONFIG % dims + parameters(**values))
        trained.save(folder.version_dir / file)
        instance = backend.load(folder.spec(), host)
        # Three requests of one batch.
        parts = np.split(rows[:ANSWERED], [1, 40])
        instance.execute([named({"input__0": part}) for part in parts], responder)
        instance.close()
        responses = [responder.only(index) for index in range(len(parts))]
        assert [response.error for response in responses] == [None] * 3
        (tensors,) = zip(*(response.outputs for response in responses), strict=True)
        assert {tensor.datatype for tensor in tensors} == {"FP32"}
        return np.concatenate([tensor.array for tensor in tensors])

    return answer


FORMATS = [("xgboost_json", "xgboost.json"), ("xgboost_ubj", "xgboost.ubj")]


@pytest.mark.parametrize(("model_type", "file"), FORMATS)
@pytest.mark.parametrize("objective", ["reg:squarederror", "count:poisson", "binary:logistic"])
def test_values_of_xgboost(answers: Any, model_type: str, file: str, objective: str) -> None:
    trained = xgb(objective, 1 if objective == "reg:squarederror" else 2)
    answered = answers(trained, file, 1, model_type=model_type, is_classifier="false")
    np.testing.assert_allclose(answered, trained.values[:ANSWERED], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("model_type", "file"), FORMATS)
def test_probabilities_of_xgboost(answers: Any, model_type: str, file: str) -> None:
    trained = xgb("multi:softprob", 3)
    answered = answers(trained, file, 3, model_type=model_type, is_classifier="true", predict_proba="true")
    np.testing.assert_allclose(answered, trained.values[:ANSWERED], rtol=1e-5)


def test_classes_of_xgboost(answers: Any) -> None:
    trained = xgb("multi:softmax", 3)
    answered = answers(trained, "xgboost.json", 1, model_type="xgboost_json", output_class="true", threshold="0.5")
    np.testing.assert_array_equal(answered, trained.values[:ANSWERED])
    assert set(answered) == {0, 1, 2}


@pytest.mark.parametrize("dims", [1, 2, -1])
def test_probabilities_of_two_classes_are_one_or_two(answers: Any, dims: int) -> None:
    trained = lgb("binary", 2)
    answered = answers(trained, "model.txt", dims, model_type="lightgbm", is_classifier="true", predict_proba="true")
    second = trained.values[:ANSWERED]
    expected = np.stack([1 - second, second], axis=1) if dims == 2 else second
    assert answered.shape == expected.shape
    np.testing.assert_allclose(answered, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threshold", [None, "0.4", "0.6"])
def test_a_threshold_decides_between_two_classes(answers: Any, threshold: str | None) -> None:
    trained = lgb("binary", 2)
    more = {} if threshold is None else {"threshold": threshold}
    answered = answers(trained, "model.txt", 1, model_type="lightgbm", is_classifier="true", **more)
    np.testing.assert_array_equal(answered, trained.values[:ANSWERED] > float(threshold or 0.5))
    assert 0 < answered.sum() < ANSWERED


@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
def test_probabilities_of_lightgbm(answers: Any, objective: str) -> None:
    trained = lgb(objective, 3)
    answered = answers(trained, "model.txt", 3, model_type="lightgbm", is_classifier="true", predict_proba="true")
    np.testing.assert_allclose(answered, trained.values[:ANSWERED], rtol=1e-5, atol=1e-6)


def test_values_of_lightgbm(answers: Any) -> None:
    trained = lgb("regression", 1)
    answered = answers(trained, "model.txt", 1, model_type="lightgbm", is_classifier="false")
    np.testing.assert_allclose(answered, trained.values[:ANSWERED], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threads", ["1", "2", "0"])
def test_a_forest_of_scikit_learn(answers: Any, threads: str) -> None:
    trained = forest()
    settings = {"model_type": "treelite_checkpoint", "is_classifier": "true", "cpu_nthread": threads}
    answered = answers(trained, "checkpoint.tl", 3, np.nan_to_num(ROWS), predict_proba="true", **settings)
    np.testing.assert_allclose(answered, trained.values[:ANSWERED], rtol=1e-5, atol=1e-6)


def test_rows_of_another_length_are_refused(model_folder: Any, host: Any, responder: Any) -> None:
    config = CONFIG.replace("dims: [ 5 ]", "dims: [ -1 ]") % 1
    folder = model_folder(config + parameters(model_type="xgboost_json", is_classifier="false"))
    xgb("reg:squarederror", 1).save(folder.version_dir / "xgboost.json")
    instance = backend.load(folder.spec(), host)
    instance.execute([named({"input__0": ROWS[:2, :4]}), named({"input__0": ROWS[:2]})], responder)
    error = responder.only(0).error
    assert error.kind is ErrorKind.INVALID_ARG
    assert error.message == "model 'm', input 'input__0': the model has 5 features, and the request has rows of 4"
    assert responder.only(1).error is None


def test_without_batches_rows_are_the_request_s_own(model_folder: Any, host: Any, responder: Any) -> None:
    config = CONFIG.replace("max_batch_size: 64", "").replace("[ 5 ]", "[ -1, 5 ]") % "-1, 3"
    folder = model_folder(config + parameters(model_type="xgboost_ubj", is_classifier="true", predict_proba="true"))
    trained = xgb("multi:softprob", 3)
    trained.save(folder.version_dir / "xgboost.ubj")
    backend.load(folder.spec(), host).execute([named({"input__0": ROWS[:7]})], responder)
    (output,) = responder.only().outputs
    np.testing.assert_allclose(output.array, trained.values[:7], rtol=1e-5)


@pytest.mark.parametrize(("limit", "values"), [(100_000, {}), (None, {"cpu_nthread": "100000"})])
def test_more_threads_than_openmp_has_are_as_many_as_it_has(
    model_folder: Any, host: Any, responder: Any, monkeypatch: pytest.MonkeyPatch, limit: int | None, values: Any
) -> None:
    monkeypatch.setattr(running, "cpu_limit", lambda: limit)
    config = CONFIG.replace("max_batch_size: 64", "max_batch_size: 200") % 1
    folder = model_folder(config + parameters(model_type="xgboost_json", is_classifier="false", **values))
    trained = xgb("reg:squarederror", 1)
    trained.save(folder.version_dir / "xgboost.json")
    backend.load(folder.spec(), host).execute([named({"input__0": ROWS})], responder)
    assert responder.only().error is None
    np.testing.assert_allclose(responder.only().outputs[0].array, trained.values, rtol=1e-5, atol=1e-6)


def test_errors_of_treelite_are_its_words_alone(
    model_folder: Any, host: Any, responder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("[02:41:17] /project/src/gtil/predict.cc:57: Check failed: a > b: \n(3 vs. 4)")

    folder = model_folder(CONFIG % 1 + parameters(model_type="xgboost_json", is_classifier="false"))
    xgb("reg:squarederror", 1).save(folder.version_dir / "xgboost.json")
    instance = backend.load(folder.spec(), host)
    monkeypatch.setattr(gtil, "predict", fail)
    instance.execute([named({"input__0": ROWS[:1]})], responder)
    assert responder.only().error.message == "model 'm': a > b: (3 vs. 4)"
