"""A data plane with language models that say what they are told to, by the contract of language models.

Their tokenizer is as unkind as byte-level ones are: a token is one or two bytes, so that characters are torn.
"""

import asyncio
import itertools
import threading
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from tritonclient.grpc import model_config_pb2 as mc
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import FailureReason, ServingError, internal, invalid, not_found, unavailable
from argosy_runtime.language import Chat, Delta, GenerationRequest, LogprobEntry, ResponseBuilder, Tokens
from argosy_runtime.language.tensors import completed
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.telemetry.log_settings import LogSettings, Setting

CONTEXT = 4096
FAILURE = "CUDA out of memory"
"""Why `broken` could not be loaded."""
EOS = 1000
"""A token that is not part of the text."""


@dataclass
class Script:
    """What the models do. `breaks_after`: tokens, then the engine dies. `holds`: nothing follows the first token.
    `endless`: a stream repeats the text until it is cancelled.
    """

    text: str = "Grüße aus 世界 🙂"
    breaks_after: int | None = None
    refusal: ServingError | None = None
    holds: bool = False
    endless: bool = False
    seen: list[GenerationRequest] = field(default_factory=list)


class Running:
    """A request being answered."""

    def __init__(self, plane: "LanguagePlane", task: "asyncio.Task[None]") -> None:
        self._paused, self._cancelled = plane.paused, plane.cancelled  # of the test that made the request
        self._task = task
        self.going = asyncio.Event()
        self.going.set()

    def cancel(self) -> None:
        self._task.cancel()
        self._cancelled.set()

    def pause(self) -> None:
        self.going.clear()
        self._paused.set()

    def resume(self) -> None:
        self.going.set()


def tokens_of(text: str) -> list[bytes]:
    """Return the tokens of a text: pairs of bytes."""
    raw = text.encode()
    return [raw[at : at + 2] for at in range(0, len(raw), 2)]


def token_id(token: bytes) -> int:
    return token[0] if len(token) == 1 else 256 + token[0] * 256 + token[1]


def token_of(number: int) -> bytes:
    return bytes([number]) if number < 256 else bytes(divmod(number - 256, 256))


def _language(name: str, decoupled: bool = True, base: str = "") -> mc.ModelConfig:
    config = mc.ModelConfig(name=name, backend="vllm")
    config.model_transaction_policy.decoupled = decoupled
    if base:
        config.backend = "adapter"
        config.parameters["base"].string_value = base
    return completed(config)


class LanguagePlane:
    """Models: `talker` and its adapter `pirate`, `whole` that does not stream, `number` that is no language model,
    `asleep` that is unavailable, `busy` whose queue is full, `broken` whose load failed, `gone` that was unloaded,
    `untouched` that was never loaded.
    """

    def __init__(self) -> None:
        self.talker = _language("talker")
        self.configs = {
            "talker": self.talker,
            "pirate": _language("pirate", base="talker"),
            "whole": _language("whole", decoupled=False),
            "number": mc.ModelConfig(name="number", backend="python"),
            "busy": _language("busy"),
        }
        self.reset()

    language = staticmethod(_language)

    def reset(self) -> None:
        """Forget everything seen."""
        if "talker" in self.configs:
            self.configs["talker"] = self.talker
        self.script = Script()
        self.is_ready = True
        self.unavailable = {"broken": FAILURE, "gone": "unloaded"}
        self.requests: list[InferRequest] = []
        self.paused = threading.Event()
        self.cancelled = threading.Event()
        self.stepped = 0
        self._index: pb.RepositoryIndexResponse | None = None
        self._log = LogSettings()

    def pin(self, requests: Sequence[InferRequest]) -> None:
        """Do nothing: its models have one version."""

    def live(self) -> bool:
        return True

    def ready(self) -> bool:
        return self.is_ready

    def model_ready(self, name: str, version: str) -> bool:
        return name in self.configs

    def readiness_check(self, name: str = "", version: str = "") -> None:
        """Return None: its models do not check themselves."""

    def server_metadata(self) -> pb.ServerMetadataResponse:
        return pb.ServerMetadataResponse(name="argosy")

    def model_metadata(self, name: str, version: str) -> pb.ModelMetadataResponse:
        return pb.ModelMetadataResponse(name=name)

    async def demand(self, name: str, version: str) -> None:
        """Do nothing: its models are loaded."""

    def model_config(self, name: str, version: str) -> mc.ModelConfig:
        if name == "asleep":
            raise unavailable("Request for model: 'asleep' is not at ready state")
        if name not in self.configs:
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return self.configs[name]

    def statistics(self, name: str, version: str) -> pb.ModelStatisticsResponse:
        return pb.ModelStatisticsResponse()

    def labels(self, name: str, version: str, output: str) -> Sequence[str]:
        return ()

    async def index(self, ready_only: bool) -> pb.RepositoryIndexResponse:
        index = pb.RepositoryIndexResponse()
        for name in self.configs:
            index.models.add(name=name, version="1", state="READY")
        if not ready_only:
            index.models.add(name="coming", version="1", state="LOADING")
            for name, reason in self.unavailable.items():
                index.models.add(name=name, version="1", state="UNAVAILABLE", reason=reason)
            index.models.add(name="untouched")
        return index

    async def divide(self, name: str) -> None:
        """Do nothing: its models have one version."""

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes]) -> None:
        raise NotImplementedError

    async def unload(self, name: str, unload_dependents: bool) -> None:
        raise NotImplementedError

    def log_settings(self) -> dict[str, Setting]:
        return self._log.values()

    def change_log_settings(self, changes: Mapping[str, Setting]) -> None:
        self._log.change(changes)

    async def metrics(self) -> AsyncIterator[bytes]:
        yield b""

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        self.requests.append(request)
        if request.model_name == "busy":
            raise unavailable("Exceeds maximum queue size", FailureReason.REJECTED)
        decoupled = self.model_config(request.model_name, "").model_transaction_policy.decoupled
        running = Running.__new__(Running)
        task = asyncio.get_running_loop().create_task(self._run(request, deliver, decoupled, running))
        running.__init__(self, task)  # type: ignore[misc]
        return running

    async def _run(self, infer: InferRequest, deliver: Deliver, decoupled: bool, running: Running) -> None:
        script = self.script
        await asyncio.sleep(0)
        try:
            request = GenerationRequest.read(infer, decoupled=decoupled)
            script.seen.append(request)
            if script.refusal is not None:
                raise script.refusal
            await _Engine(self, request, deliver, running).run()
        except ServingError as error:
            deliver(InferResponse(infer.model_name, "1", infer.id, error=error))


