"""Errors of a device are recognized by the exceptions of frameworks, whatever the words of a model are."""

from collections.abc import Callable

import pytest
import torch
from onnxruntime.capi import onnxruntime_pybind11_state as onnx_runtime

from argosy_runtime.backends.python.pb_utils.errors import TritonModelException
from argosy_runtime.errors import internal, unavailable
from argosy_runtime.failures.translation import device_error, explained, failure

WORDS = "CUDA error: unknown error"


def raised(act: Callable[[], object]) -> BaseException:
    """Return what it raises."""
    try:
        act()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def throw(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """Return the exception, as a model raises it."""

    def act() -> None:
        raise error from cause

    return raised(act)


def in_module(name: str) -> BaseException:
    """Return a RuntimeError with the words of CUDA that a function of this module raised."""
    scope: dict[str, Callable[[], object]] = {"__name__": name}  # type: ignore[dict-item]
    exec(f"def act(): raise RuntimeError({WORDS!r})", scope)
    return raised(scope["act"])


@pytest.mark.parametrize(
    "fault",
    [
        throw(torch.AcceleratorError(f"{WORDS}\nSearch for `cudaErrorUnknown'")),
        throw(onnx_runtime.Fail(f"[ONNXRuntimeError] : 1 : FAIL : {WORDS}")),
        throw(onnx_runtime.RuntimeException(WORDS)),
        throw(ValueError("it cannot"), torch.AcceleratorError(WORDS)),
        in_module("torch.cuda"),
        in_module("argosy_runtime.backends.pytorch.running"),
        throw(internal("CUDA's cuInit failed", device_error=WORDS)),
    ],
)
def test_what_a_framework_raises(fault: BaseException) -> None:
    assert WORDS in device_error(fault)
    assert WORDS in failure("it failed", fault).device_error


@pytest.mark.parametrize(
    "fault",
    [
        throw(ValueError(WORDS)),
        throw(RuntimeError(WORDS)),
        throw(TritonModelException(WORDS)),
        throw(unavailable(WORDS)),
        throw(torch.AcceleratorError("CUDA error: out of memory")),
        throw(torch.jit.Error(WORDS)),
        throw(onnx_runtime.InvalidArgument(WORDS)),
        in_module("torchless"),
        in_module("model"),
        raised(lambda: torch.device(WORDS)),
    ],
)
def test_what_a_model_says_for_itself(fault: BaseException) -> None:
    assert not device_error(fault)


def test_an_exception_raised_while_a_frameworks_is_handled_is_of_it() -> None:
    def act() -> None:
        try:
            raise torch.AcceleratorError(WORDS)
        except RuntimeError:
            raise ValueError("it cannot")  # noqa: B904

    assert device_error(raised(act)) == WORDS


def test_a_backends_error_is_explained_by_its_cause() -> None:
    error = throw(internal("it failed"), onnx_runtime.Fail(WORDS))
    assert explained(error).device_error == WORDS  # type: ignore[arg-type]
