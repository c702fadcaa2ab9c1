"""The LLM API: a model that foretells the next token by arithmetic on the last."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from standin import called, typed

from .executor.request import LoRARequest
from .llmapi import KvCacheConfig, RequestError
from .sampling_params import SamplingParams

BASE = frozenset(
    (
        *("backend", "tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "gpus_per_node"),
        *("dtype", "tokenizer_mode", "skip_tokenizer_init", "trust_remote_code", "revision", "tokenizer_revision"),
        *("moe_cluster_parallel_size", "moe_tensor_parallel_size", "moe_expert_parallel_size", "load_format"),
        *("enable_attention_dp", "enable_lm_head_tp_in_adp", "pp_partition", "cp_config", "enable_lora"),
        *("lora_config", "kv_cache_config", "enable_chunked_prefill", "guided_decoding_backend"),
        *("batched_logits_processor", "iter_stats_max_iterations", "request_stats_max_iterations"),
        *("peft_cache_config", "scheduler_config", "cache_transceiver_config", "sparse_attention_config"),
        *("speculative_config", "max_batch_size", "max_input_len", "max_seq_len", "max_beam_width"),
        *("max_num_tokens", "gather_generation_logits", "num_postprocess_workers", "postprocess_tokenizer_dir"),
        *("reasoning_parser", "return_perf_metrics", "perf_metrics_max_requests", "orchestrator_type"),
    )
)
OF_ENGINES = frozenset(
    (
        *("workspace", "fail_fast_on_attention_window_too_large", "extended_runtime_perf_knob_config"),
        *("calib_config", "quant_config", "build_config", "fast_build", "batching_type", "normalize_log_probs"),
    )
)
OF_PYTORCH = frozenset(
    (
        *("cuda_graph_config", "disable_overlap_scheduler", "moe_config", "attn_backend", "sampler_type"),
        *("enable_iter_perf_stats", "enable_iter_req_stats", "print_iter_log", "batch_wait_timeout_ms"),
        *("torch_compile_config", "enable_autotuner", "stream_interval", "checkpoint_format"),
        *("checkpoint_loader", "allreduce_strategy", "mm_encoder_only", "enable_sleep", "max_stats_len"),
    )
)
WAITS, FAILS, ENDS = 1, 2, 3
"""First tokens of prompts: their request waits until it is aborted, it fails, the engine ends."""


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None


@dataclass
class Completion:
    index: int = 0
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[dict[int, Logprob]] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    generation_logits: torch.Tensor | None = None


@dataclass
class Answer:
    outputs: list[Completion]


def plain(value: Any) -> Any:
    """Return an argument as JSON."""
    if is_dataclass(value):
        return {name: plain(item) for name, item in vars(value).items()}
    return value.name if isinstance(value, Enum) else value


class RequestOutput:
    """The result of `generate_async`: an asynchronous iterator over itself, cumulative."""

    def __init__(self, llm: "Llm", prompt: list[int], parameters: SamplingParams, step: int) -> None:
        self.prompt_token_ids = prompt
        self.outputs = [Completion()]
        self.cached_tokens = len(prompt) // 2
        self.finished = False
        self._llm, self._parameters, self._next = llm, parameters, step
        self._aborted = asyncio.Event()

    def abort(self) -> None:
        called("abort", prompt=self.prompt_token_ids)
        self._aborted.set()

    def aborted(self) -> bool:
        return self._aborted.is_set()

    def __aiter__(self) -> "RequestOutput":
        return self

    async def __anext__(self) -> "RequestOutput":
        if self.finished:
            raise StopAsyncIteration
        await asyncio.sleep(0)
        kind = self.prompt_token_ids[0]
        if kind == WAITS:
            await self._aborted.wait()
        if kind == FAILS:
            raise RequestError("the request failed")
        if kind == ENDS:
            self._llm.dead = True
        if self._llm.dead:
            raise RuntimeError("CUDA error: device-side assert triggered")
        if self._aborted.is_set():
            self.finished, self.outputs[0].finish_reason = True, "cancelled"
            return self
        self._generate()
        return self

    def _generate(self) -> None:
        output, parameters = self.outputs[0], self._parameters
        last = output.token_ids[-1] if output.token_ids else self.prompt_token_ids[-1]
        token = (last + self._next) % self._llm.words
        if parameters.embedding_bias is not None:
            token = int(parameters.embedding_bias.argmax())
        output.token_ids.append(token)
        if parameters.logprobs:
            likeliest = {(token + other) % self._llm.words: Logprob(-0.5 - other, other + 1) for other in range(3)}
            output.logprobs.append(dict(list(likeliest.items())[: max(parameters.logprobs, 1)]))
        enough = len(output.token_ids) >= (parameters.min_tokens or 1)
        if token == parameters.end_id and not parameters.ignore_eos and enough:
            self.finished, output.finish_reason = True, "stop"
        elif token in (parameters.stop_token_ids or ()):
            self.finished, output.finish_reason, output.stop_reason = True, "stop", token
            if not parameters.include_stop_str_in_output:
                output.token_ids = output.token_ids[:-1]
        elif len(output.token_ids) == parameters.max_tokens:
            self.finished, output.finish_reason = True, "length"


class Llm:
    engines = False

    def __init__(
        self,
        model: str,
        tokenizer: str | None = None,
        tokenizer_mode: str = "auto",
        skip_tokenizer_init: bool = False,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        revision: str | None = None,
        tokenizer_revision: str | None = None,
        **arguments: Any,
    ) -> None:
        unknown = arguments.keys() - (BASE | (OF_ENGINES if self.engines else OF_PYTORCH))
        if unknown:
            raise ValueError(f"got invalid argument: {', '.join(unknown)}")
        typed("model", model, str)
        assert bool(list(Path(model).glob("rank*.engine"))) is self.engines
        cache = arguments.get("kv_cache_config")
        typed("kv_cache_config", cache, KvCacheConfig, dict)
        arguments["kv_cache_config"] = vars(KvCacheConfig(**cache) if isinstance(cache, dict) else cache)
        typed("guided_decoding_backend", arguments.get("guided_decoding_backend"), None, "xgrammar", "llguidance")
        more = {"dtype": dtype} if dtype != "auto" else {}
        if tensor_parallel_size != 1:
            more["tensor_parallel_size"] = tensor_parallel_size
        name = tokenizer and Path(tokenizer).name
        shown = {key: plain(value) for key, value in arguments.items()}
        called("LLM", engines=self.engines, tokenizer=name, **more, **shown)
        self.dead = False
        self.running = 0
        self._gathers = arguments.get("gather_generation_logits", False)
        self._guided = arguments.get("guided_decoding_backend") is not None
        config = json.loads((Path(model) / "config.json").read_text())
        self.words = config.get("pretrained_config", config)["vocab_size"]
        build = config.get("build_config", {})
        self._longest = build.get("max_seq_len") or arguments.get("max_seq_len") or config["max_position_embeddings"]
        plugin = build.get("plugin_config", {}).get("lora_plugin") is not None
        self._lora = plugin if self.engines else arguments.get("enable_lora", False)
        self._tokenizer = None
        if not skip_tokenizer_init and tokenizer is not None:
            from transformers import AutoTokenizer

            self._tokenizer = AutoTokenizer.from_pretrained(tokenizer)

    def __enter__(self) -> "Llm":
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        called("shutdown")

    def generate(self, inputs: list[Any], sampling_params: SamplingParams, use_tqdm: bool = True) -> list[Answer]:
        assert sampling_params.max_tokens == 1
        assert not use_tqdm
        return [self._answer(prompt["prompt_token_ids"], sampling_params) for prompt in inputs]

    def generate_async(
        self,
        inputs: dict[str, list[int]],
        sampling_params: SamplingParams | None = None,
        lora_request: LoRARequest | None = None,
        prompt_adapter_request: object = None,
        streaming: bool = False,
        kv_cache_retention_config: object = None,
        disaggregated_params: object = None,
        _postproc_params: object = None,
        scheduling_params: object = None,
        cache_salt: str | None = None,
    ) -> RequestOutput:
        asyncio.get_running_loop()  # without one its results cannot be iterated over
        assert streaming
        typed("sampling_params", sampling_params, SamplingParams)
        typed("lora_request", lora_request, None, LoRARequest)
        typed("cache_salt", cache_salt, None, str)
        assert sampling_params is not None
        prompt = inputs["prompt_token_ids"]
        assert all(type(token) is int for token in prompt)
        if sampling_params.end_id is None:
            if self._tokenizer is None:
                raise ValueError("tokenizer is required to reset end_id if it is None")
            sampling_params.set_up(self._tokenizer)
        elif sampling_params.bad is not None:
            raise RuntimeError("SamplingParams.bad is not processed by tokenizer, please call the setup method.")
        if len(prompt) + sampling_params.max_tokens > self._longest:
            raise ValueError(f"the sum of prompt and max_tokens should not exceed max_seq_len ({self._longest})")
        if sampling_params.guided_decoding is not None and not self._guided:
            raise ValueError("guided_decoding_backend is required for guided decoding")
        if lora_request is not None and not self._lora:
            raise ValueError("LoRA is not enabled")
        draws = sampling_params.top_k != 1 and (sampling_params.top_p or sampling_params.top_k)
        step = 1 + ((sampling_params.seed or 0) % 7 if draws else 0) + (1 if lora_request is not None else 0)
        guide = sampling_params.guided_decoding
        salt = {} if cache_salt is None else {"cache_salt": cache_salt}
        chosen = {
            name: value
            for name, value in ((name, getattr(sampling_params, name)) for name in SamplingParams.__slots__)
            if name != "embedding_bias" and value not in (None, [], False) and name != "guided_decoding"
        }
        adapter = {} if lora_request is None else {"lora": lora_request.lora_name}
        guided = {} if guide is None else {"guide": {name: value for name, value in vars(guide).items() if value}}
        called("generate_async", prompt=prompt, sampling=chosen, **salt, **adapter, **guided)
        return RequestOutput(self, prompt, sampling_params, step)

    async def get_stats_async(self, timeout: float | None = 2) -> AsyncIterator[dict[str, Any]]:  # noqa: ASYNC109
        await asyncio.sleep(0)
        cache = {"maxNumBlocks": 100, "freeNumBlocks": 75, "usedNumBlocks": 25, "tokensPerBlock": 32}
        yield {"iter": 1, "numActiveRequests": 3, "numQueuedRequests": 2, "kvCacheStats": cache}

    def _answer(self, ids: list[int], parameters: SamplingParams) -> Answer:
        if not (self._gathers and parameters.return_generation_logits):
            return Answer([Completion()])
        row = torch.zeros(1, self.words)
        row[0, (ids[-1] + 1) % self.words] = 1.0
        return Answer([Completion(generation_logits=row)])


class LLM(Llm):
    pass
