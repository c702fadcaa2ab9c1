"""Options of every builder: each mistake is said at its path, with the way out."""

from typing import Any

import pytest
import yaml
from tests.operator.planning import declared

from argosy.api import parse_documents
from argosy_agent.contract.engine_options.checks import TABLES, build_options, option_faults
from argosy_agent.contract.engine_options.option import Kind, Option
from argosy_agent.contract.engine_options.precisions import PRECISIONS, QUANTIZED, Precision, unsupported_here

FORMATS = {
    "tensorrt_llm": "huggingface",
    "tensorrt": "onnx",
    "onnxruntime": "onnx",
    "aotinductor": "pytorch",
}
SIZES = ("lookahead_window_size", "lookahead_ngram_size", "lookahead_verification_set_size")
LOOKAHEAD = {
    "decoding_mode": "lookahead",
    "speculative_decoding_mode": "lookahead_decoding",
    "max_draft_len": 5,
}
DATA = {"dataUri": "s3://data/prompts.jsonl"}


def problems(builder: str, engine: dict[str, Any], **spec: Any) -> list[str]:
    """Return the errors that the API reports of a model with this engine, as `path: message`."""
    if engine.get("precision") in map(str, QUANTIZED):
        engine = {"accuracy": {"skip": "measured elsewhere"}} | engine
    fields = {"modelFormat": {"name": FORMATS[builder]}, "engine": {"builder": builder} | engine, **spec}
    body = declared.model_body("m", inputs=None, outputs=None, footprint=None, **fields)
    _, resource = parse_documents(yaml.safe_dump(body), "m.yaml")
    return [f"{item.path}: {item.message}" for item in resource]


