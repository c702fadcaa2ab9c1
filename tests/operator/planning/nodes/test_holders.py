"""Reasons why devices are withheld: what has them, or what keeps all from them."""

import pytest

from argosy.api.values.identity import PoolKey
from argosy.planning.nodes.dra.documents import claim_name
from argosy.planning.nodes.holders import (
    MIG,
    RESOURCE_SLICE,
    build_holder,
    is_held,
    is_of_build,
    is_of_mig,
    is_of_type,
    is_requested,
    pod_holder,
    pool_holder,
)


@pytest.mark.parametrize(
    ("reason", "held", "requested", "build", "mig", "of_type"),
    [
        (pod_holder("n/mig"), True, True, False, False, False),
        (pool_holder(PoolKey("n/p")), True, True, False, False, False),
        (claim_name({"namespace": "n", "name": "c"}), True, False, False, False, False),
        (build_holder("engine-1"), True, False, True, False, False),
        (f"{MIG} (all 7 slices)", False, False, False, True, True),
        (f"{RESOURCE_SLICE} (gpu-0: no memory)", False, False, False, False, True),
        ("the taint health of its device", False, False, False, False, False),
        ("", False, False, False, False, False),
    ],
)
def test_a_reason_says_what_withholds_the_device(
    reason: str, held: bool, requested: bool, build: bool, mig: bool, of_type: bool
) -> None:
    assert (is_held(reason), is_requested(reason), is_of_build(reason)) == (held, requested, build)
    assert (is_of_mig(reason), is_of_type(reason)) == (mig, of_type)
