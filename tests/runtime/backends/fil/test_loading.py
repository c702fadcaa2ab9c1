"""Files, parameters and configurations of trees that will not do, each with its name and the way out."""

import json
import struct
from typing import Any

import pytest
from tests.runtime.backends.fil.trees import CONFIG, change_first, forest, lgb, parameters, xgb

from argosy_runtime.backends import fil as backend
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.modelconfig.instances import instances
from argosy_runtime.repository.unsupported import without_effect

VALUES = {"model_type": "xgboost_json", "is_classifier": "false"}
CLASSES = {"model_type": "lightgbm", "is_classifier": "true"}


@pytest.fixture
def refusal(model_folder: Any, host: Any) -> Any:
    def refuse(pbtxt: str, save: Any = None, kind: str = "KIND_CPU", **values: str) -> ServingError:
        folder = model_folder(pbtxt + parameters(**values))
        if save is not None:
            save(folder.version_dir)
        with pytest.raises(ServingError) as raised:
            backend.load(folder.spec(kind=kind), host)
        return raised.value

    return refuse


def values_of_xgboost(folder: Any) -> None:
    xgb("reg:squarederror", 1).save(folder / "xgboost.json")


def classes_of_lightgbm(folder: Any) -> None:
    lgb("multiclass", 3).save(folder / "model.txt")


@pytest.mark.parametrize(
    ("model_type", "name"),
    [
        (None, "xgboost.model"),
        ("xgboost_json", "xgboost.json"),
        ("xgboost_ubj", "xgboost.ubj"),
        ("lightgbm", "model.txt"),
        ("treelite_checkpoint", "checkpoint.tl"),
    ],
)
def test_a_missing_file_is_named(refusal: Any, model_type: str | None, name: str) -> None:
    error = refusal(CONFIG % 1, is_classifier="false", **({"model_type": model_type} if model_type else {}))
    assert error.kind is ErrorKind.UNAVAILABLE
    assert f"/m/1/{name}' for model 'm', whose parameter 'model_type' is {model_type or 'xgboost'};" in error.message


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [
        ("xgboost", "Ill-formed XGBoost model file: corrupted header"),
        ("xgboost_json", "Provided JSON could not be parsed as XGBoost model"),
        ("xgboost_ubj", "nlohmann::json::sax_parse"),
        ("lightgbm", "Ill-formed LightGBM model file"),
        ("treelite_checkpoint", "Cannot load model from a different major Treelite version"),
    ],
)
def test_a_file_of_another_format_is_named(refusal: Any, model_type: str, reason: str) -> None:
    config = CONFIG % 1 + 'default_model_filename: "trees"'
    error = refusal(
        config,
        lambda folder: (folder / "trees").write_bytes(b'{"a": 1}'),
        model_type=model_type,
        is_classifier="false",
    )
    assert error.kind is ErrorKind.INTERNAL
    assert f"/m/1/trees' for model 'm' as {model_type} (parameter 'model_type'): " in error.message
    assert reason in error.message
    assert "\n" not in error.message


@pytest.mark.filterwarnings("ignore:.*Saving model in the UBJSON format")
@pytest.mark.parametrize(
    ("configured", "save", "apparent"),
    [
        ("xgboost", lambda path: xgb("reg:squarederror", 1).save(path.with_name("xgboost.model")), "xgboost_ubj"),
        ("xgboost_json", lambda path: xgb("reg:squarederror", 1).save(path.with_name("a.ubj")), "xgboost_ubj"),
        ("xgboost_ubj", lambda path: xgb("reg:squarederror", 1).save(path.with_name("a.json")), "xgboost_json"),
        ("treelite_checkpoint", lambda path: lgb("multiclass", 3).save(path.with_name("a.txt")), "lightgbm"),
        ("lightgbm", lambda path: path.with_name("a.model").write_bytes(b"binf" + bytes(200)), "xgboost"),
    ],
)
def test_the_type_that_a_file_is_of_is_named(refusal: Any, configured: str, save: Any, apparent: str) -> None:
    def save_as_trees(folder: Any) -> None:
        save(folder / "-")
        (file,) = folder.iterdir()
        file.rename(folder / "trees")

    config = CONFIG % 1 + 'default_model_filename: "trees"'
    error = refusal(config, save_as_trees, model_type=configured, is_classifier="false")
    assert error.kind is ErrorKind.INTERNAL
    later = ", which XGBoost from 3.1 on writes as xgboost.model, too" if apparent == "xgboost_ubj" else ""
    assert error.message.endswith(
        f"; the file begins as one of type {apparent}{later}: set model_type to {apparent}, and default_model_filename "
        "to the name of the file"
    )


