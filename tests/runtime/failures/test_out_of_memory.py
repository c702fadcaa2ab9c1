"""Out-of-memory errors are recognized: by real exceptions of frameworks, by words, by the kernel's counter."""

from pathlib import Path

import numpy as np
import pytest
import torch

from argosy_runtime.errors import FailureReason, internal, invalid, unavailable
from argosy_runtime.failures.out_of_memory import OomKills, is_out_of_memory, oom_kills, reason_of, with_reason

TOO_MUCH = 1 << 50


def raised(make) -> Exception:  # type: ignore[no-untyped-def]
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        make()
    return caught.value


@pytest.mark.parametrize(
    "make",
    [lambda: np.ones(TOO_MUCH), lambda: torch.empty(TOO_MUCH), lambda: bytearray(TOO_MUCH)],
    ids=["numpy", "torch", "python"],
)
def test_what_frameworks_really_raise(make):
    assert reason_of(raised(make)) is FailureReason.OUT_OF_MEMORY


def test_torchs_own_type_whatever_it_says():
    assert is_out_of_memory(torch.OutOfMemoryError("no words"))


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB",
        "CUDA error: out of memory",
        "onnx runtime error 6: Failed to allocate memory for requested buffer of size 1099511627776",
        "BFCArena::AllocateRawInternal Available memory of 123 is smaller than requested bytes of 456",
        "CUDA failure 2: out of memory ; GPU=0",
        "CUDA's cuMemAlloc_v2 failed with 2: out of memory",
        "IExecutionContext: Error Code 2: OutOfMemory (Requested size was 1024 bytes.)",
        "std::bad_alloc",
    ],
)
def test_words_of_those_that_have_no_type(words):
    assert is_out_of_memory(RuntimeError(words))
    assert with_reason(internal(words)).reason is FailureReason.OUT_OF_MEMORY


@pytest.mark.parametrize("words", ["CUDA error: an illegal memory access", "memory is fine", "index out of range", ""])
def test_other_words(words):
    assert reason_of(RuntimeError(words)) is FailureReason.BACKEND


def test_what_an_error_came_of_counts_and_circles_end():
    error = internal("the model failed")
    error.__cause__ = MemoryError()
    assert with_reason(error).reason is FailureReason.OUT_OF_MEMORY
    one, two = RuntimeError("a"), RuntimeError("b")
    one.__cause__, two.__cause__ = two, one
    assert not is_out_of_memory(one)


def test_only_a_backends_failure_is_looked_at():
    assert with_reason(invalid("std::bad_alloc is no input")).reason is FailureReason.OTHER
    assert with_reason(unavailable("MemoryError", FailureReason.REJECTED)).reason is FailureReason.REJECTED


def test_the_kernels_counter_of_both_versions(tmp_path: Path):
    nowhere = tmp_path / "none"
    assert oom_kills(tmp_path, nowhere) == 0

    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert oom_kills(tmp_path, nowhere) == 2

    (tmp_path / "memory.events").write_text("low 0\noom 4\noom_kill 3\noom_group_kill 1\n")
    assert oom_kills(tmp_path, nowhere) == 3


@pytest.mark.parametrize(
    ("line", "counter"),
    [("0::/pod/me", "pod/me/memory.events"), ("9:memory:/pod/me", "memory/pod/me/memory.oom_control")],
)
def test_where_all_cgroups_are_seen_the_own_one_counts(tmp_path: Path, line: str, counter: str):
    own = tmp_path / "own"
    own.write_text(f"3:cpuset:/\n{line}\n")
    for name, kills in (("memory.events", 7), (counter, 1)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"oom_kill {kills}\n")
    assert oom_kills(tmp_path, own) == 1


def test_as_many_deaths_are_the_kernels_as_it_reports():
    counts = iter([5, 5, 7, 7, 7])
    kills = OomKills(lambda: next(counts))
    assert [kills.one_more() for _ in range(4)] == [False, True, True, False]
