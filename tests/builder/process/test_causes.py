"""What a process's status and last words mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.process.causes import explained
from argosy_builder.process.tools import Liveness


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("OSError: [Errno 28] No space left on device: 'engine'", BuildFailure.DISK_FULL),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", BuildFailure.OUT_OF_GPU_MEMORY),
        ("[E] Cuda Runtime (cudaErrorMemoryAllocation)", BuildFailure.OUT_OF_GPU_MEMORY),
        ("terminate called after throwing an instance of 'std::bad_alloc'", BuildFailure.OUT_OF_MEMORY),
        ("RuntimeError: Found no NVIDIA driver on your system.", BuildFailure.BUILDER_MISSING),
    ],
)
def test_what_any_tool_may_say(line: str, failure: BuildFailure) -> None:
    error = explained("t", 1, ("before", line, "after"))

    assert error.failure is failure
    assert line.strip() in error.message


def test_the_kernels_killing_is_distinguished_from_others() -> None:
    ours = explained("t", -9, (), ran_out_of_memory=True)
    shells = explained("t", 137, (), ran_out_of_memory=True)

    assert ours.failure is shells.failure is BuildFailure.OUT_OF_MEMORY
    assert explained("t", 137, ()).failure is BuildFailure.CRASHED


@given(st.integers(-64, 255).filter(bool), st.lists(st.text(), max_size=4))
def test_every_end_has_a_reason(status: int, lines: list[str]) -> None:
    error = explained("t", status, lines)

    assert error.message.startswith("t ") or error.message.startswith("t: ")


def test_work_is_speech_or_more_than_waiting() -> None:
    live = Liveness(0.0, 100.0)
    live.computed(50.0, 0.5)
    assert live.is_over(100.0)

    live.computed(100.0, 1.5)
    assert not live.is_over(199.0)
    live.spoke(199.0)
    assert not live.is_over(298.0)
    assert live.is_over(299.0)
