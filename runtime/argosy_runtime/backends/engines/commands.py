"""Commands of the server to a running model instance, other than requests."""

import msgspec

from argosy_runtime.errors import ServingError, unsupported


class Sleep(msgspec.Struct, frozen=True, tag=True):
    """Free the memory of the device, once running requests have ended. The host's memory keeps the weights."""


class Wake(msgspec.Struct, frozen=True, tag=True):
    """Take the device's memory again, and be ready for requests."""


class AddAdapter(msgspec.Struct, frozen=True, tag=True):
    """Load a LoRA adapter, or load it again from another folder, for requests that name it from now on."""

    name: str
    path: str


class RemoveAdapter(msgspec.Struct, frozen=True, tag=True):
    """Let no new request name a LoRA adapter, and unload it once those that run with it have ended.

    The command is done before that: a request may run for as long as it likes.
    """

    name: str


class CheckReadiness(msgspec.Struct, frozen=True, tag=True):
    """Have the model say itself whether it is ready. An error says why it is not."""


Command = Sleep | Wake | AddAdapter | RemoveAdapter | CheckReadiness


def not_taken(about: str, command: Command) -> ServingError:
    """Return the error of a command that a model's backend does not take."""
    if isinstance(command, AddAdapter | RemoveAdapter):
        return unsupported(f"{about} takes no adapters: use backend vllm or tensorrtllm")
    return unsupported(f"{about} cannot {type(command).__name__.lower()}")
