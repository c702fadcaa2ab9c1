"""The file that an instance opens, by its GPU's compute capability."""

import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.modelfiles import BY_COMPUTE_CAPABILITY, first_gpu, for_device

FILES = 'cc_model_filenames [ { key: "8.0" value: "a100.plan" }, { key: "9.0" value: "h100.plan" } ]'


def config(text: str, backend: str = "tensorrt") -> ModelConfig:
    return text_format.Parse(f'name: "m" backend: "{backend}" {text}', ModelConfig())


@pytest.mark.parametrize("backend", sorted(BY_COMPUTE_CAPABILITY))
def test_a_gpu_opens_its_own_file(backend: str) -> None:
    declared = config(FILES + ' default_model_filename: "model.plan"', backend)
    assert for_device(declared, "9.0").default_model_filename == "h100.plan"
    assert for_device(declared, "8.0").default_model_filename == "a100.plan"
    assert declared.default_model_filename == "model.plan", "the given configuration stays as it is"


@pytest.mark.parametrize("capability", ["8.6", "9", "09.0", "", None])
def test_only_the_exact_key_counts(capability: str | None) -> None:
    declared = config(FILES + ' default_model_filename: "model.plan"')
    assert for_device(declared, capability) is declared


def test_a_backend_of_python_code_opens_one_file() -> None:
    declared = config(FILES, "python")
    assert for_device(declared, "9.0") is declared


GPUS = {0: "8.0", 1: "9.0"}


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("", 0),
        ("instance_group [ { kind: KIND_GPU } ]", 0),
        ("instance_group [ { kind: KIND_GPU gpus: [ 1 ] } ]", 1),
        ("instance_group [ { kind: KIND_CPU }, { gpus: [ 1, 0 ] } ]", 1),
        ("instance_group [ { kind: KIND_CPU } ]", None),
        ("instance_group [ { kind: KIND_MODEL } ]", None),
        ("instance_group [ { kind: KIND_GPU gpus: [ 7 ] } ]", None),
    ],
)
def test_the_first_gpu_of_the_first_group_that_may_have_one(groups: str, expected: int | None) -> None:
    assert first_gpu(config(groups), GPUS) == expected


def test_a_machine_without_gpus_has_no_first() -> None:
    assert first_gpu(config(""), {}) is None
    assert first_gpu(config("instance_group [ { kind: KIND_GPU } ]"), {}) is None
