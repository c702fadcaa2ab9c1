"""Rules that span resources."""

import pytest

from argosy.api import parse_documents
from argosy.api.model.modelformat import BACKENDS
from argosy.api.values.identity import Identity
from argosy.planning.validation.graph import Invalid
from argosy.planning.validation.language import DEFAULTS
from argosy.planning.validation.references import check_set
from argosy.planning.validation.runtimes import BUNDLED, RUNTIMES
from argosy_runtime import backends
from argosy_runtime.language.defaults import DECLARED

HEAD = "apiVersion: argosy.dev/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n"


def pool(name: str, namespace: str = "n", runtime: str = "{name: argosy}", storage: str = "{}") -> str:
    return HEAD % ("ServingPool", name, namespace) + f"spec: {{runtime: {runtime}, storage: {storage}}}\n"


def model(name: str, pool_ref: str = "p", namespace: str = "n", made_of: str = "python", more: str = "") -> str:
    provided = (
        f"poolRef: {{name: {pool_ref}}}, modelFormat: {{name: {made_of}}}, version: 1, storageUri: 's3://b/m'{more}"
    )
    return HEAD % ("InferenceModel", name, namespace) + f"spec: {{{provided}}}\n"


def ensemble(name: str, step: str, namespace: str = "n", pool_ref: str = "p") -> str:
    tensor = "[{name: x, dataType: TYPE_FP32, dims: [1]}]"
    other = "[{name: y, dataType: TYPE_FP32, dims: [1]}]"
    steps = f"[{{model: {step}, inputs: {{x: x}}, outputs: {{y: y}}}}]"
    spec = f"spec: {{poolRef: {{name: {pool_ref}}}, inputs: {tensor}, outputs: {other}, steps: {steps}}}\n"
    return HEAD % ("Ensemble", name, namespace) + spec


def check(*documents: str, invalid: tuple[Identity, ...] = ()) -> list[str]:
    resources, problems = parse_documents("---\n".join(documents), "f.yaml")
    assert problems == []
    sources = {resource.identity: "f.yaml" for resource in resources}
    return [str(problem) for problem in check_set(resources, sources, Invalid(invalid))]


def test_a_right_set_has_no_problem() -> None:
    assert check(pool("p"), model("m"), ensemble("e", "m")) == []


def test_an_empty_set_has_no_problem() -> None:
    assert check_set([]) == []


def test_two_of_one_kind_and_name() -> None:
    assert check(pool("p"), model("m"), model("m")) == [
        "f.yaml: InferenceModel n/m: metadata.name: there are two of InferenceModel n/m; rename one or remove it"
    ]


def test_one_name_in_two_namespaces_is_two_resources() -> None:
    assert check(pool("p"), model("m"), pool("p", "o"), model("m", namespace="o")) == []


def test_a_model_and_an_ensemble_share_a_repository() -> None:
    assert check(pool("p"), model("m"), model("e"), ensemble("e", "m")) == [
        (
            "f.yaml: Ensemble n/e: metadata.name: there is also an InferenceModel 'e' in namespace 'n', "
            "which comes first, and clients know both by this name; rename this Ensemble, or delete InferenceModel n/e"
        )
    ]


def test_an_unknown_pool_is_named_with_the_nearest() -> None:
    assert check(pool("gpus"), model("m", "gpu")) == [
        (
            "f.yaml: InferenceModel n/m: spec.poolRef.name: there is no ServingPool 'gpu' in namespace 'n'; "
            "did you mean 'gpus'?"
        )
    ]


def test_a_pool_of_another_namespace_does_not_count() -> None:
    assert check(pool("p", "o"), model("m")) == [
        "f.yaml: InferenceModel n/m: spec.poolRef.name: there is no ServingPool 'p' in namespace 'n'; add one"
    ]


def test_what_is_there_but_invalid_is_not_called_unknown() -> None:
    assert (
        check(model("m"), ensemble("e", "x"), invalid=(Identity("ServingPool n/p"), Identity("InferenceModel n/x")))
        == []
    )


