"""What a rendered config must be, whatever is declared: placed where the plan says, and the same as read again."""

from pathlib import PurePosixPath
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning import declared
from tests.properties import examples
from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.api.values.versions import VersionPolicy, retained
from argosy.planning.demand.model_files import declared_sources
from argosy.planning.plan import Placement, ServerPlan
from argosy.render.config.configrules import check_rendered
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.language import POD_REPOSITORY
from argosy.render.config.model_config import Devices, config_text, local_devices, model_config, overlay
from argosy.render.workloads.pods.volumes import REPOSITORY
from argosy_agent.contract import RenderedModel, VersionSource, in_load_order
from argosy_runtime.modelconfig import check_structure, normalize
from argosy_runtime.modelconfig.modelfiles import TREE_FILES
from argosy_runtime.modelconfig.parameters.chat import ChatTensors, chat_tensors


def model(backend: str = "onnx", **spec: Any) -> InferenceModel:
    """Return a model with these fields."""
    defaults = {"modelFormat": {"name": backend}, "inputs": None, "outputs": None, "footprint": None}
    return declared.model("m", **{**defaults, **spec})


@pytest.mark.parametrize(
    ("backend", "runtime", "gpus", "kind", "listed", "parameter"),
    [
        ("onnx", "argosy", (), "KIND_CPU", [], None),
        ("onnx", "argosy", (1,), "KIND_GPU", [1], None),
        ("python", "argosy", (0, 1), "KIND_MODEL", [], "0,1"),
        ("vllm", "argosy", (2,), "KIND_MODEL", [], "2"),
        ("tensorrt_llm", "argosy", (2, 3), "KIND_MODEL", [], "2,3"),
        ("tensorrt_llm", "triton", (2, 3), "KIND_MODEL", [], "2,3"),
        ("lightgbm", "argosy", (1,), "KIND_CPU", [], None),
        ("lightgbm", "triton", (1,), "KIND_GPU", [1], None),
        # NVIDIA's backend reads no gpu_device_ids: one GPU by its instance group, or all of its server's
        ("vllm", "triton", (2,), "KIND_GPU", [2], None),
        ("vllm", "triton", (0, 1), "KIND_MODEL", [], None),
    ],
)
def test_the_instance_group_is_what_the_backend_expects(
    backend: str, runtime: str, gpus: tuple[int, ...], kind: str, listed: list[int], parameter: str | None
) -> None:
    config = model_config(model(backend), Devices(gpus, 2, RuntimeName(runtime)), [1])
    (group,) = config.instance_group
    assert (pb.ModelInstanceGroup.Kind.Name(group.kind), list(group.gpus), group.count) == (kind, listed, 2)
    reported = config.parameters["gpu_device_ids"].string_value if "gpu_device_ids" in config.parameters else None
    assert reported == parameter


@pytest.mark.parametrize("runtime", RuntimeName)
@pytest.mark.parametrize("trees", TREE_FILES)
def test_trees_are_of_the_type_that_their_format_names(trees: str, runtime: RuntimeName) -> None:
    parameters = {"is_classifier": {"string_value": "true"}}
    uri = f"s3://models/ranker{PurePosixPath(TREE_FILES[trees]).suffix}"
    spec = model(trees, maxBatchSize=64, storageUri=uri, config={"parameters": parameters})
    config = model_config(spec, Devices((), 1, runtime), [1])
    assert (config.backend, config.max_batch_size, config.default_model_filename) == ("fil", 64, "")
    assert {name: value.string_value for name, value in config.parameters.items()} == {
        "model_type": trees,
        "is_classifier": "true",
        "threshold": "0.5",
    }
    assert declared_sources(spec)[1].filename == TREE_FILES[trees]
    parameters["threshold"] = {"string_value": "0.3"}
    spec = model(trees, maxBatchSize=64, config={"parameters": parameters})
    assert model_config(spec, Devices(), [1]).parameters["threshold"].string_value == "0.3"


