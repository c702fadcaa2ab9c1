"""Messages of the server and a model's process outside batches: loading, ending, the model's own calls."""

from pathlib import Path
from typing import Final

import msgspec
from google.protobuf.message import DecodeError
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import ANYWHERE, HostPolicy, InstanceSpec, ServerCall
from argosy_runtime.backends.engines.commands import Command

from .frames import CONTROL, Frame, FrameError, FrameWriter
from .packing import ErrorBody


class SpecBody(msgspec.Struct):
    """An `InstanceSpec`."""

    config: bytes
    version: int
    model_dir: str
    version_dir: str
    name: str
    kind: str
    device_id: int
    host_policy: HostPolicy = ANYWHERE

    @classmethod
    def of(cls, spec: InstanceSpec) -> "SpecBody":
        """Return the message of a spec."""
        folders = (str(spec.model_dir), str(spec.version_dir))
        config = spec.config.SerializeToString()
        return cls(config, spec.version, *folders, spec.name, spec.kind, spec.device_id, spec.host_policy)

    def spec(self) -> InstanceSpec:
        """Return the spec of a message."""
        folders = (Path(self.model_dir), Path(self.version_dir))
        config = ModelConfig.FromString(self.config)
        return InstanceSpec(
            config,
            self.version,
            *folders,
            name=self.name,
            kind=self.kind,
            device_id=self.device_id,
            host_policy=self.host_policy,
        )


class Load(msgspec.Struct, tag=True):
    """To the process: load this; answered by `Loaded`."""

    spec: SpecBody


class Complete(msgspec.Struct, tag=True):
    """To the process: have the backend complete this config; answered by `Completed`."""

    spec: SpecBody


class Stop(msgspec.Struct, tag=True):
    """To the process: release the model, and end."""


class Manage(msgspec.Struct, tag=True):
    """To the process: a command to the model; answered by `Managed`."""

    number: int
    command: Command


class Reply(msgspec.Struct, tag=True):
    """To the process: the result of a call other than an inference, or the refusal of an inference."""

    call: int
    value: bool | float | None = None
    error: ErrorBody | None = None


class Loaded(msgspec.Struct, tag=True):
    """From the process: the model is loaded, or the error. `checks_readiness`: it says itself whether it is ready."""

    error: ErrorBody | None = None
    checks_readiness: bool = False


class Completed(msgspec.Struct, tag=True):
    """From the process: the completed config, or the error."""

    config: bytes = b""
    error: ErrorBody | None = None

    def completed(self) -> ModelConfig:
        """Return the config. Raises FrameError."""
        try:
            return ModelConfig.FromString(self.config)
        except DecodeError as error:
            raise FrameError(f"a completed config is none: {error}") from error


class Managed(msgspec.Struct, tag=True):
    """From the process: a command is carried out, or the error."""

    number: int
    error: ErrorBody | None = None


class Lost(msgspec.Struct, tag=True):
    """From the process: the model has failed, and the process ends with it."""

    error: ErrorBody


class Called(msgspec.Struct, tag=True):
    """From the process: a call of the model; answered by `Reply`, unless `call` is `UNANSWERED`."""

    call: int
    what: ServerCall


class CallChanged(msgspec.Struct, tag=True):
    """From the process: cancel, pause or resume an inference of the model."""

    call: int
    how: str


UNANSWERED: Final = -1

ToProcess = Load | Complete | Stop | Manage | Reply
FromProcess = Loaded | Completed | Managed | Lost | Called | CallChanged

_encoder: Final = msgspec.msgpack.Encoder()
_to_process: Final[msgspec.msgpack.Decoder[ToProcess]] = msgspec.msgpack.Decoder(ToProcess)
_from_process: Final[msgspec.msgpack.Decoder[FromProcess]] = msgspec.msgpack.Decoder(FromProcess)


def control_frame(message: ToProcess | FromProcess) -> list[bytes | memoryview]:
    """Return the frame of a message."""
    frame = FrameWriter()
    frame.add_text(_encoder.encode(message))
    return frame.chunks(CONTROL, 0)


def read_to_process(frame: Frame) -> ToProcess:
    """Return the message in a CONTROL frame of the server."""
    return _to_process.decode(frame.text())


def read_from_process(frame: Frame) -> FromProcess:
    """Return the message in a CONTROL frame of a model's process. Raises FrameError."""
    try:
        return _from_process.decode(frame.text())
    except msgspec.DecodeError as error:
        raise FrameError(f"a message that cannot be: {error}") from error