def test_what_takes_no_part_is_not_called_unknown_either() -> None:
    invalid = Invalid(("ServingPool n/p", "InferenceModel n/x"), is_error=True)
    resources, _ = parse_documents("---\n".join((model("m"), ensemble("e", "x"))), "f.yaml")
    result = check_set(resources, invalid=invalid)
    assert [(item.resource, item.path, item.message) for item in result] == [
        ("InferenceModel n/m", "spec.poolRef.name", "ServingPool 'p' is not valid itself; correct that first"),
        ("Ensemble n/e", "spec.poolRef.name", "ServingPool 'p' is not valid itself; correct that first"),
        ("Ensemble n/e", "spec.steps[0].model", "'x' is not valid itself; correct that first"),
    ]


def test_graph_problems_stand_at_the_ensemble() -> None:
    assert check(pool("p"), model("other"), ensemble("e", "missing")) == [
        (
            "f.yaml: Ensemble n/e: spec.steps[0].model: "
            "there is no InferenceModel or Ensemble 'missing' in namespace 'n' (known: e, other)"
        )
    ]


def test_ensembles_in_a_circle_are_reported_once() -> None:
    assert check(pool("p"), ensemble("one", "two"), ensemble("two", "one")) == [
        (
            "f.yaml: Ensemble n/one: spec.steps: the ensembles hold each other: one → two → one; "
            "an ensemble may not reach itself"
        )
    ]


def test_an_ensemble_that_holds_itself_is_a_circle() -> None:
    assert check(pool("p"), ensemble("one", "one")) == [
        "f.yaml: Ensemble n/one: spec.steps: the ensembles hold each other: one → one; an ensemble may not reach itself"
    ]


def test_a_resource_without_a_source_still_has_its_identity() -> None:
    resources, _ = parse_documents(model("m"), "f.yaml")
    assert [(problem.file, problem.resource) for problem in check_set(resources)] == [("", "InferenceModel n/m")]


def test_the_table_has_every_backend_and_one_for_every_format() -> None:
    assert frozenset(backends.names()) == BUNDLED
    assert frozenset(BACKENDS.values()) == frozenset().union(*RUNTIMES.values())


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("made_of", BACKENDS)
def test_a_format_that_the_runtime_cannot_run_is_refused_at_once(made_of: str, runtime: str) -> None:
    result = check(pool("p", runtime=f"{{name: {runtime}}}"), model("m", made_of=made_of))
    other = "triton" if runtime == "argosy" else "argosy"
    if BACKENDS[made_of] in RUNTIMES[runtime]:
        assert result == []
    else:
        (words,) = result
        assert words.startswith(
            f"f.yaml: InferenceModel n/m: spec.modelFormat.name: format '{made_of}' needs the backend"
        )
        assert f"of pool 'p' does not have: use a pool with runtime.name {other}" in words


def test_trees_are_on_the_cpu_of_the_bundled_server() -> None:
    trees = model("m", made_of="lightgbm", more=", footprint: {gpuMemory: 1Gi}")
    (words,) = check(pool("p"), trees)
    assert words == (
        "f.yaml: InferenceModel n/m: spec.footprint.device: the bundled server computes trees on CPUs: use a pool "
        "with runtime.name triton, or make device CPU"
    )
    assert check(pool("p", runtime="{name: triton}"), trees) == []
    assert check(pool("p"), model("m", made_of="lightgbm")) == []


ON_A_GPU = ", footprint: {gpuMemory: 20Gi}"
ARGUMENT = ", config: {{parameters: {{{name}: {{string_value: '1'}}}}}}"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (", maxBatchSize: 8, batching: {}", "spec.batching: backend vllm joins requests token by token, by itself"),
        (ARGUMENT.format(name="tensor_parallel_size"), "is decided by spec.parallelism.tensor; set that instead"),
        (ARGUMENT.format(name="model"), "is decided by spec.storageUri; set that instead"),
        (ARGUMENT.format(name="gpu_memory_utilization") + ON_A_GPU, "footprint.gpuMemory decides how much memory"),
        (ARGUMENT.format(name="max_modellen"), "no such argument; did you mean 'max_model_len'?"),
        (ARGUMENT.format(name="gpu_memory_utilization"), ""),
        (ARGUMENT.format(name="max_model_len") + ON_A_GPU, ""),
        (ARGUMENT.format(name="max_num_scheduled_tokens"), ""),
        (", maxBatchSize: 8", ""),
    ],
)
def test_settings_that_vllms_engine_cannot_have_are_refused_with_the_field_that_decides(more: str, words: str) -> None:
    result = check(pool("p"), model("m", made_of="vllm", more=more))
    if not words:
        assert result == []
        return
    (problem,) = result
    assert words in problem


