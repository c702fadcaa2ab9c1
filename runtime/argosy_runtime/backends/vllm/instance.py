"""One language model on vLLM: requests in, deltas out, and the server's commands."""

import asyncio
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.engines.commands import AddAdapter, Command, RemoveAdapter, Sleep, Wake
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, internal, invalid, unavailable, unsupported
from argosy_runtime.language import GenerationRequest, ResponseBuilder
from argosy_runtime.language.chat import TRUST_REQUESTS
from argosy_runtime.language.limits import check_length, truncated
from argosy_runtime.language.prompts import Prompts
from argosy_runtime.messages import InferRequest, InferResponse

from .adapters import Adapters
from .engine import Engine, most_adapters, start_engine, with_cause
from .failures import serving_error
from .opening.arguments import engine_arguments, parts
from .opening.devices import visible_gpus
from .opening.library import import_library
from .reports import EngineReports
from .requests.deltas import TokenBytes
from .requests.embeddings import EmbeddingRequest, EmbeddingStream
from .requests.open_requests import OpenRequests, Stream
from .requests.sampling import duplicates, sampling_arguments, sampling_params
from .requests.streams import GenerationStream

REPORT_SECONDS: Final = 0.5
"""Seconds between reports of the engine's state, and between looks at whether an idle engine still runs."""
CLOSE_SECONDS: Final = 20.0
"""Seconds that requests have to end once the instance is to close; its server ends them earlier, if it has to."""

UNLOAD_SECONDS: Final = 0.05
"""Seconds between looks at whether requests still run with an adapter that is to be unloaded."""
SLEEP_LEVEL: Final = 1
"""vLLM's level that keeps the weights in the host's memory; the next one loses those of adapters."""


def _nothing() -> None:
    """Release nothing."""


