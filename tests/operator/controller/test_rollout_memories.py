"""What the operator remembers of rollouts from one round to the next."""

from datetime import UTC, datetime

from tests.operator.planning.rolling import MODEL, model

from argosy.controller.resources.store import Store
from argosy.controller.rounds.rollouts import RolloutMemories
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.rollout.state import Phase, RolloutState


def test_a_resource_that_is_deleted_and_created_again_has_nothing_of_the_former_one() -> None:
    memories = RolloutMemories(Store())
    one, other = (model(1).model_copy(update={"metadata": model(1).metadata.model_copy(update={"uid": uid})})
                  for uid in ("1", "2"))  # fmt: skip
    assert memories.of([one]) == {MODEL: RolloutMemory()}
    memories._of[MODEL] = recorded = RolloutMemory(RolloutState(Phase.STABLE, datetime(2026, 1, 1, tzinfo=UTC)))
    assert memories.of([one])[MODEL] is recorded
    assert memories.of([other]) == {MODEL: RolloutMemory()}