DEFAULT = ", config: {{parameters: {{{name}: {{string_value: '{text}'}}}}}}"


@pytest.mark.parametrize("made_of", ["vllm", "tensorrt_llm", "huggingface"])
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("generation_config", "vlm", "spec.config.parameters.generation_config: is 'vlm'; expected auto or vllm"),
        ("generation_config", "vllm", ""),
        ("override_generation_config", "{temperature: 0}", "spec.config.parameters.override_generation_config: is not"),
        ("override_generation_config", "[0]", "is no JSON object: write a JSON object, such as"),
        (
            "override_generation_config",
            '{"temprature": 0, "top_p": 1}',
            "'temprature' has no effect; known: temper",
        ),
        ("override_generation_config", '{"temperature": 0, "max_new_tokens": 9}', ""),
    ],
)
def test_defaults_of_requests_that_no_backend_reads_are_refused(made_of: str, name: str, text: str, words: str) -> None:
    more = DEFAULT.format(name=name, text=text)
    result = check(pool("p"), model("m", made_of=made_of, more=more))
    assert len(result) == bool(words)
    assert words in "".join(result)


def test_defaults_of_requests_are_those_of_the_runtime() -> None:
    assert set(DECLARED) == set(DEFAULTS)


def test_a_checkpoint_for_tensorrt_llm_is_for_the_bundled_server_alone() -> None:
    built = ", engine: {builder: tensorrt_llm, options: {backend: pytorch}}, footprint: {gpus: 1}"
    checkpoint = model("m", made_of="huggingface", more=built)
    storage = "{engineCache: {storageUri: 's3://b/e'}}"
    assert check(pool("p", storage=storage), checkpoint) == []
    (problem,) = check(pool("p", runtime="{name: triton}", storage=storage), checkpoint)
    assert "which NVIDIA's server cannot open: use a pool with runtime.name argosy" in problem


def test_a_model_that_no_image_of_nvidias_can_serve_is_refused() -> None:
    documents = [model("llm", made_of="tensorrt_llm"), model("glue"), model("score", made_of="onnx")]
    assert check(pool("p", runtime="{name: triton}"), *documents) == [
        (
            "f.yaml: InferenceModel n/score: spec.modelFormat.name: format 'onnx' needs NVIDIA's image …-py3, which "
            "does not have the backend tensorrtllm of 'llm' in pool 'p': put one of the two into a pool of its own, "
            "or give the pool an image with both backends (spec.runtime.image)"
        )
    ]
    assert check(pool("p", runtime="{name: triton, image: own}"), *documents) == []
    assert check(pool("p", runtime="{name: triton}"), *documents[:2]) == []


def test_an_engine_needs_storage() -> None:
    built = model("m", made_of="onnx", more=", engine: {builder: onnxruntime}")
    (words,) = check(pool("p"), built)
    assert words == (
        "f.yaml: InferenceModel n/m: spec.engine: pool 'p' has nowhere to keep engines: set its "
        "spec.storage.engineCache.storageUri, such as s3://bucket/engines, or leave spec.engine out"
    )
    retained = HEAD % ("ServingPool", "p", "n") + "spec: {storage: {engineCache: {storageUri: 's3://b/e'}}}\n"
    assert check(retained, built) == []


def test_queries_need_a_prometheus() -> None:
    more = ", rollout: {analysis: {queries: [{name: up, query: up, successCondition: result == 1}]}}"
    assert check(pool("p"), model("m", more=more)) == [
        (
            "f.yaml: InferenceModel n/m: spec.rollout.analysis.queries: pool 'p' names no Prometheus to ask: "
            "set its spec.monitoring.prometheus, or leave the queries out"
        )
    ]
    assert check(pool_with(PROMETHEUS), model("m", more=more)) == []


