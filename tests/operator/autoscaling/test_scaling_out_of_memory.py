"""Out of memory: what was lowered stays so for what failed, over a restart too, and is tried again with another."""

from dataclasses import replace

import pytest
from tests.operator.autoscaling.loads import POLICY, START, Member
from tests.operator.planning import declared

from argosy.api import InferenceModel
from argosy.api.status import InferenceModelStatus, VersionState, VersionStatus
from argosy.autoscaling.decision import Allocation, Decision, SpareCapacity
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.policy import Served
from argosy.autoscaling.pool.allocations import restored_allocation
from argosy.autoscaling.pool.grants import Grant, served
from argosy.autoscaling.pool.memory import restored
from argosy.autoscaling.pool.policies import policy_of
from argosy.status.findings.scaling import ScaledMember, scaling_status

GIB = 1 << 30
FIRST = Served((1,), "gpuMemory 4Gi", 40 * GIB)
BOUNDS = replace(POLICY.bounds, max_instances=2)


def of(what: Served, allocation: Allocation | None = None, memory: Memory | None = None) -> Member:
    """Return a member of which this is served."""
    policy = replace(POLICY, bounds=BOUNDS, served=what)
    return Member(policy, allocation or Allocation(instances=2), memory=MemberMemory(memory or Memory()))


def failing(what: Served = FIRST, versions: tuple[int, ...] = ()) -> Member:
    """Return a member that ran out of memory once, so that its batches were halved."""
    member = of(what)
    member.under(10, 5, out_of_memory=0.2, failing=versions)
    assert member.allocation.max_batch == 4
    return member


def then(member: Member, what: Served) -> Decision:
    """Return the decision once something else is served."""
    member.policy = replace(member.policy, served=what)
    return member.under(10, 30)


def test_it_stays_for_what_failed_and_says_for_what() -> None:
    member = failing()
    decision = member.under(10, 3600)
    assert decision.allocation.max_batch == 4
    assert decision.lowering is not None
    assert decision.lowering.served == FIRST
    assert "3 executions ran out of memory: batches of at most 4 rows instead of 8" in decision.lowering.why


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (replace(FIRST, versions=(2,)), "version 2 is served instead of 1"),
        (replace(FIRST, footprint="gpuMemory 8Gi"), "the footprint is gpuMemory 8Gi instead of gpuMemory 4Gi"),
        (replace(FIRST, gpu_memory=80 * GIB), "its GPUs have 80 GiB instead of 40 GiB"),
    ],
)
def test_another_version_footprint_or_larger_gpus_are_tried_again(what: Served, why: str) -> None:
    member = failing()
    decision = then(member, what)
    assert decision.allocation.max_batch is None
    assert decision.lowering is None
    assert decision.change is not None
    assert f"{why}: what ran out of memory is tried again" in decision.change.message
    assert "to batches as large as the spec has them" in decision.change.message


@pytest.mark.parametrize(
    "what",
    [replace(FIRST, versions=(1, 2)), replace(FIRST, gpu_memory=20 * GIB), Served()],
    ids=["the old version still serves", "smaller GPUs", "nothing is known"],
)
def test_while_the_same_may_fail_again_it_stays(what: Served) -> None:
    assert then(failing(), what).allocation.max_batch == 4


def test_of_two_versions_the_one_that_failed_decides() -> None:
    member = failing(replace(FIRST, versions=(1, 2)), versions=(1,))
    assert then(member, replace(FIRST, versions=(2,))).allocation.max_batch is None


def test_instances_come_back_as_batches_do() -> None:
    member = of(FIRST)
    member.policy = replace(member.policy, bounds=replace(BOUNDS, max_batch=0, max_replicas=1))
    member.under(10, 5, out_of_memory=0.2)
    assert member.allocation.instances == 1
    member.under(900, 300)
    assert member.allocation.instances == 1
    member.policy = replace(member.policy, served=replace(FIRST, versions=(2,)))
    member.under(900, 60)
    assert member.allocation.instances == 2