OF_LLM: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"options": {"max_sequence_len": 8}},
        {},
        "options.max_sequence_len: tensorrt_llm has no such option; did you mean 'max_seq_len'?",
    ),
    ({"options": {"max_seq_len": "4096"}}, {}, "options.max_seq_len: expected a whole number; found '4096'"),
    ({"options": {"max_seq_len": True}}, {}, "options.max_seq_len: expected a whole number; found True"),
    ({"options": {"max_seq_len": 0}}, {}, "options.max_seq_len: must be 1 or more; found 0"),
    ({"options": {"context_fmha": "enable"}}, {}, "options.context_fmha: expected true or false; found 'enable'"),
    ({"options": {"tokens_per_block": 48}}, {}, "options.tokens_per_block: 48 is none of 8, 16, 32, 64, 128"),
    ({"options": {"gemm_plugin": "fp16"}}, {}, "options.gemm_plugin: 'fp16' is none of"),
    ({"options": {"kv_cache_type": "pagd"}}, {}, "disabled; did you mean 'paged'?"),
    ({"options": {"tp_size": 2}}, {}, "options.tp_size: is no option here: set spec.parallelism.tensor"),
    ({"options": {"paged_kv_cache": True}}, {}, "newer releases call it kv_cache_type: paged"),
    ({"options": {"max_input_len": 4096, "max_seq_len": 2048}}, {}, "is 4096, more than max_seq_len 2048"),
    (
        {"options": {"max_num_tokens": 9000, "max_seq_len": 2048, "max_batch_size": 4}},
        {},
        "options.max_num_tokens: is 9000, more than max_seq_len 2048 x max_batch_size 4 = 8192",
    ),
    ({"options": {"opt_num_tokens": 9, "max_num_tokens": 8}}, {}, "options.opt_num_tokens: is 9, more than max_num"),
    ({"options": {"opt_num_tokens": 9, "multiple_profiles": True}}, {}, "options.opt_num_tokens: means nothing with"),
    ({"options": {"max_batch_size": 4}}, {"maxBatchSize": 8}, "options.max_batch_size: is 4, and maxBatchSize is 8"),
    ({"options": {"reduce_fusion": True}}, {}, "options.reduce_fusion: joins what several GPUs add up"),
    ({"options": {"pp_reduce_scatter": True}}, {}, "options.pp_reduce_scatter: is between stages"),
    (
        {"options": {"moe_tp_size": 2, "moe_ep_size": 3}},
        {"parallelism": {"tensor": 4}},
        "options.moe_tp_size: moe_tp_size 2 x moe_ep_size 3 is 6, and must be parallelism.tensor, 4",
    ),
    ({"options": {"moe_ep_size": 3}}, {"parallelism": {"tensor": 4}}, "options.moe_ep_size: is 3, and must divide"),
    ({"precision": "tf32"}, {}, "precision: tensorrt_llm makes fp32, bf16, fp16, fp8, int8, fp4, int4, and not tf32"),
    ({"precision": "fp8"}, {}, "calibration: is required: fp8 finds its ranges in data"),
    ({"precision": "int4"}, {}, "calibration: is required: int4_awq finds"),
    ({"options": {"kv_cache_dtype": "int8"}}, {}, "calibration: is required: kv_cache_dtype: int8 finds"),
    (
        {"precision": "int8", "options": {"qformat": "int8_wo"}, "calibration": DATA},
        {},
        "calibration: is without effect: int8_wo finds nothing in data; leave it out",
    ),
    (
        {"precision": "fp8", "options": {"qformat": "int8_sq"}, "calibration": DATA},
        {},
        "options.qformat: is int8_sq, and precision fp8 is fp8 or fp8_pc_pt; change one of them",
    ),
    ({"options": {"qformat": "int4_wo"}}, {}, "options.qformat: needs spec.engine.precision: int4"),
    ({"precision": "fp16", "options": {"dtype": "bfloat16"}}, {}, "options.dtype: is decided by precision, fp16"),
    ({"precision": "fp16", "options": {"awq_block_size": 64}}, {}, "options.awq_block_size: belongs to int4_awq"),
    (
        {"precision": "int4", "options": {"quantize_lm_head": True}, "calibration": DATA},
        {},
        "options.quantize_lm_head: is of fp8 alone, not of int4_awq",
    ),
    ({"options": {"calib_batch_size": 4}}, {}, "options.calib_batch_size: is without effect, as nothing is"),
    (
        {"precision": "fp8", "options": {"moe_ep_size": 2}, "calibration": DATA},
        {"parallelism": {"tensor": 2}},
        "options.moe_ep_size: goes with no format that is calibrated",
    ),
    (
        {"options": {"kv_cache_type": "continuous", "tokens_per_block": 64}},
        {},
        "options.kv_cache_type: is continuous, and no server runs such an engine",
    ),
    ({"options": {"remove_input_padding": False}}, {}, "options.remove_input_padding: is false, and no server runs"),
    ({"options": {"gpt_attention_plugin": "disable"}}, {}, "options.gpt_attention_plugin: is disable, and no server"),
    (
        {"options": {"kv_cache_type": "disabled", "tokens_per_block": 64}},
        {},
        "options.tokens_per_block: needs kv_cache_type: paged, and it is disabled",
    ),
    (
        {"options": {"kv_cache_type": "disabled", "use_paged_context_fmha": True}},
        {},
        "options.use_paged_context_fmha: needs kv_cache_type: paged",
    ),
    (
        {"options": {"kv_cache_type": "disabled", "enable_kv_cache_reuse": True}},
        {},
        "options.enable_kv_cache_reuse: needs kv_cache_type: paged",
    ),
    (
        {"options": LOOKAHEAD | {"lookahead_ngram_size": 7}},
        {},
        "options.decoding_mode: is lookahead, which needs lookahead_window_size, lookahead_verification_set_size",
    ),
    (
        {"options": {"decoding_mode": "lookahead", **dict.fromkeys(SIZES, 7)}},
        {},
        "options.decoding_mode: is lookahead, which needs speculative_decoding_mode: lookahead_decoding",
    ),
    ({"options": LOOKAHEAD | dict.fromkeys(SIZES, 7)}, {}, "options.max_draft_len: is 5, and lookahead of these sizes"),
    ({"options": {"lookahead_window_size": 7}}, {}, "options.lookahead_window_size: needs decoding_mode: lookahead"),
    (
        {"options": {"kv_cache_type": "disabled", "kv_cache_dtype": "int8"}, "calibration": DATA},
        {},
        "options.kv_cache_dtype: is the precision of a cache",
    ),
    (
        {"options": {"context_fmha": False, "use_paged_context_fmha": True}},
        {},
        "options.use_paged_context_fmha: needs context_fmha, which is false",
    ),
    (
        {"options": {"kv_cache_dtype": "int8", "use_paged_context_fmha": True}, "calibration": DATA},
        {},
        "options.use_paged_context_fmha: does not go with kv_cache_dtype int8",
    ),
    ({"options": {"use_fp8_context_fmha": True}}, {}, "options.use_fp8_context_fmha: needs precision fp8"),
    (
        {"options": {"enable_kv_cache_reuse": True, "use_paged_context_fmha": False}},
        {},
        "options.enable_kv_cache_reuse: needs context_fmha and use_paged_context_fmha",
    ),
    ({"options": {"gemm_plugin": "fp8"}}, {}, "options.gemm_plugin: is fp8, and spec.engine.precision is not fp8"),
    ({"options": {"max_lora_rank": 8}}, {}, "options.max_lora_rank: needs lora_plugin"),
    ({"options": {"max_draft_len": 5}}, {}, "options.max_draft_len: needs speculative_decoding_mode"),
    (
        {"options": {"speculative_decoding_mode": "lookahead_decoding"}},
        {},
        "options.speculative_decoding_mode: needs max_draft_len",
    ),
    (
        {
            "options": {
                "speculative_decoding_mode": "lookahead_decoding",
                "max_draft_len": 5,
                "gather_context_logits": True,
            }
        },
        {},
        "options.gather_context_logits: does not go with max_draft_len",
    ),
    ({"options": {"cuda_graph_cache_size": 8}}, {}, "options.cuda_graph_cache_size: needs cuda_graph_mode: true"),
    ({"options": {"gpu_weights_percent": 0.5}}, {}, "options.gpu_weights_percent: needs weight_streaming: true"),
    ({"options": {"gpu_weights_percent": 50}}, {}, "options.gpu_weights_percent: must be 1 or less; found 50"),
    ({"options": {"backend": "pytorch", "gemm_plugin": "auto"}}, {}, "is an option of backend: tensorrt alone"),
    ({"options": {"enable_chunked_prefill": True}}, {}, "is an option of backend: pytorch alone"),
    ({"options": {"backend": "torch"}}, {}, "options.backend: 'torch' is none of tensorrt, pytorch; did you mean"),
    (
        {"options": {"backend": "pytorch"}, "precision": "int8"},
        {},
        "precision: tensorrt_llm with backend: pyt",
    ),
    (
        {"options": {"backend": "pytorch", "kv_cache_config": {"free_fraction": 1}}},
        {},
        "options.kv_cache_config.free_fraction: unknown field",
    ),
    (
        {"options": {"backend": "pytorch", "cuda_graph_config": {"batch_sizes": [1, "2"]}}},
        {},
        "options.cuda_graph_config.batch_sizes[1]: expected a whole number; found '2'",
    ),
    (
        {"options": {"backend": "pytorch", "cuda_graph_config": {"batch_sizes": [1], "max_batch_size": 8}}},
        {},
        "options.cuda_graph_config: batch_sizes and max_batch_size exclude each other",
    ),
]
OF_OTHERS: list[tuple[str, dict[str, Any], str]] = [
    ("tensorrt", {"options": {"workspace": "4 GB"}}, "options.workspace: '4 GB' is no quantity"),
    ("tensorrt", {"options": {"builder_optimisation_level": 3}}, "did you mean 'builder_optimization_level'?"),
    ("tensorrt", {"options": {"builder_optimization_level": 6}}, "must be 5 or less; found 6"),
    ("tensorrt", {"options": {"exclude_lean_runtime": True}}, "needs version_compatible: true"),
    (
        "tensorrt",
        {"precision": "fp8", "options": {"hardware_compatibility_level": "AMPERE_PLUS"}},
        "options.hardware_compatibility_level: is AMPERE_PLUS, and Ampere has no fp8",
    ),
    ("tensorrt", {"options": {"calibrator": "minmax"}}, "options.calibrator: needs spec.engine.calibration"),
    (
        "tensorrt",
        {"options": {"strongly_typed": True, "precision_constraints": "obey"}},
        "options.precision_constraints: means nothing with strongly_typed",
    ),
    ("tensorrt", {"options": {"l2_limit_for_tiling": "1Mi"}}, "needs tiling_optimization_level"),
    ("tensorrt", {"options": {"profiles": []}}, "options.profiles: must have 1 or more entries"),
    ("tensorrt", {"options": {"profiles": [{"x": {"min": [1]}}]}}, "options.profiles[0].x: opt, max is required"),
    (
        "tensorrt",
        {"options": {"profiles": [{"x": {"min": [1, 3], "opt": [9, 3], "max": [8, 3]}}]}},
        "options.profiles[0].x: each dimension must be min ≤ opt ≤ max",
    ),
    (
        "tensorrt",
        {"options": {"profiles": [{"x": {"min": [1], "opt": [9, 3], "max": [8, 3]}}]}},
        "have different numbers of dimensions",
    ),
    ("onnxruntime", {"options": {"weight_type": "QInt8"}}, "options.weight_type: quantizes, and"),
    ("onnxruntime", {"precision": "int8", "options": {"quantization": "static"}}, "calibration: is required: static"),
    ("onnxruntime", {"precision": "int8", "options": {"quant_format": "QDQ"}}, "is of static int8 alone"),
    (
        "onnxruntime",
        {"precision": "int8", "options": {"quantization": "dynamic"}, "calibration": DATA},
        "calibration: is without effect: dynamic int8",
    ),
    ("onnxruntime", {"options": {"nodes_to_exclude": "all"}}, "options.nodes_to_exclude: expected a list; found 'all'"),
    ("onnxruntime", {"precision": "int4"}, "precision: onnxruntime makes fp32, fp16, int8, and not int4"),
    ("aotinductor", {"options": {"max_autotun": True}}, "did you mean 'max_autotune'?"),
    ("aotinductor", {"options": {"zzz": 1}}, "has no such option (known: max_autotune"),
]


