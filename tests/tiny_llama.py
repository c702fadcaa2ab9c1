"""Tiny Llamas with random weights, and their tokenizers and adapters, as Hugging Face saves them.

Heads have 64 dimensions unless a size says otherwise: that is the least that vLLM takes on a CPU.
"""

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tests import tiny_tokenizers

END = "<end>"
POSITIONS = 512
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def configuration(vocabulary: int, **sizes: Any) -> transformers.LlamaConfig:
    """Return the configuration of a tiny Llama without special tokens; `sizes` are fields that differ."""
    tiny = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 128,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": POSITIONS,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    return transformers.LlamaConfig(**{"vocab_size": vocabulary, **tiny, **sizes})


def model(vocabulary: int, seed: int = 0, **sizes: Any) -> transformers.LlamaForCausalLM:
    """Return a tiny Llama with random weights."""
    torch.manual_seed(seed)
    return transformers.LlamaForCausalLM(configuration(vocabulary, **sizes))


def save(folder: Path, seed: int = 0, dtype: torch.dtype = torch.float32, **sizes: Any) -> None:
    """Write a tiny Llama with a tokenizer of bytes."""
    tokenizer = byte_tokenizer()
    made = model(len(tokenizer), seed, **{"eos_token_id": tokenizer.eos_token_id, **sizes})
    made.generation_config.eos_token_id = tokenizer.eos_token_id
    made.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def byte_tokenizer() -> Any:
    """Return a tokenizer whose tokens are the 256 bytes, and an end of the text."""
    tokenizer = loaded(tiny_tokenizers.byte_level(), eos_token=END)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def loaded(tokenizer: tokenizers.Tokenizer, **special: str) -> Any:
    """Return a tokenizer as Hugging Face loads it; `special` has tokens by their roles."""
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def save_adapter(folder: Path, model: Path, rank: int = 8, scale: float = 4.0, hidden: int = 128) -> None:
    """Write a LoRA adapter of the model in the form of the package peft."""
    import json

    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    weights = {}
    for layer in range(2):
        for name in ("q_proj", "v_proj", "o_proj"):
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{prefix}.lora_A.weight"] = torch.randn(rank, hidden) * scale
            weights[f"{prefix}.lora_B.weight"] = torch.randn(hidden, rank) * scale
    save_file(weights, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": str(model),
        "r": rank,
        "lora_alpha": rank,
        "target_modules": ["q_proj", "v_proj", "o_proj"],
        "task_type": "CAUSAL_LM",
        "bias": "none",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))


def save_bad_adapter(folder: Path, model: Path, fault: str) -> None:
    """Write the folder of an adapter of the model `llm` that does not fit: `rank`, `modules`, `base` or `cut`."""
    version = folder / "1"
    save_adapter(version, model, rank=64 if fault == "rank" else 8, hidden=64 if fault == "base" else 128)
    weights, config = version / "adapter_model.safetensors", version / "adapter_config.json"
    if fault == "modules":
        config.write_text(config.read_text().replace("o_proj", "no_such_proj"))
        renamed = weights.read_bytes().replace(b"self_attn.o_proj", b"no_such_proj.xyz")
        weights.write_bytes(renamed)
    if fault == "cut":
        weights.write_bytes(weights.read_bytes()[:-100])
    (folder / "config.pbtxt").write_text('backend: "adapter" parameters { key: "base" value { string_value: "llm" } }')
