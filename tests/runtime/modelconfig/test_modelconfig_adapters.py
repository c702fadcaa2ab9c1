"""The memory that engines reserve for adapters."""

import pytest

from argosy_runtime.modelconfig.parameters.adapters import reserved_rank


@pytest.mark.parametrize(
    ("rank", "reserved"), [(0, 16), (1, 16), (8, 16), (16, 16), (17, 32), (40, 64), (300, 320), (512, 512), (600, 600)]
)
def test_a_rank_is_reserved_in_steps_that_vllm_takes(rank, reserved):
    assert reserved_rank(rank) == reserved