@pytest.mark.parametrize(("engine", "spec", "message"), OF_LLM)
def test_a_mistake_in_tensorrt_llms_options_is_reported_alone(
    engine: dict[str, Any], spec: dict[str, Any], message: str
) -> None:
    (problem,) = problems("tensorrt_llm", engine, **spec)
    assert problem.startswith("spec.engine.")
    assert message in problem


@pytest.mark.parametrize(("builder", "engine", "message"), OF_OTHERS)
def test_a_mistake_in_the_others_options_is_reported_alone(builder: str, engine: dict[str, Any], message: str) -> None:
    (problem,) = problems(builder, engine)
    assert message in problem


def test_an_engine_of_tensorrt_llm_is_one_for_all_versions() -> None:
    files = [{"version": item, "storageUri": f"s3://models/{item}"} for item in (1, 2)]
    (problem,) = problems("tensorrt_llm", {}, versions=files, version=None, storageUri=None)
    assert problem.startswith("spec.versions: the server opens one engine of tensorrt_llm for all versions")
    (problem,) = problems("tensorrt_llm", {}, rollout={"strategy": "Surge"})
    assert problem.startswith("spec.rollout.strategy: is Surge")
    assert problems("tensorrt_llm", {}, rollout={"strategy": "Recreate"}) == []