@pytest.mark.parametrize(("spec", "batches"), [({}, False), ({"batching": {}}, True)])
def test_batches_become_smaller_only_where_the_batcher_makes_them(spec: dict[str, object], batches: bool) -> None:
    declaration = declared.model("m", memory=4, maxBatchSize=8, scaling={"maxInstances": 2}, **spec)
    assert isinstance(declaration, InferenceModel)
    member = Member(policy_of(declaration, START), Allocation(instances=2))
    decision = member.under(10, 5, out_of_memory=0.2)
    assert (decision.allocation.max_batch, decision.allocation.instances) == ((4, 2) if batches else (None, 1))
    words = (
        "batches of at most 4 rows instead of 8"
        if batches
        else "3 executions ran out of memory: 1 instance instead of 2"
    )
    assert words in decision.message
    member.allocation = Allocation(instances=1, max_batch=1 if batches else None)
    assert member.under(10, 60, out_of_memory=0.2).lowering is not None
    assert "nothing smaller is left" in member.memory.own.lowering.why  # type: ignore[union-attr]


def test_instances_that_a_spec_asks_for_stay() -> None:
    declaration = declared.model("m", memory=4, maxBatchSize=8, scaling={"minInstances": 2})
    assert isinstance(declaration, InferenceModel)
    member = Member(policy_of(declaration, START), Allocation(instances=2))
    decision = member.under(10, 60, out_of_memory=0.2)
    assert (decision.allocation.instances, decision.allocation.max_batch) == (2, None)
    assert decision.lowering is not None
    assert decision.lowering.why == "3 executions ran out of memory with 2 instances: nothing smaller is left"


def test_failures_of_what_is_gone_count_no_more_against_what_is_new() -> None:
    member = failing()
    member.policy = replace(member.policy, served=replace(FIRST, versions=(2,)))
    assert member.under(10, 15, out_of_memory=0.2).allocation.max_batch is None
    assert member.under(10, 15, out_of_memory=0.2).allocation.max_batch == 4


def test_a_restart_forgets_neither_the_limit_nor_what_it_is_of() -> None:
    declaration = declared.model("m", memory=4, maxBatchSize=8, scaling={"maxInstances": 2})
    assert isinstance(declaration, InferenceModel)
    member = of(FIRST)
    member.under(10, 80, out_of_memory=0.2)
    before = member.decisions[-1]
    assert (before.allocation.max_batch, before.allocation.instances) == (1, 1)
    status = scaling_status(ScaledMember(declaration, before.allocation, before), 1)
    assert status.out_of_memory is not None
    assert (status.out_of_memory.versions, status.out_of_memory.max_instances) == ((1,), 1)
    again = of(FIRST, restored_allocation(status, BOUNDS), restored(status))
    after = again.under(130, 300)
    assert (after.allocation.max_batch, after.allocation.instances) == (1, 1)
    assert then(again, replace(FIRST, versions=(2,))).allocation.max_batch is None


def test_a_status_without_a_subject_is_about_what_is_served() -> None:
    member = of(FIRST, Allocation(max_batch=2))
    assert member.under(10, 60).allocation.max_batch == 2
    assert then(member, replace(FIRST, versions=(2,))).allocation.max_batch is None


def test_the_loaded_versions_and_the_plans_gpus_are_what_is_served() -> None:
    declaration = declared.model("m", memory=4)
    versions = (
        VersionStatus(version=2, state=VersionState.LOADING, replicas=1),
        VersionStatus(version=1, state=VersionState.SERVING, available_replicas=1),
    )
    status = InferenceModelStatus(versions=versions)
    assert isinstance(declaration, InferenceModel)
    assert served(declaration, status, Grant(1, 1, SpareCapacity(), 40 * GIB)) == FIRST
    assert policy_of(declaration, START).served == Served()
