"""What does not fit the model or the GPU is refused before any tool runs, with the numbers."""

from pathlib import Path
from typing import Any

import pytest

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildJob
from argosy_builder.tensorrt_llm import BUILDER

from .conftest import Standins, a_request, refused, rewrite

MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"tensor": 3}, "spec.parallelism.tensor: is 3, and the model's 4 attention heads are not divisible by it"),
    ({"pipeline": 3}, "spec.parallelism.pipeline: is 3, and the model has 2 layers"),
    (
        {"options": {"max_seq_len": 4096}},
        "options.max_seq_len: is 4096, and the model is made for 128 positions (max_position_embeddings)",
    ),
    ({"options": {"moe_ep_size": 2}, "tensor": 2}, "options.moe_ep_size: is 2, and the model has no experts"),
    ({"options": {"max_sequence_len": 8}}, "options.max_sequence_len: tensorrt_llm has no such option; did you mean"),
    ({"options": {"qformat": "int2"}}, "options.qformat: 'int2' is none of"),
    (
        {"precision": "int4", "options": {"backend": "pytorch", "qformat": "int4_wo"}},
        "options.qformat: int4_wo has no checkpoint that backend: pytorch reads",
    ),
]


@pytest.mark.parametrize(("changes", "message"), MISFITS)
def test_what_does_not_fit_the_model_is_refused_with_the_numbers(
    changes: dict[str, Any], message: str, checkpoint: Path, texts: Path, standins: Standins
) -> None:
    error = refused(checkpoint, texts, **changes)
    assert error.failure is BuildFailure.INVALID_OPTIONS
    assert message in error.message
    assert not standins.calls


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "8.0", "precision": "fp8"}, "fp8 needs a GPU of compute capability 8.9 or more"),
        ({"architecture": "7.5"}, "the model needs a GPU of compute capability 8.0 or more, and this is 7.5"),
        ({"architecture": "10.0", "precision": "int8", "options": {"qformat": "int8_wo"}}, "take fp8 or fp4"),
        ({"architecture": "amd64"}, "tensorrt_llm builds for GPUs, not for amd64"),
    ],
)
def test_a_gpu_without_the_arithmetic_is_refused_at_once(
    changes: dict[str, Any], message: str, checkpoint: Path, texts: Path, standins: Standins
) -> None:
    error = refused(checkpoint, texts, **changes)
    assert error.failure is BuildFailure.INVALID_OPTIONS
    assert message in error.message


def test_blocks_of_awq_must_fit_into_every_gpus_rows(model: Path, texts: Path, standins: Standins) -> None:
    rewrite(model / "config.json", intermediate_size=320)
    error = refused(model, texts, precision="int4", tensor=2, options={"awq_block_size": 64})
    assert "intermediate_size 320 over parallelism.tensor 2 gives each GPU 160, no multiple of it" in error.message


def test_key_value_heads_are_shared_out_or_repeated(model: Path, standins: Standins) -> None:
    rewrite(model / "config.json", num_attention_heads=12, num_key_value_heads=4)
    assert "4 key-value heads can be neither shared out" in refused(model, tensor=6).message


def test_layers_of_a_quantized_checkpoint_divide(model: Path, texts: Path, standins: Standins) -> None:
    rewrite(model / "config.json", num_hidden_layers=3)
    assert "3 layers are not divisible by it" in refused(model, texts, precision="fp8", pipeline=2).message
    BUILDER.phases(BuildJob(a_request(pipeline=2), model))  # a converted one may be uneven


def test_a_checkpoint_is_quantized_once(model: Path, texts: Path, standins: Standins) -> None:
    rewrite(model / "config.json", quantization_config={"quant_method": "awq"})
    assert "quantized already (awq, config.json)" in refused(model, texts, precision="fp8").message
    BUILDER.phases(BuildJob(a_request(), model))
    rewrite(model / "config.json", quantization_config={"quant_method": "gptq", "desc_act": True})
    assert refused(model).failure is BuildFailure.UNSUPPORTED_MODEL


def test_an_architecture_without_engines_goes_the_other_way(model: Path, standins: Standins) -> None:
    rewrite(model / "config.json", architectures=["DeepseekV3ForCausalLM"])
    error = refused(model)
    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "set engine.options.backend: pytorch" in error.message
    BUILDER.phases(BuildJob(a_request(options={"backend": "pytorch"}), model))
