"""Autofill, defaults, instances and versions."""

import pytest

from argosy_runtime.modelconfig import ConfigError, check, instances, normalize, parse_text, to_json, versions
from argosy_runtime.modelconfig.autofill import guess_backend


@pytest.mark.parametrize(
    ("files", "backend", "platform", "filename"),
    [
        (["model.plan", "model.onnx", "model.py"], "tensorrt", "tensorrt_plan", "model.plan"),
        (["model.onnx", "model.xml", "model.pt"], "onnxruntime", "onnxruntime_onnx", "model.onnx"),
        (["model.onnx/"], "onnxruntime", "onnxruntime_onnx", "model.onnx"),
        (["model.xml", "model.pt", "model.py"], "openvino", "", "model.xml"),
        (["model.pt", "model.pt2", "model.py"], "pytorch", "pytorch_libtorch", "model.pt"),
        (["model.pt2", "model.py"], "pytorch", "torch_aoti", "model.pt2"),
        (["model.py", "weights.bin"], "python", "", "model.py"),
    ],
)
def test_files_are_recognised_in_tritons_order(files: list[str], backend: str, platform: str, filename: str) -> None:
    full = normalize(parse_text(""), "m", files=files)
    assert (full.name, full.backend, full.platform, full.default_model_filename) == (
        "m",
        backend,
        platform,
        filename,
    )
    row = guess_backend(files)
    assert row is not None
    assert row.backend == backend


def test_a_directory_is_not_a_plan() -> None:
    assert guess_backend(["model.plan/", "model.pt/"]) is None


@pytest.mark.parametrize(
    ("text", "backend", "platform", "filename"),
    [
        ("platform: 'onnxruntime_onnx'", "onnxruntime", "onnxruntime_onnx", "model.onnx"),
        ("platform: 'tensorrt_plan'", "tensorrt", "tensorrt_plan", "model.plan"),
        ("platform: 'pytorch_libtorch'", "pytorch", "pytorch_libtorch", "model.pt"),
        ("platform: 'torch_aoti'", "pytorch", "torch_aoti", "model.pt2"),
        ("backend: 'onnxruntime'", "onnxruntime", "onnxruntime_onnx", "model.onnx"),
        ("backend: 'pytorch'", "pytorch", "pytorch_libtorch", "model.pt"),
        ("backend: 'python'", "python", "", "model.py"),
        ("backend: 'openvino'", "openvino", "", "model.xml"),
        ("default_model_filename: 'model.pt2'", "pytorch", "torch_aoti", "model.pt2"),
        ("default_model_filename: 'model.py'", "python", "", "model.py"),
        (
            "backend: 'onnxruntime' default_model_filename: 'a.onnx'",
            "onnxruntime",
            "onnxruntime_onnx",
            "a.onnx",
        ),
        ("platform: 'tensorflow_graphdef'", "tensorflow", "tensorflow_graphdef", "model.graphdef"),
        ("platform: 'ensemble'", "", "ensemble", ""),
        ("backend: 'vllm'", "vllm", "", ""),
        ("backend: 'identity'", "identity", "", ""),
    ],
)
def test_what_is_named_decides(text: str, backend: str, platform: str, filename: str) -> None:
    full = normalize(parse_text(text), "m", files=["model.plan"])
    assert (full.backend, full.platform, full.default_model_filename) == (backend, platform, filename)


def test_the_folders_ending_names_a_custom_backend() -> None:
    full = normalize(parse_text(""), "model.identity")
    assert (full.backend, full.default_model_filename) == ("identity", "model.identity")


def test_nothing_to_go_by() -> None:
    with pytest.raises(ConfigError) as caught:
        normalize(parse_text("max_batch_size: 1"), "m", files=["weights.bin"])
    assert str(caught.value) == (
        "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. "
        "Expected model name of the form 'model.<backend_name>'."
    )


def test_a_platform_that_contradicts_its_backend_is_left_for_the_rules() -> None:
    full = normalize(parse_text("backend: 'python' platform: 'tensorrt_plan'"), "m")
    assert (full.backend, full.platform) == ("python", "tensorrt_plan")
    full = normalize(parse_text("backend: 'onnxruntime' platform: 'tensorrt_plan'"), "m")
    assert check(full)[0].path == "platform"


def test_batching_defaults() -> None:
    full = normalize(parse_text("backend: 'python' max_batch_size: 8 dynamic_batching {}"), "m")
    assert list(full.dynamic_batching.preferred_batch_size) == [8]
    full = normalize(parse_text("backend: 'python' dynamic_batching {}"), "m")
    assert list(full.dynamic_batching.preferred_batch_size) == []
    text = "backend: 'python' max_batch_size: 8 dynamic_batching { preferred_batch_size: 2 }"
    assert list(normalize(parse_text(text), "m").dynamic_batching.preferred_batch_size) == [2]


def test_sequence_defaults() -> None:
    full = normalize(parse_text("backend: 'python' max_batch_size: 8 sequence_batching { oldest {} }"), "m")
    assert full.sequence_batching.max_sequence_idle_microseconds == 1_000_000
    assert list(full.sequence_batching.oldest.preferred_batch_size) == [8]
    assert not full.sequence_batching.HasField("direct")
    text = "backend: 'python' sequence_batching { max_sequence_idle_microseconds: 5 }"
    assert normalize(parse_text(text), "m").sequence_batching.max_sequence_idle_microseconds == 5


