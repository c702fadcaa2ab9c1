"""A round does all that it can, whatever fails; virtual, without an API server."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from tests.operator.fleet.declared import gpu_node
from tests.operator.handlers.test_resources import model, pool

from argosy.api import Resource
from argosy.cluster.apply import Applied, Applier
from argosy.cluster.errors import UnreachableError
from argosy.cluster.observe import Observer
from argosy.cluster.poolview import PoolView
from argosy.fleet.facts import Refusal
from argosy.fleet.status import Status
from argosy.handlers.announce import Announcer
from argosy.handlers.resources import Resources
from argosy.handlers.rounds import Rounds
from argosy.render.workloads import Cluster, Images, KubernetesObject, object_identity

KEY = "n/p"


class Observed:
    """A cluster with one node and no server."""

    def nodes(self) -> Sequence[object]:
        return (gpu_node("a"),)

    def pools(self) -> set[str]:
        return {KEY}

    def pool(self, key: str) -> PoolView:
        return PoolView()

    def foreign_gpus(self) -> dict[str, int]:
        return {}


@dataclass
class Writes:
    """What was written; `applied` is what becomes of the objects."""

    applied: Applied = field(default_factory=Applied)
    objects: set[str] = field(default_factory=set)
    statuses: dict[str, Status] = field(default_factory=dict)

    async def apply(self, key: str, objects: Sequence[KubernetesObject], *_: Any) -> Applied:
        self.objects = {object_identity(each) for each in objects}
        return self.applied

    async def status(self, resource: Resource, status: Status) -> bool:
        self.statuses[resource.identity] = status
        return True

    async def changed(self, *_: Any) -> None:
        """An Event, which nobody reads here."""


def rounds(writes: Writes) -> Rounds:
    """Rounds over a pool with one model."""
    resources = Resources()
    for body in (pool(), model()):
        resources.put(body)
    observed, applier, announcer = cast(Observer, Observed()), cast(Applier, writes), cast(Announcer, writes)
    return Rounds(resources, observed, applier, announcer, Images("a", "b", "c"), Cluster("policy/v1"))


async def test_statuses_are_written_though_an_object_could_not_be_applied() -> None:
    writes = Writes(Applied(failure=UnreachableError(500, "InternalError", "try later")))
    with pytest.raises(UnreachableError, match="try later"):
        await rounds(writes).once(KEY)
    assert "Deployment n/p-0" in writes.objects
    assert writes.statuses.keys() == {"ServingPool n/p", "InferenceModel n/m"}


async def test_what_is_refused_is_told_in_the_next_round_which_comes_at_once() -> None:
    refusal = Refusal("InferenceModel n/m", "Service n/m", "exists and is not Argosy's")
    writes = Writes(Applied((refusal,)))
    run = rounds(writes)
    first = await run.once(KEY)
    assert first is not None
    await run.once(KEY)
    ready = writes.statuses["InferenceModel n/m"].conditions[0]
    assert (ready.reason.value, "Service n/m" in ready.message) == ("NotApplied", True)
