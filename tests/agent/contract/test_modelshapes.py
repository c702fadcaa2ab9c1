"""Published models, by the `config.json` they are published with, have the sizes that are published of them."""

import json
from pathlib import Path

import pytest

from argosy_agent.contract.builds import ModelShape
from argosy_agent.contract.fields import DocumentError
from argosy_agent.contract.modelshapes import parse_shape

SHAPES = Path(__file__).parents[2] / "data" / "shapes"
PUBLISHED = {
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-0.5b": 494_032_768,
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
}
"""Parameters, as the model cards' safetensors metadata have them."""


def published(name: str) -> ModelShape:
    shape = parse_shape((SHAPES / f"{name}.json").read_text())
    assert shape is not None
    return shape


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str) -> None:
    assert published(name).parameters == PUBLISHED[name]


def test_the_sizes_of_llama_3_70b() -> None:
    assert published("llama-3-70b") == ModelShape(
        layers=80,
        hidden_size=8192,
        attention_heads=64,
        key_value_heads=8,
        head_size=128,
        intermediate_size=28672,
        vocabulary=128256,
        max_positions=8192,
        parameters=70_553_706_496,
        embedding_parameters=2 * 128256 * 8192,
    )


def test_experts_and_a_head_size_of_its_own() -> None:
    shape = published("qwen3-30b-a3b")
    assert (shape.experts, shape.experts_per_token, shape.intermediate_size) == (128, 8, 768)
    assert (shape.attention_heads * shape.head_size, shape.hidden_size) == (4096, 2048)


def test_tied_embeddings_are_one_table() -> None:
    shape = published("qwen2.5-0.5b")
    assert shape.embedding_parameters == shape.vocabulary * shape.hidden_size


def test_a_family_that_is_unknown_has_sizes_and_no_count() -> None:
    shape = parse_shape('{"model_type": "new", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100}')
    assert shape == ModelShape(2, 64, 4, 4, 16, vocabulary=100)


def test_a_language_model_within_a_larger_one_is_detected() -> None:
    text = (SHAPES / "llama-3-8b.json").read_text()
    assert parse_shape(json.dumps({"model_type": "llava", "text_config": json.loads(text)})) == published("llama-3-8b")


@pytest.mark.parametrize(
    "other",
    [
        {"kv_lora_rank": 512},
        {"state_size": 16},
        {"layer_types": ["linear_attention", "full_attention"]},
        {"num_attention_heads": None},
    ],
)
def test_what_keeps_no_keys_and_values_a_head_has_no_shape(other: dict[str, object]) -> None:
    config = json.loads((SHAPES / "llama-3-8b.json").read_text())
    assert parse_shape(json.dumps({**config, **other})) is None


def test_plain_layers_listed_one_by_one_are_plain() -> None:
    config = json.loads((SHAPES / "qwen3-8b.json").read_text())
    config["layer_types"] = ["full_attention"] * 36
    assert parse_shape(json.dumps(config)) == published("qwen3-8b")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "config.json"),
        ("[]", "config.json"),
        ('{"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 0}', "num_attention_heads must be 1"),
        ('{"num_hidden_layers": "2", "hidden_size": 64, "num_attention_heads": 4}', "num_hidden_layers"),
        ('{"num_hidden_layers": 2, "hidden_size": -64, "num_attention_heads": 4}', "hidden_size"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        parse_shape(text)
