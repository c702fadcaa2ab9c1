"""One language model behind TensorRT-LLM's engine."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from argosy_runtime.backends.contract import Host, InstanceSpec, Responder
from argosy_runtime.backends.engines.commands import AddAdapter, Command, RemoveAdapter
from argosy_runtime.backends.generation.answers import Answer
from argosy_runtime.backends.generation.generation import Generation
from argosy_runtime.backends.generation.requests import Requests
from argosy_runtime.errors import unsupported
from argosy_runtime.language import GenerationRequest, logprob_entry
from argosy_runtime.language.deltas import Position
from argosy_runtime.messages import InferRequest

from .engine import Engine, EngineWork
from .opening import Opened, opened
from .sampling import generation


class GenerationInstance:
    """A loaded model. `execute` only queues: answers come from the engine."""

    def __init__(self, spec: InstanceSpec, model: Opened, engine: Engine) -> None:
        self._spec = spec
        self._opened = model
        self._engine = engine
        self._requests = Requests(spec, model.tokenizer, model.abilities, _position_of)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> None:
        """Let every request join the batch; one that cannot is answered at once and hinders no other."""
        self._requests.read(requests, responder, lambda request: partial(self._join, request))

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
        self._requests.close()
        self._engine.close()

    def _join(self, request: GenerationRequest, index: int, responder: Responder, ids: list[int]) -> None:
        """Let a request join the batch. Raises any exception for one that does not fit."""
        parsed = generation(request, ids, self._opened.abilities)
        name, salt = request.sampling.lora_name, request.sampling.cache_salt
        shared = {} if name is None else {"lora_request": self._opened.adapter(name)}
        if salt is not None:
            shared["cache_salt"] = salt
        choices = [{**shared, "sampling_params": self._opened.parameters(settings)} for settings in parsed.settings]
        self._requests.answer(parsed, index, responder, partial(self._submit, parsed, choices))

    def _submit(self, parsed: Generation, choices: list[dict[str, object]], answer: Answer, choice: int) -> None:
        self._engine.submit(
            EngineWork(
                arguments={"inputs": {"prompt_token_ids": list(parsed.input_ids)}, **choices[choice]},
                prompt_tokens=len(parsed.input_ids),
                on_step=partial(answer.advance, choice),
                on_error=answer.fail,
                is_cancelled=answer.is_cancelled,
            )
        )


def _position_of(tokenizer: Any, token: int, candidates: Any, count: int) -> Position:
    """Return what is told of a token: it first, then the likeliest ones, as many as are asked for.

    `candidates` is a mapping of tokens, or the number of the token itself.
    """
    if not isinstance(candidates, Mapping):
        return {token: logprob_entry(tokenizer, token, float(candidates), None)}
    ranked = sorted(candidates.items(), key=lambda item: -item[1].logprob)
    # a token that is not among the likeliest is no likelier than the last of them
    chosen = candidates.get(token) or ranked[-1][1]
    rank = chosen.rank if token in candidates else None
    entries = {token: logprob_entry(tokenizer, token, chosen.logprob, rank)}
    for order, (other, candidate) in enumerate(ranked[:count], 1):
        entries.setdefault(other, logprob_entry(tokenizer, other, candidate.logprob, candidate.rank or order))
    return entries


def open_instance(spec: InstanceSpec, host: Host) -> GenerationInstance:
    """Open the model, which takes minutes, and start to follow its requests. Raises ServingError."""
    model = opened(spec, host)
    host.log("info", f"model instance '{spec.name}' is opened by TensorRT-LLM")
    return GenerationInstance(spec, model, Engine(spec.name, model.llm, model.request_error, host))
