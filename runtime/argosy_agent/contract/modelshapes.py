"""A transformer's `config.json`, as Hugging Face's checkpoints have it, read as a `ModelShape`. Pure.

Weights are counted where the family is known; of other families a shape has sizes and no count. Models whose cache is
no keys and values a head (multi-head latent attention, state spaces) have no shape: sizes of it would mislead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .builds import ModelShape
from .fields import DocumentError, Fields, document


@dataclass(frozen=True, slots=True)
class Family:
    """What a `model_type` adds to the plain decoder.

    `query_bias`: a bias at queries, keys and values; None: as `attention_bias` says, at the output too. `head_norms`:
    norms of a head's queries and keys.
    """

    query_bias: bool | None = False
    head_norms: bool = False


FAMILIES: Mapping[str, Family] = {
    "llama": Family(query_bias=None),
    "mistral": Family(),
    "mixtral": Family(),
    "qwen2": Family(query_bias=True),
    "qwen2_moe": Family(query_bias=True),
    "qwen3": Family(query_bias=None, head_norms=True),
    "qwen3_moe": Family(query_bias=None, head_norms=True),
}
"""The families whose weights are counted: gated feed-forward layers, two norms a layer and one at the end."""

_NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "attention_heads": ("num_attention_heads", "n_head", "num_heads"),
}
_OTHER_CACHES = ("kv_lora_rank", "ssm_state_size", "state_size", "layer_types", "layers_block_type", "mamba_d_state")
"""Fields of models whose cache is not one pair of keys and values for every token and layer."""
_PLAIN_LAYERS = {"full_attention", "sliding_attention"}
"""Layers that have such a pair; where it slides, the cache of a whole sequence is more than they keep."""


def parse_shape(text: str, name: str = "config.json") -> ModelShape | None:
    """Return the shape in the text of a `config.json`; None where it describes no such transformer.

    Raises DocumentError, which names the field: no JSON, or sizes that are none.
    """
    fields = document(text, name)
    nested = fields.values.get("text_config")
    return shape_of(fields.mapping("text_config") if isinstance(nested, dict) else fields)


def shape_of(fields: Fields) -> ModelShape | None:
    """Return the shape in a parsed `config.json`, as `parse_shape` has it."""
    values = fields.values
    named = {size: _present(values, names) for size, names in _NAMES.items()}
    if not all(named.values()) or any(_says(values, name) for name in _OTHER_CACHES):
        return None
    sizes = {size: fields.number(name) for size, name in named.items()}
    if 0 in sizes.values():
        zero = next(size for size, value in sizes.items() if not value)
        raise DocumentError(f"{fields.at(named[zero])} must be 1 or more, not 0")
    heads = sizes["attention_heads"]
    shape = ModelShape(
        **sizes,
        key_value_heads=_number(fields, heads, "num_key_value_heads") or heads,
        head_size=_number(fields, sizes["hidden_size"] // heads, "head_dim") or sizes["hidden_size"] // heads,
        intermediate_size=_number(fields, 0, "moe_intermediate_size", "intermediate_size", "n_inner"),
        vocabulary=_number(fields, 0, "vocab_size"),
        experts=_number(fields, 0, "num_local_experts", "num_experts"),
        experts_per_token=_number(fields, 0, "num_experts_per_tok"),
        max_positions=_number(fields, 0, "max_position_embeddings", "n_positions"),
    )
    family = FAMILIES.get(str(values.get("model_type", "")))
    return shape if family is None else _with_parameters(shape, fields, family)


def _with_parameters(shape: ModelShape, fields: Fields, family: Family) -> ModelShape:
    """Return the shape with its weights counted."""
    tables = 1 if fields.flag("tie_word_embeddings", False) else 2
    embedding = tables * shape.vocabulary * shape.hidden_size
    dense, sparse = _layers(shape, fields)
    feed_forward = dense * _gated(shape.hidden_size, _number(fields, 0, "intermediate_size"))
    feed_forward += sparse * _mixture(shape, fields)
    attention = shape.layers * (_attention(shape, fields, family) + 2 * shape.hidden_size)
    return replace(
        shape,
        parameters=embedding + attention + feed_forward + shape.hidden_size,
        embedding_parameters=embedding,
    )


def _attention(shape: ModelShape, fields: Fields, family: Family) -> int:
    queries, keys = shape.attention_heads * shape.head_size, shape.key_value_heads * shape.head_size
    weights = 2 * shape.hidden_size * queries + 2 * shape.hidden_size * keys
    everywhere = family.query_bias is None and fields.flag("attention_bias", False)
    weights += queries + 2 * keys if family.query_bias or everywhere else 0
    weights += shape.hidden_size if everywhere else 0
    return weights + (2 * shape.head_size if family.head_norms else 0)


def _layers(shape: ModelShape, fields: Fields) -> tuple[int, int]:
    """Return how many layers have one feed-forward network, and how many a mixture of experts."""
    if not shape.experts:
        return shape.layers, 0
    step, dense = _number(fields, 1, "decoder_sparse_step") or 1, set(fields.numbers("mlp_only_layers"))
    sparse = sum(layer not in dense and (layer + 1) % step == 0 for layer in range(shape.layers))
    return shape.layers - sparse, sparse


def _mixture(shape: ModelShape, fields: Fields) -> int:
    """Return the weights of a layer's experts, of the router, and of the shared expert with its gate."""
    shared = _number(fields, 0, "shared_expert_intermediate_size")
    weights = shape.experts * (_gated(shape.hidden_size, shape.intermediate_size) + shape.hidden_size)
    return weights + (_gated(shape.hidden_size, shared) + shape.hidden_size if shared else 0)


def _gated(hidden: int, width: int) -> int:
    """Return the weights of a gated feed-forward network: gate, up, down."""
    return 3 * hidden * width


def _number(fields: Fields, default: int, *names: str) -> int:
    name = _present(fields.values, names)
    return fields.number(name) if name else default


def _present(values: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((name for name in names if values.get(name) is not None), "")


def _says(values: Mapping[str, Any], name: str) -> bool:
    """Return whether a field describes another cache; newer files list plain layers one by one, too."""
    value = values.get(name)
    return value is not None and not (isinstance(value, list) and set(map(str, value)) <= _PLAIN_LAYERS)
