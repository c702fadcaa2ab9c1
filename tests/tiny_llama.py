"""A tiny Llama with random weights and a tokenizer of single bytes, as Hugging Face saves it.

Its heads have 64 dimensions, the least that vLLM takes on a CPU.
"""

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

END = "<end>"
POSITIONS = 512
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def save(folder: Path, seed: int = 0, **config: Any) -> None:
    """Write the model's files."""
    tokenizer = byte_tokenizer()
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": POSITIONS,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": None,
    }
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**sizes, **config}))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def byte_tokenizer() -> Any:
    """Return a tokenizer whose tokens are the 256 bytes, and an end of the text."""
    bytes_ = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.Tokenizer(tokenizers.models.BPE({byte: number for number, byte in enumerate(bytes_)}, []))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=model, eos_token=END)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


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
