"""One language model behind TensorRT-LLM's engine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from argosy_runtime.backends.commands import AddAdapter, Command, RemoveAdapter
from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, invalid, unsupported
from argosy_runtime.failures.translation import failure
from argosy_runtime.language import Chat, ChatTemplate, GenerationRequest, ResponseBuilder, Tokens
from argosy_runtime.language.chat import TRUST_REQUESTS
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
        trusts = Parameters(spec.config).flag(TRUST_REQUESTS, False)
        self._template = ChatTemplate(spec.config.name, model.tokenizer, trusts_requests=trusts)
        self._decoupled = spec.config.model_transaction_policy.decoupled
        self._excludes_prompt = Parameters(spec.config).flag("exclude_input_in_output", False)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        for index, request in enumerate(requests):
            try:
                self._begin(request, index, responder)
            except ServingError as error:
                responder.send(index, self._failure(request, error))
            except Exception as error:
                problem = failure(f"model instance '{self._spec.name}': {error}", error)
                responder.send(index, self._failure(request, problem))

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
        self._engine.close()

    def _begin(self, request: InferRequest, index: int, responder: Responder) -> None:
        read = GenerationRequest.read(request, decoupled=self._decoupled)
        if self._excludes_prompt and "exclude_input_in_output" not in request.inputs:
            read = replace(read, repeats_prompt=False)
        text, input_ids = self._prompt(read)
        parsed = generation(read, input_ids, self._opened.abilities)
        name = read.sampling.lora_name
        shared = {} if name is None else {"lora_request": self._opened.adapter(name)}
        if read.sampling.cache_salt is not None:
            shared["cache_salt"] = read.sampling.cache_salt
        parameters = [self._opened.parameters(settings) for settings in parsed.settings]
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

    def _prompt(self, request: GenerationRequest) -> tuple[str, list[int]]:
        """Return the prompt as text, "" for one of tokens, and as tokens. Raises ServingError."""
        prompt, tokenizer = request.prompt, self._opened.tokenizer
        if isinstance(prompt, Tokens):
            return "", prompt.ids
        if isinstance(prompt, Chat):
            text = self._template.render(prompt)
            return text, tokenizer.encode(text, add_special_tokens=False)
        if tokenizer is None:
            raise invalid(f"model '{request.model_name}' has no tokenizer, so it takes input_ids, not text_input")
        return prompt, tokenizer.encode(prompt)

    def _failure(self, request: InferRequest, error: ServingError) -> InferResponse:
        return InferResponse(request.model_name, str(self._spec.version), request.id, error=error)


def open_instance(spec: InstanceSpec, host: Host) -> GenerationInstance:
    """Open the model, which takes minutes, and start to follow its requests. Raises ServingError."""
    model = opened(spec)
    host.log("info", f"model instance '{spec.name}' is opened by TensorRT-LLM")
    return GenerationInstance(spec, model, Engine(spec.name, model.llm, model.request_error, host))
