"""The engine: a model that repeats its prompt, or the name of its adapter, one token a step.

A test sees in `AsyncLLM.made` what was started, and there `calls`, `open` requests, the `loras`. Steps run by
themselves, unless `AsyncLLM.steps` is an event loop's semaphore that a test releases. `die` ends it as a crash would.
A prompt with the token 0 never ends.
A model with `insomnia` in its name cannot fall asleep, one with `coma` cannot wake.
"""

import asyncio
from types import SimpleNamespace
from typing import ClassVar

from vllm.exceptions import VLLMValidationError
from vllm.pooling_params import PoolingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.metrics.loggers import PrometheusStatLogger

from .exceptions import EngineDeadError
from .output_processor import RequestOutputCollector

ENDLESS = 0


class Tokenizer:
    """Tokens are the characters' numbers."""

    chat_template = "a template"

    def encode(self, text, add_special_tokens=True):
        return [ord(character) for character in text]

    def decode(self, ids, skip_special_tokens=False):
        return "".join(map(chr, ids))

    def apply_chat_template(self, conversation, **options):
        return "".join(message["content"] for message in conversation)


class AsyncLLM:
    made: ClassVar[list] = []
    load_error = None
    step_by_step = False

    def __init__(self, engine_args, stat_loggers):
        self.engine_args = engine_args
        self.loggers = self.made_loggers(stat_loggers)
        self.calls = []
        self.open = {}
        self.aborted = []
        self.loras = set()
        self.dead = None
        self.level = 0
        self.awake = asyncio.Event()
        self.awake.set()
        self.generated = 0
        self.steps = asyncio.Semaphore(0)
        self.loop = asyncio.get_running_loop()
        self.model_config = SimpleNamespace(
            max_model_len=engine_args.max_model_len or 64,
            get_vocab_size=lambda: 1000,
            get_diff_sampling_param=lambda: {"temperature": 0.5, "max_tokens": 40},
        )
        AsyncLLM.made.append(self)

    @classmethod
    def from_engine_args(cls, engine_args, start_engine_loop=True, usage_context="ENGINE_CONTEXT", stat_loggers=None):
        if cls.load_error is not None:
            raise cls.load_error
        return cls(engine_args, stat_loggers)

    @staticmethod
    def made_loggers(classes):
        config = SimpleNamespace(cache_config=SimpleNamespace(num_gpu_blocks=8, block_size=16))
        loggers = [kind(vllm_config=config, engine_indexes=[0]) for kind in classes]
        assert any(isinstance(logger, PrometheusStatLogger) for logger in loggers), "vLLM would add one of its own"
        for logger in loggers:
            logger.log_engine_initialized()
        return loggers

    @property
    def tokenizer(self):
        return Tokenizer()

    @property
    def errored(self):
        return self.dead is not None

    def die(self):
        """End as a crash does, seen from the loop."""
        self.dead = EngineDeadError()
        for _ in range(100):
            self.steps.release()

    async def add_request(
        self,
        request_id,
        prompt,
        params,
        arrival_time=None,
        lora_request=None,
        tokenization_kwargs=None,
        trace_headers=None,
        priority=0,
        data_parallel_rank=None,
        session_id=None,
        prompt_text=None,
        reasoning_ended=None,
        reasoning_parser_kwargs=None,
        kv_hints=None,
    ):
        self.calls.append((prompt, params, request_id, lora_request, priority))
        if self.dead is not None:
            raise self.dead
        ids = prompt["prompt_token_ids"]
        collector = RequestOutputCollector(getattr(params, "output_kind", None), request_id)
        if isinstance(params, PoolingParams):
            work = self.embed(collector, ids, params)
        elif params.structured_outputs is not None and params.structured_outputs.regex == "(":
            raise VLLMValidationError("the regex cannot be compiled")
        else:
            repeated = ids if lora_request is None else [ord(character) for character in lora_request.lora_name]
            work = self.generate(collector, ids, repeated, params)
        self.open[request_id] = self.loop.create_task(self.run(collector, work))
        return collector

    async def abort(self, request_id, internal=False):
        assert internal
        self.aborted.append(request_id)
        if request_id in self.open:
            self.open.pop(request_id).cancel()
            self.record(len(self.open), 0, 0)

    async def run(self, collector, work):
        await self.awake.wait()
        try:
            await work
        except EngineDeadError as error:
            collector.put(error)  # no step brings it, and nothing is recorded
        else:
            del self.open[collector.request_id]
            self.record(len(self.open), 0, 0)

    async def generate(self, collector, ids, repeated, params):
        stream = params.output_kind is RequestOutputKind.DELTA
        made = dict.fromkeys(range(params.n), "")
        for step in range(params.max_tokens):
            if ENDLESS in ids:
                await asyncio.Event().wait()
            if self.step_by_step:
                await self.steps.acquire()
            else:
                await asyncio.sleep(0)
            if self.dead is not None:
                raise self.dead
            last = step == params.max_tokens - 1
            token = repeated[step % len(repeated)]
            for choice in made:
                made[choice] += chr(token)
            if stream or last:
                texts = {choice: chr(token) if stream else text for choice, text in made.items()}
                choices = [self.choice(choice, text, last, params) for choice, text in texts.items()]
                collector.put(self.output(ids, choices, last))
            self.record(len(self.open), (step == 0 and len(ids)) or 0, params.n)

    def output(self, ids, outputs, finished):
        prompt_logprobs = None
        return SimpleNamespace(
            prompt_token_ids=ids,
            num_cached_tokens=2,
            prompt_logprobs=prompt_logprobs,
            outputs=outputs,
            finished=finished,
        )

    def choice(self, index, text, last, params):
        position = {ord(text[-1]): SimpleNamespace(logprob=-0.5, rank=1, decoded_token=text[-1])}
        return SimpleNamespace(
            index=index,
            text=text,
            token_ids=[ord(character) for character in text],
            cumulative_logprob=-0.5 if params.logprobs is not None else None,
            logprobs=[position] * len(text) if params.logprobs is not None else None,
            finish_reason=("error" if text[-1] == "!" else "length") if last else None,
            stop_reason=None,
        )

    def record(self, running, prompt_tokens, generated):
        scheduler = SimpleNamespace(num_running_reqs=running, num_waiting_reqs=0, kv_cache_usage=running / 10)
        iteration = SimpleNamespace(
            num_prompt_tokens=prompt_tokens,
            num_generation_tokens=generated,
            num_preempted_reqs=0,
            time_to_first_tokens_iter=[0.1] if prompt_tokens else [],
            inter_token_latencies_iter=[] if prompt_tokens or not generated else [0.01],
            finished_requests=[],
        )
        for logger in self.loggers:
            logger.record(scheduler, iteration, mm_cache_stats=None, engine_idx=0)

    async def embed(self, collector, ids, params):
        import torch

        values = torch.tensor([float(token) for token in ids][: params.dimensions])
        collector.put(SimpleNamespace(prompt_token_ids=ids, outputs=SimpleNamespace(data=values), finished=True))
        self.record(len(self.open), len(ids), 0)

    async def add_lora(self, lora_request):
        if not self.engine_args.enable_lora:
            raise RuntimeError("LoRA is not enabled. Use --enable-lora to enable LoRA.")
        self.touch()
        if "misfit" in lora_request.lora_path:
            raise RuntimeError("Call to add_lora method failed: shapes do not fit")
        self.loras.add(lora_request.lora_int_id)
        return True

    async def remove_lora(self, lora_id):
        self.touch()
        self.loras.discard(lora_id)
        return True

    def touch(self):
        """Use the memory of the device, which a sleeping engine does not have: the real one's process ends then."""
        if self.level:
            self.die()
            raise self.dead

    async def sleep(self, level=1, mode="abort"):
        self.calls.append(("sleep", level, mode))
        if "insomnia" in self.engine_args.model:
            raise RuntimeError("Call to sleep method failed: Memory usage increased after sleeping.")
        assert not self.open, "the server lets no request run while it puts an engine to sleep"
        self.level = level
        self.awake.clear()

    async def wake_up(self, tags=None):
        self.calls.append(("wake_up", tags))
        if "coma" in self.engine_args.model:
            raise RuntimeError("Call to wake_up method failed: CUDA Error: out of memory")
        if tags is None or "kv_cache" in tags:
            self.level = 0
            self.awake.set()
        return not self.level

    def shutdown(self, timeout=None):
        self.calls.append(("shutdown", timeout))
