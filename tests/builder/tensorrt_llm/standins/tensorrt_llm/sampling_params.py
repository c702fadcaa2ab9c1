"""SamplingParams of 1.2, with the checks that it makes itself."""

from dataclasses import dataclass, field
from typing import Any

import torch
from standin import typed

from .llmapi import GuidedDecodingParams


@dataclass(slots=True, kw_only=True)
class SamplingParams:
    end_id: int | None = None
    pad_id: int | None = None
    max_tokens: int = 32
    bad: str | list[str] | None = None
    bad_token_ids: list[int] | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    embedding_bias: torch.Tensor | None = None
    logits_processor: Any = None
    apply_batched_logits_processor: bool = False
    n: int = 1
    best_of: int | None = None
    use_beam_search: bool = False
    top_k: int | None = None
    top_p: float | None = None
    top_p_min: float | None = None
    top_p_reset_ids: int | None = None
    top_p_decay: float | None = None
    seed: int | None = None
    temperature: float | None = None
    min_tokens: int | None = None
    beam_search_diversity_rate: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    length_penalty: float | None = None
    early_stopping: int | None = None
    no_repeat_ngram_size: int | None = None
    min_p: float | None = None
    beam_width_array: list[int] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    return_context_logits: bool = False
    return_generation_logits: bool = False
    exclude_input_from_output: bool = True
    return_encoder_output: bool = False
    return_perf_metrics: bool = False
    additional_model_outputs: Any = None
    lookahead_config: Any = None
    guided_decoding: GuidedDecodingParams | None = None
    ignore_eos: bool = False
    detokenize: bool = True
    add_special_tokens: bool = True
    truncate_prompt_tokens: int | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    bad_words: list[list[int]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self.best_of = self.best_of or self.n
        greedy = self.top_k in (None, 1) and self.top_p in (None, 0.0)
        if self.best_of > 1 and greedy:
            raise ValueError("Greedy decoding in the LLM API does not allow multiple returns.")
        typed("max_tokens", self.max_tokens, int)
        for name in ("top_k", "seed", "min_tokens", "logprobs", "end_id"):
            typed(name, getattr(self, name), None, int)
        for name in ("top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"):
            typed(name, getattr(self, name), None, float, int)
        typed("guided_decoding", self.guided_decoding, None, GuidedDecodingParams)
        if self.embedding_bias is not None:
            assert self.embedding_bias.dtype is torch.float32
        if self.seed is not None:
            assert 0 <= self.seed < 2**64
        if self.temperature is not None:
            assert self.temperature > 0

    def set_up(self, tokenizer: Any) -> None:
        """Take what the tokenizer decides, as `_setup` does, which is called only where there is no `end_id`."""
        self.end_id = tokenizer.eos_token_id
        texts = [self.bad] if isinstance(self.bad, str) else self.bad or []
        self.bad_words = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