class VllmInstance:
    """A loaded model. `execute` only queues: responses come from the engine's loop."""

    def __init__(self, spec: InstanceSpec, host: Host, engine: Engine, reports: EngineReports) -> None:
        self._spec = spec
        self._host = host
        self._engine = engine
        self._reports = reports
        self._decoupled = spec.config.model_transaction_policy.decoupled
        config = engine.model_config
        base = getattr(config, "hf_text_config", None)
        self._adapters = Adapters(spec.config.name, engine.library.LoRARequest, base)
        self._defaults = {} if engine.is_pooling else dict(config.get_diff_sampling_param())
        trusts = Parameters(spec.config).flag(TRUST_REQUESTS, False)
        vocabulary = int(config.get_vocab_size())
        self._prompts = Prompts(spec.config.name, engine.llm.tokenizer, vocabulary, trusts_templates=trusts)
        self._token_bytes = TokenBytes(engine.llm.tokenizer)
        self._requests = OpenRequests(engine.llm, host, self._explain)
        reports.after_step = self._requests.take_outputs
        self._numbers = itertools.count()
        self._asleep = False
        self._unloads: set[asyncio.Future[None]] = set()
        self._closing = threading.Event()
        self._watch = engine.loop.submit(self._watch_engine())

    @property
    def longest(self) -> int:
        """Tokens of a prompt and its answer together, at most."""
        return self._engine.longest

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        for index, request in enumerate(requests):
            try:
                if self._engine.is_pooling:
                    self._begin_embedding(request, index, responder)
                else:
                    self._begin(request, index, responder)
            except ServingError as error:
                responder.send(index, InferResponse(request.model_name, id=request.id, error=error))

    def manage(self, command: Command) -> None:
        """Carry out a command of the server, and return when it is done. Raises ServingError."""
        try:
            self._engine.loop.run(self._manage(command))
        except Exception as error:
            raise self._explain(error) from error

    def close(self) -> None:
        """Let running requests end, and end the engine."""
        self._closing.set()
        self._prompts.close()
        self._engine.loop.run(self._end_requests())
        self._watch.cancel()
        self._engine.close()

    def _begin(self, request: InferRequest, index: int, responder: Responder) -> None:
        parsed = GenerationRequest.read(request, decoupled=self._decoupled, defaults=self._defaults)
        if parsed.sampling.priority and not self._engine.has_priorities:
            raise invalid(
                f"sampling_parameters: 'priority' is {parsed.sampling.priority}, and the engine runs requests in the "
                'order of their arrival: start it with "scheduling_policy": "priority"'
            )
        builder = ResponseBuilder(parsed, str(self._spec.version))
        stream = GenerationStream(parsed, builder, self._token_bytes, responder, index)
        prepare = partial(self._prepare, parsed, builder, stream)
        self._prompts.prepare(parsed.prompt, prepare, partial(self._refuse, stream), stream.is_cancelled)

    def _prepare(
        self, request: GenerationRequest, builder: ResponseBuilder, stream: GenerationStream, input_ids: list[int]
    ) -> None:
        """Hand a request to the engine's loop. Raises any exception for one that does not fit."""
        engine, sampling = self._engine, request.sampling
        ids = truncated(input_ids, sampling, engine.longest)
        arguments = sampling_arguments(sampling, len(ids), engine.longest, self._defaults.get("max_tokens"))
        parameters = sampling_params(engine.library, arguments, sampling.structured_outputs, request.stream)
        if request.repeats_prompt:
            builder.prompt = self._prompts.text(request.prompt, ids)
        stream.duplicate_choices(duplicates(sampling, arguments))
        prompt = engine.library.tokens_input(ids, cache_salt=sampling.cache_salt)
        adapter = None if sampling.lora_name is None else self._adapters.acquire(sampling.lora_name)
        options = {"lora_request": adapter, "priority": sampling.priority}
        add = partial(engine.llm.add_request, prompt=prompt, params=parameters, **options)
        engine.loop.post(
            self._start, stream, add, _nothing if adapter is None else partial(self._adapters.release, adapter)
        )

    def _begin_embedding(self, request: InferRequest, index: int, responder: Responder) -> None:
        parsed = EmbeddingRequest.read(request)
        stream = EmbeddingStream(parsed, request, str(self._spec.version), responder, index)
        prepare = partial(self._prepare_embedding, parsed, stream)
        self._prompts.prepare(parsed.prompt, prepare, partial(self._refuse, stream), stream.is_cancelled)

    def _prepare_embedding(self, request: EmbeddingRequest, stream: EmbeddingStream, ids: list[int]) -> None:
        engine = self._engine
        check_length(len(ids), engine.longest + 1)
        parameters = engine.library.PoolingParams(task="embed", dimensions=request.dimensions)
        prompt = engine.library.tokens_input(ids)
        engine.loop.post(self._start, stream, partial(engine.llm.add_request, prompt=prompt, params=parameters))

    def _refuse(self, stream: Stream, error: Exception) -> None:
        stream.fail(self._explain(error))

    def _start(self, stream: Stream, add: Callable[..., Any], ended: Callable[[], None] = _nothing) -> None:
        """Start a request on the engine's loop, and call `ended` when it is over."""
        try:
            if self._asleep:
                raise self._asleep_error()
            adding = add(request_id=f"{self._spec.name}-{next(self._numbers)}")
        except Exception as error:
            ended()
            stream.fail(self._explain(error))
            return
        self._requests.begin(stream, adding, ended)

    async def _manage(self, command: Command) -> None:
        if isinstance(command, Sleep):
            await self._sleep()
        elif isinstance(command, Wake):
            await self._engine.llm.wake_up()
            self._note_sleep(False)
        elif self._asleep:
            raise self._asleep_error()
        elif isinstance(command, AddAdapter):
            await self._add_adapter(command)
        elif isinstance(command, RemoveAdapter):
            self._begin_unload(self._adapters.remove(command.name))

    async def _sleep(self) -> None:
        """Let what unloads an adapter end, and the engine fall asleep. Raises ServingError where it cannot."""
        self._engine.check_sleep(self._spec.name)
        await asyncio.gather(*self._unloads)
        await self._engine.llm.sleep(level=SLEEP_LEVEL, mode="wait")
        self._note_sleep(True)

    def _asleep_error(self) -> ServingError:
        return unavailable(f"model instance '{self._spec.name}' is asleep")

    def _note_sleep(self, asleep: bool) -> None:
        self._asleep = asleep
        self._reports.note_sleep(asleep)
        self._reports.send(self._host)

    async def _add_adapter(self, command: AddAdapter) -> None:
        if not self._engine.arguments.get("enable_lora"):
            raise unsupported(
                f"model '{self._spec.config.name}' was opened without LoRA: load it with an adapter or the parameter "
                "enable_lora"
            )
        request = await asyncio.to_thread(self._adapters.new, command.name, command.path)
        try:
            await self._engine.llm.add_lora(request)
        except self._engine.library.EngineDeadError:
            raise
        except Exception as error:
            about = f"adapter '{command.name}' of '{command.path}' does not fit model '{self._spec.config.name}'"
            raise invalid(f"{about}: {error}") from error
        before = self._adapters.put(request)
        if before is not None:
            self._begin_unload(before)

    def _begin_unload(self, request: Any) -> None:
        """Unload an adapter that no new request names, once those that run with it have ended.

        No command waits for that, since a request may run for as long as it likes.
        """
        self._unloads.add(task := asyncio.ensure_future(self._unload_adapter(request)))
        task.add_done_callback(self._unloads.discard)

    async def _unload_adapter(self, request: Any) -> None:
        while self._adapters.in_use(request):  # noqa: ASYNC110  (requests may end on any thread)
            await asyncio.sleep(UNLOAD_SECONDS)
        try:
            await self._engine.llm.remove_lora(request.lora_int_id)
        except Exception as error:
            about = f"model instance '{self._spec.name}': adapter '{request.lora_name}' cannot be unloaded"
            self._host.log("warning", f"{about}: {self._explain(error).message}")

    async def _watch_engine(self) -> None:
        """Report the engine's state, and notice an engine that dies while nothing runs."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            if self._engine.llm.errored and not self._closing.is_set():
                self._lose("it has ended")
            self._reports.send(self._host)

    async def _end_requests(self) -> None:
        try:
            await asyncio.wait_for(self._requests.wait_idle(), CLOSE_SECONDS)
        except TimeoutError:
            self._requests.fail_all(unavailable(f"model instance '{self._spec.name}' was unloaded"))
        for unload in self._unloads:
            unload.cancel()

    def _explain(self, error: Exception) -> ServingError:
        if isinstance(error, self._engine.library.EngineDeadError):
            return self._lose(str(error))
        return serving_error(self._engine.library, self._spec.name, error)

    def _lose(self, reason: str) -> ServingError:
        """Have the server start the engine again, and its open requests end with an error that says so."""
        text = f"model instance '{self._spec.name}': its engine died: {reason}"
        error = internal(with_cause(text, self._engine.output.cause()))
        if not self._closing.is_set():
            self._host.lost(error)
        return error


def open_instance(spec: InstanceSpec, host: Host) -> VllmInstance:
    """Start the engine. Raises ServingError."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible_gpus(spec, parts(engine_arguments(spec.config, spec.version_dir)), shown)
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus  # before vLLM looks at the devices
    library = import_library()
    reports = EngineReports(most_adapters(spec))
    instance = VllmInstance(spec, host, start_engine(spec, host, library, reports), reports)
    about = f"model instance '{spec.name}' runs on vLLM {library.version}"
    host.log("info", f"{about}; a prompt and its answer have up to {instance.longest} tokens")
    return instance