def _with_classes(file: Any, find: bytes, replace: bytes) -> None:
    content = file.read_bytes()
    assert find in content
    file.write_bytes(content.replace(find, replace))


def _many_of_json(folder: Any) -> None:
    xgb("multi:softprob", 3).save(folder / "xgboost.json")
    _with_classes(folder / "xgboost.json", b'"num_class":"3"', b'"num_class": "2000000000"')


def _many_of_ubjson(folder: Any) -> None:
    xgb("multi:softprob", 3).save(folder / "xgboost.ubj")
    length = b"num_classSL" + bytes(7)
    _with_classes(folder / "xgboost.ubj", length + b"\x013", length + b"\x0a2000000000")


def _many_of_lightgbm(folder: Any) -> None:
    classes_of_lightgbm(folder)
    _with_classes(folder / "model.txt", b"num_class=3", b"num_class=2000000000")


def _many_of_binary(folder: Any) -> None:
    (folder / "xgboost.model").write_bytes(b"binf" + struct.pack("<fIi", 0.5, 5, 2_000_000_000) + bytes(500))


def _many_of_checkpoint(folder: Any) -> None:
    forest().save(folder / "checkpoint.tl")
    change_first(folder / "checkpoint.tl", "num_class", 2_000_000_000)


@pytest.mark.parametrize(
    ("model_type", "save"),
    [
        ("xgboost_json", _many_of_json),
        ("xgboost_ubj", _many_of_ubjson),
        ("lightgbm", _many_of_lightgbm),
        ("xgboost", _many_of_binary),
        ("treelite_checkpoint", _many_of_checkpoint),
    ],
)
def test_more_classes_than_a_file_has_bytes_are_refused(refusal: Any, model_type: str, save: Any) -> None:
    error = refusal(CONFIG % 3, save, model_type=model_type, is_classifier="false")
    assert error.kind is ErrorKind.INTERNAL
    assert ": its num_class is 2000000000, and a file of " in error.message


@pytest.mark.parametrize("feature", [5, 500_000_000])
def test_a_feature_that_the_model_has_not_is_named(refusal: Any, feature: int) -> None:
    def save(folder: Any) -> None:
        values_of_xgboost(folder)
        file = folder / "xgboost.json"
        model = json.loads(file.read_text())
        model["learner"]["gradient_booster"]["model"]["trees"][1]["split_indices"][0] = feature
        file.write_text(json.dumps(model))

    error = refusal(CONFIG % 1, save, **VALUES)
    assert error.kind is ErrorKind.INTERNAL
    assert error.message.endswith(f": tree 1 splits on feature {feature}, and the model has 5 features")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("split_index", -1, "tree 0 splits on feature -1, and the model has 5 features"),
        ("cleft", 0, "tree 0 has a node whose children are not nodes of their own"),
        ("cright", 1, "tree 0 has a node whose children are not nodes of their own"),
        ("cright", 1_000_000, "tree 0 has a node whose children are not nodes of their own"),
        ("class_id", 3, "its class_id is not one number below 3 for each of its 8 trees"),
        ("target_id", -2, "its target_id is not one number below 1 for each of its 8 trees"),
    ],
)
def test_a_damaged_checkpoint_is_named(refusal: Any, field: str, value: int, reason: str) -> None:
    def save(folder: Any) -> None:
        forest().save(folder / "checkpoint.tl")
        change_first(folder / "checkpoint.tl", field, value)

    error = refusal(CONFIG % 3, save, model_type="treelite_checkpoint", is_classifier="false")
    assert error.kind is ErrorKind.INTERNAL
    assert error.message.endswith(f"treelite_checkpoint (parameter 'model_type'): {reason}")


