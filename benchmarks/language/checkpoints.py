"""Small Llama checkpoints in Hugging Face's form, made here: nothing is downloaded.

Each token is one character of ASCII, so that every token has text, and chunks of a stream end at whole characters.
"""

from pathlib import Path

ALPHABET = [chr(code) for code in range(33, 127)]
_SPACE = "Ġ"
"""A space, as byte-level tokenizers write it."""
HEAD = 64
"""Width of a head: vLLM on the CPU has no attention for much smaller ones."""


def checkpoint(folder: Path, hidden: int, layers: int, longest: int) -> None:
    """Write a Llama with random weights, and its tokenizer. `longest`: tokens of prompt and answer together."""
    import torch
    from tests import tiny_llama, tiny_tokenizers

    pieces = ["<s>", "</s>", _SPACE, *ALPHABET]
    tokenizer = tiny_llama.loaded(tiny_tokenizers.byte_level(pieces), bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    heads = hidden // HEAD
    llama = tiny_llama.model(
        len(pieces), hidden_size=hidden, intermediate_size=4 * hidden, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=longest,
        bos_token_id=0, eos_token_id=1, tie_word_embeddings=False,
    )  # fmt: skip
    with torch.no_grad():
        # Special tokens, which have no text, are never the likeliest.
        llama.lm_head.weight[:2] = 0
    llama.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