def test_the_version_policy_is_the_latest_one() -> None:
    full = normalize(parse_text("backend: 'python'"), "m")
    assert to_json(full)["version_policy"] == {"latest": {"num_versions": 1}}
    full = normalize(parse_text("backend: 'python' version_policy { all {} }"), "m")
    assert to_json(full)["version_policy"] == {"all": {}}


def test_pinned_memory_is_on_unless_switched_off() -> None:
    text = "backend: 'python' optimization { input_pinned_memory { enable: false } }"
    optimization = normalize(parse_text(text), "m").optimization
    assert (optimization.input_pinned_memory.enable, optimization.output_pinned_memory.enable) == (False, True)


def test_an_ensemble_gets_neither_groups_nor_optimization() -> None:
    full = normalize(parse_text("platform: 'ensemble' ensemble_scheduling {}"), "e", gpus=[0])
    assert not full.instance_group
    assert not full.HasField("optimization")


def placed(text: str, gpus: list[int]) -> list[tuple[str, str, int]]:
    config = parse_text(f"name: 'm' {text}")
    return [(one.name, one.kind, one.device_id) for one in instances(config, gpus)]


def test_without_a_group_the_name_is_the_models() -> None:
    assert placed("backend: 'python'", []) == [("m_0", "KIND_CPU", 0)]
    assert placed("backend: 'python'", [0, 1]) == [("m_0", "KIND_GPU", 0), ("m_0", "KIND_GPU", 1)]
    assert normalize(parse_text("backend: 'python'"), "m").instance_group[0].name == "m"


def test_groups_without_names_are_numbered() -> None:
    text = "backend: 'python' instance_group [ { kind: KIND_CPU count: 2 }, { kind: KIND_MODEL } ]"
    assert placed(text, [0]) == [
        ("m_0_0", "KIND_CPU", 0),
        ("m_0_1", "KIND_CPU", 0),
        ("m_1_0", "KIND_MODEL", 0),
    ]


def test_the_count_is_per_gpu() -> None:
    text = "backend: 'python' instance_group { name: 'g' kind: KIND_GPU count: 2 gpus: [ 0, 1 ] }"
    assert placed(text, [0, 1]) == [
        ("g_0", "KIND_GPU", 0),
        ("g_0", "KIND_GPU", 1),
        ("g_1", "KIND_GPU", 0),
        ("g_1", "KIND_GPU", 1),
    ]


def test_onnxruntime_has_two_instances_on_the_cpu_and_one_on_a_gpu() -> None:
    assert len(placed("backend: 'onnxruntime'", [])) == 2
    assert len(placed("backend: 'onnxruntime'", [0])) == 1
    assert len(placed("backend: 'onnxruntime' instance_group { kind: KIND_CPU count: 1 }", [])) == 1


def test_auto_is_all_or_nothing() -> None:
    text = "backend: 'python' instance_group { gpus: [ 0, 3 ] }"
    assert placed(text, [0, 1]) == [("m_0_0", "KIND_CPU", 0)]
    assert [kind for _, kind, _ in placed(text, [0, 3])] == ["KIND_GPU", "KIND_GPU"]


def test_host_policies_and_passive_groups() -> None:
    config = parse_text(
        "name: 'm' backend: 'python' instance_group [ { kind: KIND_GPU }, { kind: KIND_CPU host_policy: 'p' }, "
        "{ kind: KIND_CPU passive: true }, { kind: KIND_MODEL } ]"
    )
    result = instances(config, [1])
    assert [(one.host_policy, one.passive) for one in result] == [
        ("gpu_1", False),
        ("p", False),
        ("cpu", True),
        ("model", False),
    ]


def test_a_machine_not_yet_chosen_leaves_the_kind_open() -> None:
    group = normalize(parse_text("backend: 'python' instance_group {}"), "m").instance_group[0]
    assert (group.name, group.kind, group.count) == ("m_0", 0, 0)


@pytest.mark.parametrize(
    ("policy", "available", "expected"),
    [
        ("", [1, 3, 2], [1, 2, 3]),
        ("all {}", [3, 1], [1, 3]),
        ("latest { num_versions: 2 }", [1, 10, 9], [9, 10]),
        ("latest { num_versions: 5 }", [1, 2], [1, 2]),
        ("latest {}", [1, 2], []),
        ("specific { versions: [ 3, 1, 7 ] }", [1, 2, 3], [1, 3]),
        ("latest { num_versions: 1 }", [], []),
    ],
)
def test_version_policies(policy: str, available: list[int], expected: list[int]) -> None:
    config = parse_text(f"version_policy {{ {policy} }}")
    assert versions.select(config.version_policy, available) == expected


def test_versions_that_do_not_exist_are_named() -> None:
    policy = parse_text("version_policy { specific { versions: [ 3, 1 ] } }").version_policy
    assert versions.missing(policy, [1]) == [3]


def test_nothing_to_serve() -> None:
    policy = parse_text("version_policy { latest { num_versions: 1 } }").version_policy
    assert versions.select(policy, [4]) == [4]
    assert versions.select(policy, []) == []
    assert (
        versions.none_available("x") == "at least one version must be available under the version policy of model 'x'"
    )