# Treelite warns of the field from C.
@pytest.mark.filterwarnings("ignore:.*warn_callback:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:.*of_tomorrow")
def test_a_field_that_treelite_does_not_know_is_skipped_where_the_model_says_so(
    refusal: Any, model_folder: Any, host: Any
) -> None:
    def save(folder: Any) -> None:
        values_of_xgboost(folder)
        file = folder / "xgboost.json"
        file.write_text(file.read_text().replace('{"learner":', '{"of_tomorrow": 1, "learner":', 1))

    assert "could not be parsed" in refusal(CONFIG % 1, save, **VALUES).message
    config = CONFIG.replace('"m"', '"n"') % 1
    folder = model_folder(config + parameters(**VALUES, xgboost_allow_unknown_field="true"))
    save(folder.version_dir)
    backend.load(folder.spec(), host).close()


@pytest.mark.parametrize(
    ("wrong", "kind", "expected"),
    [
        (
            {"model_type": "onnx"},
            ErrorKind.UNSUPPORTED,
            (
                "onnx not recognized as a valid serialization format. Set the parameter 'model_type' of model 'm' to "
                "one of xgboost, xgboost_json, xgboost_ubj, lightgbm, treelite_checkpoint"
            ),
        ),
        (
            {"is_classifier": ""},
            ErrorKind.INVALID_ARG,
            (
                "Required parameter is_classifier not found in config of model 'm': set it to true for a model that "
                "predicts classes, or to false for one that predicts values"
            ),
        ),
        (
            {"predict_proba": "1"},
            ErrorKind.INTERNAL,
            "Expected 'true' or 'false' for parameter 'predict_proba', got: '1'",
        ),
        (
            {"threshold": "half"},
            ErrorKind.INVALID_ARG,
            "model 'm': parameter 'threshold' is 'half', expected a number",
        ),
        *(
            (
                {"threshold": value},
                ErrorKind.INVALID_ARG,
                f"model 'm': parameter 'threshold' is '{value}', expected a number",
            )
            for value in ("nan", "inf", "-Infinity", "1e999")
        ),
        (
            {"cpu_nthread": "2147483648"},
            ErrorKind.INVALID_ARG,
            "model 'm': parameter 'cpu_nthread' is 2147483648, expected 2147483647 or less",
        ),
        (
            {"cpu_nthread": "all"},
            ErrorKind.INVALID_ARG,
            "model 'm': parameter 'cpu_nthread' is 'all', expected a whole number",
        ),
    ],
)
def test_a_wrong_parameter_is_named(refusal: Any, wrong: dict[str, str], kind: ErrorKind, expected: str) -> None:
    error = refusal(CONFIG % 1, values_of_xgboost, **{**VALUES, **wrong})
    assert (error.kind, error.message) == (kind, expected)


BATCHED = "(its dims after the dimension of the batch, as max_batch_size > 0)"


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        (
            "[ 5 ]",
            "[ 4 ]",
            (
                "model 'm', input 'input__0': the model has 5 features, so its input is [-1,5], but the model "
                f"configuration specifies [-1,4] {BATCHED}"
            ),
        ),
        (
            "max_batch_size: 64",
            "",
            (
                "model 'm', input 'input__0': the model has 5 features, so its input is [-1,5], but the model "
                "configuration specifies [5]"
            ),
        ),
        (
            "[ 1 ]",
            "[ 2 ]",
            (
                "model 'm', output 'output__0': the model answers a row with 1 value, so its output is [-1,1], but the "
                f"model configuration specifies [-1,2] {BATCHED}"
            ),
        ),
        ("input__0", "x", "model 'm' has inputs 'x', and a model of trees has one input 'input__0'"),
        ("output__0", "y", "model 'm' has outputs 'y', and a model of trees has one output 'output__0'"),
        (
            "TYPE_FP32 dims: [ 5 ]",
            "TYPE_FP64 dims: [ 5 ]",
            "model 'm', input 'input__0': data_type is TYPE_FP64, expected TYPE_FP32",
        ),
        (
            "dims: [ 5 ]",
            "dims: [ 5 ] optional: true",
            "model 'm', input 'input__0': optional is set, and a model of trees takes rows",
        ),
        (
            "output [",
            'output [ { name: "treeshap_output" data_type: TYPE_FP32 dims: [ 6 ] },',
            (
                "model 'm': output 'treeshap_output' is not supported by this server; leave it out, and compute "
                "Shapley values where the model was trained, or in a model of backend 'python'"
            ),
        ),
    ],
)
def test_a_contradiction_is_named(refusal: Any, find: str, replace: str, expected: str) -> None:
    config = CONFIG % 1
    assert find in config
    assert refusal(config.replace(find, replace), values_of_xgboost, **VALUES).message == expected


