"""The process of one model instance: `python -m argosy_runtime.execution.process.worker FD`.

Its main thread loads and runs the model; a second one reads the socket, so that cancellations and the answers to the
model's own calls arrive while it computes. When the server is gone (end of file), so is this process.

Server → worker: load, complete, execute, cancel, reply, stop.
Worker → server: loaded, completed, response, done, call.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import resolve
from argosy_runtime.backends.contract import InstanceSpec, MetricFamilySpec, ModelInstance
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.execution.executing import BatchCancellations, execute, load
from argosy_runtime.messages import InferRequest, InferResponse

from .frames import FrameReader, Message, encode

_READ_SIZE = 1 << 20
_JOIN_BELOW = 1 << 16


class Channel:
    """The worker's end of the socket. Sending is safe from any thread."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def send(self, *message: Any) -> None:
        """One message. Where the server is gone there is nobody left to tell."""
        chunks = encode(message)
        small = sum(map(len, chunks)) < _JOIN_BELOW
        with self._lock:
            try:
                for chunk in [b"".join(chunks)] if small else chunks:
                    self._sock.sendall(chunk)
            except OSError:
                os._exit(1)


class Responder:
    """The responses of one run: those of a decoupled model leave at once, others with the end of the batch."""

    def __init__(self, channel: Channel, run_id: int, decoupled: bool, gone: BatchCancellations) -> None:
        self._channel = channel
        self._run_id = run_id
        self._decoupled = decoupled
        self._gone = gone
        self.held: list[tuple[int, InferResponse]] = []

    def send(self, index: int, response: InferResponse) -> None:
        """See `backends.contract.Responder`."""
        if self._decoupled:
            self._channel.send("response", self._run_id, index, response)
        else:
            self.held.append((index, response))

    def is_cancelled(self, index: int) -> bool:
        """See `backends.contract.Responder`."""
        return self._gone.holds(self._run_id, index)


class ChannelHost:
    """`backends.contract.Host` over the socket."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._ids = count()
        self._waiting: dict[int, SimpleQueue[tuple[bool, Any]]] = {}

    def _call(self, name: str, *args: Any) -> Any:
        call_id = next(self._ids)
        answer: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._waiting[call_id] = answer
        self._channel.send("call", call_id, name, args)
        good, value = answer.get()
        if not good:
            raise value
        return value

    def reply(self, call_id: int, good: bool, value: Any) -> None:
        """The server's answer to one call."""
        self._waiting.pop(call_id).put((good, value))

    def infer(self, request: InferRequest, decoupled: bool) -> Sequence[InferResponse]:
        """See `Host`."""
        responses: Sequence[InferResponse] = self._call("infer", request, decoupled)
        return responses

    def load_model(self, name: str, config: str | None, files: dict[str, bytes]) -> None:
        """See `Host`."""
        self._call("load_model", name, config, files)

    def unload_model(self, name: str, unload_dependents: bool) -> None:
        """See `Host`."""
        self._call("unload_model", name, unload_dependents)

    def is_model_ready(self, name: str, version: str) -> bool:
        """See `Host`."""
        return bool(self._call("is_model_ready", name, version))

    def log(self, level: str, message: str) -> None:
        """See `Host`. Does not wait."""
        self._channel.send("call", -1, "log", (level, message))

    def metric(self, family: MetricFamilySpec, labels: dict[str, str], action: str, value: float) -> float:
        """See `Host`."""
        return float(self._call("metric", family, labels, action, value))


class Worker:
    """The main thread's work."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._channel = Channel(sock)
        self._host = ChannelHost(self._channel)
        self._gone = BatchCancellations()
        self._work: SimpleQueue[Message] = SimpleQueue()
        self._name = ""
        self._decoupled = False

    def main(self) -> None:
        """Serve until told to stop."""
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        model: ModelInstance | None = None
        while (message := self._work.get())[0] != "stop":
            if message[0] == "load":
                model = self._load(unpack_spec(message[1]))
            elif message[0] == "complete":
                self._complete(unpack_spec(message[1]))
            elif model is not None:
                self._execute(model, message[1], message[2])
        if model is not None:
            model.close()

    def _read(self) -> None:
        frames = FrameReader()
        while data := self._receive():
            for message in frames.feed(data):
                self._dispatch(message)
        os._exit(1)

    def _receive(self) -> bytes:
        try:
            return self._sock.recv(_READ_SIZE)
        except OSError:
            return b""

    def _dispatch(self, message: Message) -> None:
        if message[0] == "cancel":
            self._gone.add(message[1], message[2])
        elif message[0] == "reply":
            self._host.reply(*message[1:])
        else:
            self._work.put(message)

    def _load(self, spec: InstanceSpec) -> ModelInstance | None:
        self._name = spec.name
        self._decoupled = spec.config.model_transaction_policy.decoupled
        try:
            model = load(spec, self._host)
        except ServingError as error:
            self._channel.send("loaded", error)
            return None
        self._channel.send("loaded", None)
        return model

    def _complete(self, spec: InstanceSpec) -> None:
        try:
            config = resolve(spec.config.backend).complete_config(spec.model_dir, spec.version_dir, spec.config)
        except ServingError as error:
            self._channel.send("completed", error, b"")
        except Exception as error:
            text = f"failed to complete the config of '{spec.config.name}': {type(error).__name__}: {error}"
            self._channel.send("completed", internal(text), b"")
        else:
            self._channel.send("completed", None, config.SerializeToString())

    def _execute(self, model: ModelInstance, run_id: int, requests: list[InferRequest]) -> None:
        responder = Responder(self._channel, run_id, self._decoupled, self._gone)
        times, error = execute(model, self._name, requests, responder)
        self._channel.send("done", run_id, responder.held, times, error)
        if not self._decoupled:
            self._gone.forget(run_id, len(requests))


def pack_spec(spec: InstanceSpec) -> tuple[Any, ...]:
    """A spec as plain values."""
    config = spec.config.SerializeToString()
    return (
        config,
        spec.version,
        str(spec.model_dir),
        str(spec.version_dir),
        spec.name,
        spec.kind,
        spec.device_id,
    )


def unpack_spec(packed: tuple[Any, ...]) -> InstanceSpec:
    """The inverse of `pack_spec`."""
    config, version, model_dir, version_dir, *rest = packed
    return InstanceSpec(ModelConfig.FromString(config), version, Path(model_dir), Path(version_dir), *rest)


def main() -> None:
    """Entry point: the socket's file descriptor is the one argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Worker(socket.socket(fileno=int(sys.argv[1]))).main()


if __name__ == "__main__":
    main()