def test_all_mistakes_are_reported_together() -> None:
    result = problems(
        "tensorrt_llm",
        {"precision": "fp8", "accuracy": None, "options": {"max_input_len": 0, "tp_size": 2, "max_batch_size": 1}},
        maxBatchSize=2,
    )
    assert len(result) >= 3
    assert any("accuracy" in item for item in result)
    assert any("tp_size" in item for item in result)


RIGHT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "tensorrt_llm",
        {
            "precision": "fp8",
            "calibration": DATA,
            "options": {
                "max_input_len": 4096,
                "max_seq_len": 8192,
                "max_batch_size": 64,
                "kv_cache_dtype": "fp8",
                "use_fp8_context_fmha": True,
                "use_paged_context_fmha": True,
                "gemm_plugin": "fp8",
                "workers": 2,
                "reduce_fusion": True,
                "cuda_graph_mode": True,
                "cuda_graph_cache_size": 16,
                "enable_kv_cache_reuse": True,
            },
        },
        {"parallelism": {"tensor": 2}, "maxBatchSize": 64},
    ),
    ("tensorrt_llm", {"options": {"backend": "pytorch", "cuda_graph_config": None}}, {}),
    ("tensorrt_llm", {"options": LOOKAHEAD | dict.fromkeys(SIZES, 7) | {"max_draft_len": 83}}, {}),
    ("tensorrt_llm", {"precision": "int8", "options": {"qformat": "int8_wo", "dtype": "float16"}}, {}),
    ("tensorrt", {"options": {"profiles": [{"x": {"min": [1, 1], "opt": [4, 8], "max": [8, 8]}}]}}, {}),
    ("onnxruntime", {"precision": "int8", "options": {"per_channel": True}}, {}),
    ("onnxruntime", {"precision": "int8", "options": {"calibrate_method": "Entropy"}, "calibration": DATA}, {}),
    ("aotinductor", {"options": {"max_autotune": True}}, {}),
]