GROUPS = [
    {"name": "fast", "kind": "KIND_GPU", "count": 2, "gpus": [1], "rateLimiter": {"priority": 1}},
    {"kind": "KIND_GPU", "passive": True},
    {"kind": "KIND_CPU", "count": 3},
]
LIMITER = {"resources": [{"name": "slots", "count": 2, "global": True}], "priority": 3}


def test_groups_are_rendered_on_the_models_own_gpus() -> None:
    declared = model("onnx", footprint={"gpus": 2}, instanceGroups=GROUPS, rateLimiter=LIMITER)
    config = model_config(declared, Devices((4, 6)), [1])
    limited = pb.ModelRateLimiter(resources=[pb.ModelRateLimiter.Resource(name="slots", count=2)], priority=3)
    setattr(limited.resources[0], "global", True)
    kinds = pb.ModelInstanceGroup
    assert list(config.instance_group) == [
        kinds(name="fast", kind=kinds.KIND_GPU, count=2, gpus=[6], rate_limiter=pb.ModelRateLimiter(priority=1)),
        kinds(kind=kinds.KIND_GPU, count=1, gpus=[4, 6], passive=True, rate_limiter=limited),
        kinds(kind=kinds.KIND_CPU, count=3, rate_limiter=limited),
    ]
    assert text_format.Parse(config_text(config), pb.ModelConfig()) == config
    assert check_structure(normalize(config, "m", gpus=range(8))) == []


def test_groups_of_a_model_on_the_cpu_are_on_the_cpu() -> None:
    config = model_config(model("onnx", footprint={"gpus": 2}, instanceGroups=GROUPS), Devices(), [1])
    kinds = [(pb.ModelInstanceGroup.Kind.Name(group.kind), group.count) for group in config.instance_group]
    assert kinds == [("KIND_CPU", 2), ("KIND_CPU", 1), ("KIND_CPU", 3)]


def test_rules_of_sequences_reach_the_configuration() -> None:
    rules = {"maxIdleMicroseconds": 7000, "oldest": {"maxCandidateSequences": 3}}
    batching = model_config(model("onnx", maxBatchSize=4, sequence=rules), Devices(()), [1]).sequence_batching
    assert (batching.max_sequence_idle_microseconds, batching.oldest.max_candidate_sequences) == (7000, 3)
    rules = {"direct": {"maxQueueDelayMicroseconds": 50, "minimumSlotUtilization": 0.5}}
    direct = model_config(model("onnx", maxBatchSize=4, sequence=rules), Devices(()), [1]).sequence_batching.direct
    assert (direct.max_queue_delay_microseconds, direct.minimum_slot_utilization) == (50, 0.5)


def test_profiles_reach_the_group_and_limits_every_group() -> None:
    declared = model("tensorrt", instanceGroups=[{"profile": [1, 2]}], rateLimiter=LIMITER)
    (group,) = model_config(declared, Devices((0,)), [1]).instance_group
    assert list(group.profile) == ["1", "2"]
    (single,) = model_config(model("onnx", rateLimiter=LIMITER), Devices((0,)), [1]).instance_group
    assert group.rate_limiter == single.rate_limiter
    assert single.rate_limiter.priority == 3


def test_a_resource_that_is_global_in_one_group_only_is_refused() -> None:
    tensor = {"name": "x", "dataType": "TYPE_FP32", "dims": [1]}
    limiters = [{"resources": [{"name": "r", "global": scope}]} for scope in (True, False)]
    groups = [{"rateLimiter": limiter} for limiter in limiters]
    declared = model("onnx", maxBatchSize=1, inputs=[tensor], outputs=[tensor], instanceGroups=groups)
    assert [problem.path for problem in check_rendered([declared])] == [
        "spec.instanceGroups[1].rateLimiter.resources[0].global"
    ]


