"""Doubles for the two ports a backend sees, and a folder to load a model from."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import (
    ActOnMetric,
    Answer,
    EngineState,
    Infer,
    InstanceSpec,
    IsModelReady,
    ServerCall,
)
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse


@dataclass
class RecordingResponder:
    """Keeps what was sent, per request."""

    cancelled: set[int] = field(default_factory=set)
    paused: set[int] = field(default_factory=set)
    sent: list[tuple[int, InferResponse]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def send(self, index: int, response: InferResponse, wait: bool = True) -> None:
        assert not wait or response.final or index not in self.paused, "this would wait"
        with self._changed:
            self.sent.append((index, response))
            self._changed.notify_all()

    def is_cancelled(self, index: int) -> bool:
        return index in self.cancelled

    def is_paused(self, index: int) -> bool:
        return index in self.paused

    def of(self, index: int) -> list[InferResponse]:
        """Return the responses that request `index` was sent so far."""
        with self._changed:
            return [response for sent_to, response in self.sent if sent_to == index]

    def wait_for_final(self, *indexes: int) -> None:
        """Wait until each of these requests has its last response; fails after half a minute."""

        def answered() -> bool:
            ended = {index for index, response in self.sent if response.final}
            return ended >= set(indexes)

        with self._changed:
            assert self._changed.wait_for(answered, timeout=30), f"unanswered: {self.sent}"

    def only(self, index: int = 0) -> InferResponse:
        """Return the one response of request `index`, which must be its last."""
        (response,) = self.of(index)
        assert response.final
        return response


class FakeCall:
    """A call whose answers are known."""

    def __init__(self, answers: Sequence[Answer | ServingError]) -> None:
        self._answers = list(answers)
        self.cancelled = threading.Event()

    def __iter__(self) -> "FakeCall":
        return self

    def __next__(self) -> Answer:
        if not self._answers:
            raise StopIteration
        answer = self._answers.pop(0)
        if isinstance(answer, ServingError):
            raise answer
        return answer

    def cancel(self) -> None:
        self.cancelled.set()

    def when_ready(self, notify: Callable[[], None]) -> None:
        threading.Thread(target=notify).start()


@dataclass
class FakeHost:
    """A server of which every call is kept."""

    answers: list[InferResponse] | ServingError = field(default_factory=list)
    inferred: list[InferRequest] = field(default_factory=list)
    calls: list[ServerCall] = field(default_factory=list)
    open: list[FakeCall] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    states: list[EngineState] = field(default_factory=list)
    reported: "SimpleQueue[EngineState]" = field(default_factory=SimpleQueue)
    losses: "SimpleQueue[ServingError]" = field(default_factory=SimpleQueue)
    refusal: ServingError | None = None
    decoupled: bool | None = None

    def call(self, what: Infer | ServerCall) -> FakeCall:
        if isinstance(what, Infer):
            self.inferred.append(what.request)
            self.decoupled = what.decoupled
            self.open.append(FakeCall([self.answers] if isinstance(self.answers, ServingError) else self.answers))
            return self.open[-1]
        self.calls.append(what)
        answers = {IsModelReady: True, ActOnMetric: 7.0}
        return FakeCall([self.refusal or answers.get(type(what))])

    def log(self, level: str, message: str) -> None:
        self.lines.append((level, message))

    def report(self, state: EngineState) -> None:
        self.states.append(state)
        self.reported.put(state)

    def lost(self, error: ServingError) -> None:
        self.losses.put(error)

    def corked(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class ModelFolder:
    """`<root>/<name>/1` and a configuration."""

    model_dir: Path
    config: ModelConfig

    @property
    def version_dir(self) -> Path:
        return self.model_dir / "1"

    def spec(self, config: ModelConfig | None = None, kind: str = "KIND_CPU") -> InstanceSpec:
        """Return the spec that the server would send the first instance."""
        name = f"{self.config.name}_0"
        return InstanceSpec(config or self.config, 1, self.model_dir, self.version_dir, name, kind, 0)


@pytest.fixture
def responder() -> RecordingResponder:
    return RecordingResponder()


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture(scope="session")
def shared_host() -> FakeHost:
    """Return a server for instances that several tests share."""
    return FakeHost()


@pytest.fixture(scope="session")
def folder_in() -> Callable[[Path, str], ModelFolder]:
    """Return a function that makes a model's folders below a root, from its config.pbtxt."""

    def make(root: Path, pbtxt: str) -> ModelFolder:
        config = text_format.Parse(pbtxt, ModelConfig())
        folder = ModelFolder(root / config.name, config)
        folder.version_dir.mkdir(parents=True)
        return folder

    return make


@pytest.fixture
def model_folder(tmp_path: Path, folder_in: Callable[[Path, str], ModelFolder]) -> Callable[[str], ModelFolder]:
    """Return a function that makes a model's folders in the test's own folder."""
    return lambda pbtxt: folder_in(tmp_path, pbtxt)