@pytest.mark.parametrize(
    ("values", "dims", "expected"),
    [
        (CLASSES, 3, "answers a row with 1 value,"),
        ({**CLASSES, "predict_proba": "true"}, 1, "answers a row with 3 values, so its output is [-1,3]"),
        ({**CLASSES, "is_classifier": "false"}, 2, "answers a row with 3 values, so its output is [-1,3]"),
    ],
)
def test_outputs_have_the_width_of_the_answer(refusal: Any, values: dict[str, str], dims: int, expected: str) -> None:
    assert expected in refusal(CONFIG % dims, classes_of_lightgbm, **values).message


def test_an_instance_on_a_gpu_is_refused(refusal: Any) -> None:
    error = refusal(CONFIG % 1, values_of_xgboost, "KIND_GPU", **VALUES)
    assert error.kind is ErrorKind.INVALID_ARG
    assert error.message == (
        "model instance 'm_0' is of KIND_GPU, and this server computes trees on CPUs alone; give model 'm' "
        "instance_group [ { kind: KIND_CPU } ]"
    )


@pytest.mark.parametrize("group", ["", "instance_group [ { kind: KIND_AUTO } ]"])
def test_instances_of_no_kind_are_on_the_cpu_of_a_machine_with_gpus(model_folder: Any, group: str) -> None:
    config = model_folder(CONFIG % 1 + group).config
    assert [(one.kind, one.device_id) for one in instances(config, [0, 1])] == [("KIND_CPU", 0)]


@pytest.mark.parametrize(
    ("batch", "values", "input_dims", "output_dims"),
    [
        ("max_batch_size: 8", {}, [5], [1]),
        ("max_batch_size: 8", {"predict_proba": "true"}, [5], [3]),
        ("", {"predict_proba": "true"}, [-1, 5], [-1, 3]),
    ],
)
def test_a_configuration_without_tensors_is_completed(
    model_folder: Any, host: Any, batch: str, values: dict[str, str], input_dims: list[int], output_dims: list[int]
) -> None:
    folder = model_folder(f'name: "m" backend: "fil" {batch}' + parameters(**CLASSES, **values))
    classes_of_lightgbm(folder.version_dir)
    config = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert [(tensor.name, list(tensor.dims)) for tensor in config.input] == [("input__0", input_dims)]
    assert [(tensor.name, list(tensor.dims)) for tensor in config.output] == [("output__0", output_dims)]
    backend.load(folder.spec(config), host).close()


def test_a_folder_may_hold_the_file(model_folder: Any, host: Any) -> None:
    settings = {"model_type": "treelite_checkpoint", "is_classifier": "true"}
    folder = model_folder(CONFIG % 1 + 'default_model_filename: "trees"' + parameters(**settings))
    (folder.version_dir / "trees").mkdir()
    forest().save(folder.version_dir / "trees" / "checkpoint.tl")
    backend.load(folder.spec(), host).close()


def test_parameters_of_gpus_are_reported_as_without_effect(model_folder: Any) -> None:
    config = model_folder(CONFIG % 1 + parameters(storage_type="SPARSE", use_experimental_optimizations="true")).config
    assert without_effect(config) == (
        "parameters.storage_type, parameters.use_experimental_optimizations have no effect on this server"
    )
    config.backend = "python"
    assert not without_effect(config)