@pytest.mark.parametrize(
    ("model_format", "engine", "backend", "filename"),
    [
        ("onnx", None, "onnxruntime", ""),
        ("onnx", {"builder": "tensorrt"}, "tensorrt", "model.plan"),
        ("huggingface", {"builder": "tensorrt_llm"}, "tensorrtllm", ""),
    ],
)
def test_an_engine_decides_the_backend(
    model_format: str, engine: dict[str, Any] | None, backend: str, filename: str
) -> None:
    spec = {"engine": engine} if engine else {}
    built = model(model_format, storageUri="s3://b/built.plan", **spec)
    assert model_config(built, Devices((0,)), [1]).backend == backend
    assert declared_sources(built)[1].filename == filename


SHAPES = {"x": {"min": [1, 8], "opt": [2, 8], "max": [4, 8]}}


@pytest.mark.parametrize(
    ("options", "groups", "profiles", "allowed"),
    [
        ({}, None, [], False),
        ({"profiles": [SHAPES]}, None, [], False),
        ({"profiles": [SHAPES, SHAPES]}, None, ["0", "1"], False),
        ({"profiles": [SHAPES, SHAPES]}, [{"profile": [1]}], ["1"], False),
        ({"version_compatible": True}, None, [], True),
    ],
)
def test_a_plan_is_served_with_all_its_profiles_and_may_run_its_code(
    options: dict[str, Any], groups: list[dict[str, Any]] | None, profiles: list[str], allowed: bool
) -> None:
    more = {} if groups is None else {"instanceGroups": groups}
    built = model("onnx", engine={"builder": "tensorrt", "options": options}, **more)
    config = model_config(built, Devices((0,)), [1])
    assert [list(group.profile) for group in config.instance_group] == [profiles]
    assert (config.parameters["VERSION_COMPATIBLE"].string_value == "true") is allowed
    assert check_rendered([built]) == []


@pytest.mark.parametrize("backend", ["onnx", "python", "tensorrt"])
def test_a_batch_size_that_is_left_to_the_files_is_absent_and_no_fault(backend: str) -> None:
    scalar = {"name": "x", "dataType": "TYPE_FP32", "dims": [1], "reshape": {"shape": []}}
    tensors = {"inputs": [scalar], "outputs": [{"name": "y", "dataType": "TYPE_FP32", "dims": [1]}]}
    unset = model(backend, **tensors)
    assert "max_batch_size" not in config_text(model_config(unset, Devices(), [1]))
    assert check_rendered([unset]) == []


def test_gpus_count_from_the_servers_first() -> None:
    placement = Placement("m", 1, "m", (6, 4), 3, 0, 0)
    assert local_devices(placement, ServerPlan("s", "n", (4, 5, 6), (placement,)), RuntimeName.TRITON) == Devices(
        (2, 0), 3, RuntimeName.TRITON
    )


def test_the_overlay_replaces_lists_and_merges_the_rest() -> None:
    config = pb.ModelConfig(name="m", metric_tags={"a": "1"}, batch_input=[pb.BatchInput(target_name=["x"])])
    config.optimization.priority = pb.ModelOptimizationPolicy.PRIORITY_MAX
    more = pb.ModelConfig(metric_tags={"b": "2"}, batch_input=[pb.BatchInput(target_name=["y"])])
    more.optimization.eager_batching = True
    overlay(config, more)
    assert dict(config.metric_tags) == {"a": "1", "b": "2"}
    assert [list(item.target_name) for item in config.batch_input] == [["y"]]
    assert config.optimization.eager_batching
    assert config.optimization.priority == pb.ModelOptimizationPolicy.PRIORITY_MAX


