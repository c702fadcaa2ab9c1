"""A backend that this server does not have: Triton's words, and the nearest way."""

import pytest

from argosy_runtime import backends
from argosy_runtime.backends.missing import NEAREST_WAYS
from argosy_runtime.errors import ErrorKind, ServingError

TRITONS = "unable to find backend library for backend '{}', try specifying runtime on the model configuration."


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("tensorflow", "python -m tf2onnx.convert --saved-model"),
        ("openvino", "accelerator 'openvino'"),
        ("dali", "nvidia-dali"),
        ("nope", ""),
    ],
)
def test_the_message(name: str, way: str) -> None:
    with pytest.raises(ServingError) as caught:
        backends.resolve(name)
    assert caught.value.kind is ErrorKind.INVALID_ARG
    assert caught.value.message.startswith(TRITONS.format(name))
    assert way in caught.value.message
    if not way:
        assert caught.value.message == TRITONS.format(name)


def test_no_backend_is_there_and_missing() -> None:
    assert not NEAREST_WAYS.keys() & set(backends.names())
