"""What frameworks in a model's process have reserved of GPUs: by PyTorch's account, sent whenever it changes."""

import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from argosy_runtime.backends.contract import ReservedMemory
from argosy_runtime.execution.process import reserved


def torch(initialized: bool, sizes: list[int]) -> SimpleNamespace:
    cuda = SimpleNamespace(
        is_initialized=lambda: initialized,
        device_count=lambda: len(sizes),
        memory_reserved=lambda gpu: sizes[gpu],
    )
    return SimpleNamespace(cuda=cuda)


def test_nothing_is_reported_before_a_gpu_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert reserved.reserved_memory() is None
    monkeypatch.setitem(sys.modules, "torch", torch(False, [5]))  # type: ignore[arg-type]
    assert reserved.reserved_memory() is None


def test_changes_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, sent, arrived = [5, 0], list[ReservedMemory](), threading.Event()
    monkeypatch.setitem(sys.modules, "torch", torch(True, sizes))  # type: ignore[arg-type]
    monkeypatch.setattr(reserved, "INTERVAL_S", 0.01)

    def send(what: ReservedMemory) -> None:
        sent.append(what)
        sizes[1] = 7
        arrived.set() if len(sent) == 2 else None

    begin: Callable[..., None] = reserved.begin_reports
    begin(send)
    assert arrived.wait(10)
    assert sent == [ReservedMemory({0: 5, 1: 0}), ReservedMemory({0: 5, 1: 7})]