@pytest.mark.parametrize(
    ("backend", "uri", "config", "expected"),
    [
        ("onnx", "s3://b/v3.onnx", {}, "model.onnx"),
        ("onnx", "s3://b/v3.onnx", {"default_model_filename": "net.onnx"}, "net.onnx"),
        ("onnx", "s3://b/v3.py", {}, ""),
        ("pytorch", "file:///x/a%20b.pt2?x=1", {}, "model.pt2"),
        ("python", "s3://b/folder", {}, ""),
    ],
)
def test_a_lone_file_is_called_what_its_backend_looks_for(
    backend: str, uri: str, config: dict[str, Any], expected: str
) -> None:
    assert declared_sources(model(backend, storageUri=uri, config=config))[1].filename == expected


@given(
    st.integers(1, 9),
    st.sets(st.integers(1, 9)),
    st.one_of(
        st.none(),
        st.builds(lambda n: {"latest": {"numVersions": n}}, st.integers(1, 4)),
        st.just({"all": {}}),
        st.builds(lambda v: {"specific": {"versions": v}}, st.lists(st.integers(1, 9), min_size=1, unique=True)),
    ),
)
def test_a_policy_always_keeps_the_declared_version(
    version: int, registered: set[int], policy: dict[str, Any] | None
) -> None:
    retained_value = retained(
        [version], VersionPolicy.model_validate(policy) if policy else None, registered | {version}
    )
    assert version in retained_value
    assert retained_value <= registered | {version}
    if policy and "latest" in policy:
        most = {item for item in registered | {version} if item <= version}
        assert len(retained_value) == min(policy["latest"]["numVersions"], len(most))
    assert max(retained_value) == version, "it answers the requests that name none"


names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)


@given(
    tags=st.dictionaries(names, names, max_size=4),
    size=st.integers(0, 2**31 - 1),
    versions=st.sets(st.integers(1, 2**63 - 1), min_size=1, max_size=3),
)
@examples(50)
def test_the_text_says_all_of_the_config(tags: dict[str, str], size: int, versions: set[int]) -> None:
    config = model_config(model(maxBatchSize=size, config={"metric_tags": tags}), Devices(), versions)
    assert text_format.Parse(config_text(config), pb.ModelConfig()) == config


def test_ensembles_come_after_what_they_use() -> None:
    inner = RenderedModel("b", "", {1: VersionSource()}, {"z": 1})
    outer = RenderedModel("a", "", {1: VersionSource()}, {"b": 1, "elsewhere": 1})
    plain = RenderedModel("z", "", {1: VersionSource("s3://b")})
    assert [item.name for item in in_load_order((outer, inner, plain))] == ["z", "b", "a"]


def test_an_ensembles_config_and_bound_are_rendered_and_checked() -> None:
    cached = declared.ensemble("e", "m", config={"response_cache": {"enable": True}}, maxInflightRequests=4)
    assert isinstance(cached, Ensemble)
    config = ensemble_config(cached, {"m": 1})
    assert config.response_cache.enable
    assert config.ensemble_scheduling.max_inflight_requests == 4
    wrong = declared.ensemble("e", "m", config={"model_metrics": {"metric_control": [{}]}})
    assert {item.path for item in check_rendered([declared.model("m"), wrong])} == {
        "spec.config.model_metrics.metric_control[0]"
    }


def test_a_chats_tensors_are_rendered_as_the_servers_parameter() -> None:
    tensors = {
        "inputs": [{"name": "T0", "dataType": "TYPE_STRING", "dims": [1]}],
        "outputs": [{"name": "T1", "dataType": "TYPE_STRING", "dims": [1]}],
        "chat": {"messages": "T0", "text": "T1"},
    }
    pipeline = declared.ensemble("e", "m", **tensors)
    caller = declared.model("m", **tensors)
    for config in (ensemble_config(pipeline, {"m": 1}), model_config(caller, Devices(), [1])):
        assert chat_tensors(config) == ChatTensors(messages="T0", text="T1")
    silent = declared.model("m")
    assert chat_tensors(model_config(silent, Devices(), [1])) is None


def test_an_engines_path_is_where_a_server_has_its_repository() -> None:
    assert POD_REPOSITORY == REPOSITORY