@pytest.mark.parametrize(("builder", "engine", "spec"), RIGHT)
def test_what_is_right_is_taken(builder: str, engine: dict[str, Any], spec: dict[str, Any]) -> None:
    assert problems(builder, engine, **spec) == []


def a_value(option: Option) -> Any:
    """Return a value that the option accepts."""
    if option.choices:
        return option.choices[0]
    match option.kind:
        case Kind.INTEGER | Kind.NUMBER:
            return max(int(option.minimum or 0), 1)
        case Kind.LIST:
            assert option.items is not None
            return [a_value(option.items)]
        case Kind.MAP:
            inner = option.fields or {"x": option.items}
            return {name: a_value(item) for name, item in inner.items() if item is not None}
    return {Kind.FLAG: True, Kind.QUANTITY: "1Gi", Kind.CHOICE: "x"}[option.kind]


WRONG = (None, "", 3.5, object(), [[]], {"no": "thing"})


@pytest.mark.parametrize(("table", "name"), [(table, name) for table in TABLES for name in TABLES[table]])
def test_every_option_takes_a_right_value_and_no_wrong_one(table: str, name: str) -> None:
    option = TABLES[table][name]
    assert option.description.endswith(".")
    assert not list(option.faults(a_value(option), ("options", name)))
    refused = [value for value in WRONG if list(option.faults(value, ("options", name)))]
    assert len(refused) >= len(WRONG) - 1 - option.nullable
    assert all(
        fault.path[:2] == ("options", name) for value in WRONG for fault in option.faults(value, ("options", name))
    )


@pytest.mark.parametrize("table", TABLES)
def test_no_value_makes_the_rules_raise(table: str) -> None:
    builder = table.split()[0]
    backend = {"backend": "pytorch"} if " " in table else {}
    for precision in (None, *Precision):
        for value in (*WRONG, 1, 0, -1, True, False, "fp8", "auto", "int8", 10**20, float("nan")):
            options = dict.fromkeys(TABLES[table], value) | backend
            for calibrated in (True, False):
                assert all(fault.message for fault in option_faults(builder, precision, options, calibrated))


def test_a_build_is_not_required_to_have_what_only_the_server_reads() -> None:
    options = {"max_seq_len": 8, "cuda_graph_mode": True, "kv_cache_free_gpu_mem_fraction": 0.5, "gemm_plugin": "auto"}
    assert build_options("tensorrt_llm", options) == {"max_seq_len": 8, "gemm_plugin": "auto"}
    assert build_options("onnxruntime", {"per_channel": True}) == {"per_channel": True}


@pytest.mark.parametrize(
    ("builder", "precision", "architecture", "backend", "message"),
    [
        (
            "tensorrt_llm",
            Precision.FP8,
            "8.0",
            "",
            "fp8 needs a GPU of compute capability 8.9 or more",
        ),
        ("tensorrt_llm", Precision.FP16, "7.5", "", "capability 8.0 or more"),
        ("tensorrt_llm", Precision.INT4, "10.0", "", "no engines of int4 for compute capability 10.0"),
        ("tensorrt_llm", Precision.INT4, "10.0", "pytorch", ""),
        ("tensorrt_llm", Precision.INT8, "12.0", "", ""),
        ("tensorrt_llm", Precision.FP4, "9.0", "", "10.0 or more"),
        ("tensorrt", Precision.BF16, "7.5", "", "8.0 or more"),
        ("tensorrt", Precision.INT8, "7.5", "", ""),
        ("tensorrt", None, "amd64", "", "tensorrt builds for GPUs, not for amd64"),
        ("onnxruntime", Precision.INT8, "amd64", "", ""),
    ],
)
def test_an_architecture_has_its_arithmetic(
    builder: str, precision: Precision | None, architecture: str, backend: str, message: str
) -> None:
    result = unsupported_here(builder, precision, architecture, backend)
    assert message in result
    assert bool(result) == bool(message)


def test_every_builder_makes_some_precisions() -> None:
    assert PRECISIONS.keys() == TABLES.keys()
