"""The LLM API: a model that foretells the next token by arithmetic on the last."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from standin import called, typed

from .llmapi import KvCacheConfig

ARGUMENTS = frozenset(
    {
        "backend",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "dtype",
        "max_batch_size",
        "max_input_len",
        "max_seq_len",
        "max_num_tokens",
        "max_beam_width",
        "kv_cache_config",
        "cuda_graph_config",
        "enable_chunked_prefill",
        "attn_backend",
        "moe_config",
        "disable_overlap_scheduler",
        "moe_expert_parallel_size",
        "gather_generation_logits",
        "tokenizer",
    }
)


@dataclass
class SamplingParams:
    max_tokens: int = 32
    temperature: float | None = None
    return_generation_logits: bool = False
    detokenize: bool = True


@dataclass
class Completion:
    generation_logits: torch.Tensor | None


@dataclass
class Answer:
    outputs: list[Completion]


class Llm:
    engines = False

    def __init__(self, model: str, tokenizer: str | None = None, **arguments: Any) -> None:
        unknown = arguments.keys() - ARGUMENTS
        if unknown:
            raise ValueError(f"got invalid argument: {', '.join(unknown)}")
        typed("model", model, str)
        assert bool(list(Path(model).glob("rank*.engine"))) is self.engines
        cache = arguments.get("kv_cache_config")
        typed("kv_cache_config", cache, KvCacheConfig, dict)
        if isinstance(cache, dict):
            arguments["kv_cache_config"] = vars(KvCacheConfig(**cache))
        else:
            arguments["kv_cache_config"] = vars(cache)
        called("LLM", engines=self.engines, tokenizer=tokenizer and Path(tokenizer).name, **arguments)
        self._gathers = arguments["gather_generation_logits"]
        config = json.loads((Path(model) / "config.json").read_text())
        self._words = config.get("pretrained_config", config)["vocab_size"]

    def __enter__(self) -> "Llm":
        return self

    def __exit__(self, *_: object) -> None:
        called("shutdown")

    def generate(self, inputs: list[Any], sampling_params: SamplingParams, use_tqdm: bool = True) -> list[Answer]:
        assert sampling_params.max_tokens == 1
        assert not use_tqdm
        return [self._answer(prompt["prompt_token_ids"], sampling_params) for prompt in inputs]

    def _answer(self, ids: list[int], parameters: SamplingParams) -> Answer:
        if not (self._gathers and parameters.return_generation_logits):
            return Answer([Completion(None)])
        row = torch.zeros(1, self._words)
        row[0, (ids[-1] + 1) % self._words] = 1.0
        return Answer([Completion(row)])


class LLM(Llm):
    pass