PROMETHEUS = "monitoring: {prometheus: {url: 'http://prometheus:9090'}}"
TEMPLATES = "analysisTemplates: [{name: slow, queries: [{name: up, query: up, successCondition: result == 1}]}]"


def pool_with(*fields: str) -> str:
    return HEAD % ("ServingPool", "p", "n") + f"spec: {{{', '.join(fields)}}}\n"


def test_a_template_is_one_of_the_pool_with_a_prometheus() -> None:
    refers = model("m", more=", rollout: {analysis: {templateRef: {name: slow}}}")
    where = "f.yaml: InferenceModel n/m: spec.rollout.analysis.templateRef"
    assert check(pool_with(PROMETHEUS, TEMPLATES), refers) == []
    assert check(pool_with(TEMPLATES), refers) == [
        f"{where}: pool 'p' names no Prometheus to ask: set its spec.monitoring.prometheus, or leave the template out"
    ]
    assert check(pool_with(PROMETHEUS), refers) == [
        f"{where}.name: pool 'p' has no 'slow' in its spec.analysisTemplates; add it there, or leave this out"
    ]
    misspelt = model("m", more=", rollout: {analysis: {templateRef: {name: slew}}}")
    (words,) = check(pool_with(PROMETHEUS, TEMPLATES), misspelt)
    assert "has no 'slew' in its spec.analysisTemplates; did you mean 'slow'" in words


def from_file(uri: str, more: str = "") -> str:
    return model("m", more=more).replace("s3://b/m", uri)


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("file:///secrets/storage/key", "[]"),
        ("file:/secrets/storage/key", "[/mnt]"),
        ("file:/mnt/../secrets", "[/mnt]"),
        ("file:/mnt%2f..%2fsecrets", "[/mnt]"),
        ("file:mnt/m", "[/mnt]"),
        ("file:/mntx/m", "[/mnt]"),
    ],
)
def test_a_cluster_reads_no_file_that_the_pool_does_not_allow(uri: str, allowed: str) -> None:
    (problem,) = check(pool("p", storage=f"{{allowedFolders: {allowed}}}"), from_file(uri))
    assert "InferenceModel n/m: spec.storageUri: in a cluster file: names files of the pool's Pods" in problem
    assert "spec.storage.allowedFolders of pool 'p'" in problem


def test_a_file_below_an_allowed_folder_is_read() -> None:
    assert check(pool("p", storage="{allowedFolders: [/mnt]}"), from_file("file:/mnt/m")) == []


def test_a_file_of_a_version_or_of_an_engines_data_is_refused_by_its_field() -> None:
    versions = "versions: [{version: 1, storageUri: 's3://b/m'}, {version: 2, storageUri: 'file:/m'}]"
    several = model("m").replace("version: 1, storageUri: 's3://b/m'", versions)
    assert ["spec.versions[1].storageUri" in item for item in check(pool("p"), several)] == [True]
    engine = ", engine: {builder: onnxruntime, accuracy: {dataUri: 'file:/data', script: 'file:/script.py', min: 0.9}}"
    retained = pool("p", storage="{engineCache: {storageUri: 's3://b/e'}}")
    fields = [item.split(": ")[2] for item in check(retained, model("m", made_of="onnx", more=engine))]
    assert fields == ["spec.engine.accuracy.dataUri", "spec.engine.accuracy.script"]


@pytest.mark.parametrize(
    ("option", "refused"),
    [
        ("decoding_mode: beam_search", True),
        ("decoding_mode: top_k", False),
        ("gpu_weights_percent: 0.5, weight_streaming: true", True),
        ("gpu_weights_percent: 1", False),
    ],
)
def test_what_only_nvidias_server_does_with_an_engine_is_refused_on_the_bundled_one(option: str, refused: bool) -> None:
    built = model("m", made_of="huggingface", more=f", engine: {{builder: tensorrt_llm, options: {{{option}}}}}")
    storage = "{engineCache: {storageUri: 's3://b/e'}}"
    result = check(pool("p", storage=storage), built)
    name = option.partition(":")[0]
    assert [f"spec.engine.options.{name}: is" in words for words in result] == ([True] if refused else [])
    assert check(pool("p", runtime="{name: triton}", storage=storage), built) == []