class _Engine:
    """Answers one request."""

    def __init__(self, plane: LanguagePlane, request: GenerationRequest, deliver: Deliver, running: Running) -> None:
        self._plane = plane
        self._script = plane.script
        self._request = request
        self._deliver = deliver
        self._running = running
        prompt = self._prompt()
        self._builder = ResponseBuilder(request, "1", prompt)
        self._builder.num_input_tokens = len(tokens_of(prompt))
        if request.sampling.prompt_logprobs is not None:
            entries = [self._position(token, request.sampling.prompt_logprobs) for token in tokens_of(prompt)]
            self._builder.prompt_logprobs = [None, *entries[1:]]
        if self._builder.num_input_tokens > CONTEXT:
            raise invalid(
                f"This model's maximum context length is {CONTEXT} tokens, the prompt has "
                f"{self._builder.num_input_tokens}"
            )

    def _prompt(self) -> str:
        prompt = self._request.prompt
        if isinstance(prompt, Chat):
            return "".join(f"<{message['role']}>{message['content']}" for message in prompt.messages)
        return b"".join(map(token_of, prompt.ids)).decode() if isinstance(prompt, Tokens) else prompt

    async def run(self) -> None:
        choices = [self._deltas(index) for index in range(self._request.sampling.n)]
        if not self._request.stream:
            if self._script.holds:
                await asyncio.Event().wait()
            self._deliver(self._builder.response([_merged(deltas) for deltas in choices], final=True))
            return
        steps = [delta for at in range(max(map(len, choices))) for deltas in choices for delta in deltas[at : at + 1]]
        endless = self._script.endless
        for at, delta in enumerate(itertools.cycle(steps[:-1]) if endless else steps):
            await self._running.going.wait()
            if self._script.breaks_after is not None and at >= self._script.breaks_after:
                raise internal("the engine died: EngineDeadError")
            if self._script.holds and at:
                await asyncio.Event().wait()
            self._deliver(self._builder.response([delta], final=not endless and at == len(steps) - 1))
            self._plane.stepped += 1
            await asyncio.sleep(0)

    def _deltas(self, index: int) -> list[Delta]:
        """Return the deltas of a choice: one for each token."""
        sampling = self._request.sampling
        text, stop_reason = self._script.text, None
        for stop in sampling.stops:
            before, separator, _ = text.partition(stop)
            if separator:
                text, stop_reason = before, stop
        tokens = tokens_of(text)
        limit = sampling.most_tokens
        cut = limit is not None and limit <= len(tokens)
        shown = tokens[:limit] if cut else tokens
        deltas = []
        decoder = getincrementaldecoder("utf-8")()
        for token in shown:
            delta = Delta(index, decoder.decode(token), [token_id(token)])
            if sampling.logprobs is not None:
                delta.logprobs = [self._position(token, sampling.logprobs)]
            deltas.append(delta)
        if not cut or not deltas:
            deltas.append(Delta(index, "", [] if cut else [EOS]))
            if sampling.logprobs is not None and not cut:
                deltas[-1].logprobs = [{EOS: LogprobEntry(-0.25, 1, "</s>", list(b"</s>"))}]
        deltas[-1].finish_reason = "length" if cut else "stop"
        deltas[-1].stop_reason = stop_reason
        return deltas

    def _position(self, token: bytes, most: int) -> dict[int, LogprobEntry]:
        """Return the token, which is the second likeliest, and `most` candidates by rank."""
        entries = {token_id(token): _entry(token, -1.0, 2)}
        for rank in range(1, most + 1):
            if rank != 2:
                other = bytes([0xC0 + rank])
                entries[token_id(other)] = _entry(other, float("-inf") if rank > 3 else -0.5 * rank, rank)
        return entries


def _entry(token: bytes, logprob: float, rank: int) -> LogprobEntry:
    return LogprobEntry(logprob, rank, token.decode(errors="replace"), list(token))


def _merged(deltas: list[Delta]) -> Delta:
    last = deltas[-1]
    logprobs = (
        [position for delta in deltas for position in delta.logprobs or ()]
        if last.logprobs is not None or any(delta.logprobs for delta in deltas)
        else None
    )
    return Delta(
        last.index,
        "".join(delta.text for delta in deltas),
        [token for delta in deltas for token in delta.token_ids],
        last.finish_reason,
        last.stop_reason,
        logprobs=logprobs,
    )
