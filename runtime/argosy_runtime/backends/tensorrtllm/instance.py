"""One language model behind TensorRT-LLM's engine."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.engines.commands import AddAdapter, Command, RemoveAdapter
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, unsupported
from argosy_runtime.failures.translation import failure
from argosy_runtime.language import GenerationRequest, ResponseBuilder
from argosy_runtime.language.chat import TRUST_REQUESTS
from argosy_runtime.language.prompts import Prompts
from argosy_runtime.messages import InferRequest, InferResponse

from .answers import Answer
from .choices import Step
from .engine import Engine, Work
from .opening import Opened, opened
from .sampling import Generation, generation


class GenerationInstance:
    """A loaded model. `execute` only queues: answers come from the engine."""

    def __init__(self, spec: InstanceSpec, model: Opened, engine: Engine) -> None:
        self._spec = spec
        self._opened = model
        self._engine = engine
        trusts, vocabulary = Parameters(spec.config).flag(TRUST_REQUESTS, False), model.abilities.vocabulary
        self._prompts = Prompts(spec.config.name, model.tokenizer, vocabulary, trusts_templates=trusts)
        self._decoupled = spec.config.model_transaction_policy.decoupled
        self._excludes_prompt = Parameters(spec.config).flag("exclude_input_in_output", False)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        for index, request in enumerate(requests):
            fail = partial(self._refuse, request, index, responder)
            try:
                self._begin(request, index, responder, fail)
            except Exception as error:
                fail(error)

    def manage(self, command: Command) -> None:
        """Add or remove an adapter. Raises ServingError; TensorRT-LLM sleeps only where Ray starts its processes."""
        name = self._spec.config.name
        if isinstance(command, AddAdapter):
            if not self._opened.takes_adapters:
                raise unsupported(
                    f"model '{name}' was opened without LoRA: load it with an adapter or the parameter enable_lora, or "
                    "build its engine with options.lora_plugin"
                )
            self._opened.adapters.put(command.name, Path(command.path))
        elif isinstance(command, RemoveAdapter):
            self._opened.adapters.remove(command.name)
        else:
            raise unsupported(f"model '{name}': backend 'tensorrtllm' cannot sleep; unload the model")

    def close(self) -> None:
        """Stop the engine and release the model."""
        self._prompts.close()
        self._engine.close()

    def _begin(
        self, request: InferRequest, index: int, responder: Responder, fail: Callable[[Exception], None]
    ) -> None:
        read = GenerationRequest.read(request, decoupled=self._decoupled)
        if self._excludes_prompt and "exclude_input_in_output" not in request.inputs:
            read = replace(read, repeats_prompt=False)
        self._prompts.prepare(read.prompt, partial(self._prepare, read, index, responder), fail)

    def _prepare(self, read: GenerationRequest, index: int, responder: Responder, input_ids: list[int]) -> None:
        """Let a request join the batch. Raises any exception for one that does not fit."""
        parsed = generation(read, input_ids, self._opened.abilities)
        name = read.sampling.lora_name
        shared = {} if name is None else {"lora_request": self._opened.adapter(name)}
        if read.sampling.cache_salt is not None:
            shared["cache_salt"] = read.sampling.cache_salt
        parameters = [self._opened.parameters(settings) for settings in parsed.settings]
        text = self._prompts.text(read.prompt, list(parsed.input_ids)) if read.repeats_prompt else ""
        builder = ResponseBuilder(read, str(self._spec.version), text)
        answer = Answer(parsed, responder, index, builder, self._opened.tokenizer)
        for choice, sampling_params in enumerate(parameters):
            if parsed.max_new_tokens:
                self._submit(parsed, answer, choice, {**shared, "sampling_params": sampling_params})
            else:
                answer.advance(choice, Step((), (), "length"))

    def _submit(self, parsed: Generation, answer: Answer, choice: int, arguments: dict[str, object]) -> None:
        self._engine.submit(
            Work(
                arguments={"inputs": {"prompt_token_ids": list(parsed.input_ids)}, **arguments},
                prompt_tokens=len(parsed.input_ids),
                on_step=lambda step: answer.advance(choice, step),
                on_error=answer.fail,
                is_cancelled=answer.is_cancelled,
            )
        )

    def _refuse(self, request: InferRequest, index: int, responder: Responder, error: Exception) -> None:
        """Answer a request that cannot join the batch."""
        if not isinstance(error, ServingError):
            error = failure(f"model instance '{self._spec.name}': {error}", error)
        version = str(self._spec.version)
        responder.send(index, InferResponse(request.model_name, version, request.id, error=error))


def open_instance(spec: InstanceSpec, host: Host) -> GenerationInstance:
    """Open the model, which takes minutes, and start to follow its requests. Raises ServingError."""
    model = opened(spec)
    host.log("info", f"model instance '{spec.name}' is opened by TensorRT-LLM")
    return GenerationInstance(spec, model, Engine(spec.name, model.llm, model.request_error, host))
