"""A rollout at its first step, with a candidate that is ready."""

from datetime import UTC, datetime
from typing import Any

from argosy.api.model.rollout.rollout import Rollout
from argosy.rollout.state import Phase, Revision, RolloutInputs, RolloutState
from argosy.rollout.verdict import Outcome, Verdict

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ONE, TWO, THREE = Revision("one", 1), Revision("two", 2), Revision("three", 3)
STEPPING = RolloutState(Phase.STEPPING, NOW, stable=ONE, candidate=TWO, number=1, observed_at=NOW)
READY = RolloutInputs(TWO, NOW, candidate_ready=True, candidate_loaded=True)
GOOD = Verdict(Outcome.SUCCESSFUL, STEPPING.analysis)


def spec(**fields: Any) -> Rollout:
    return Rollout.model_validate({"steps": [{"traffic": "5%", "pause": "5m"}, {"traffic": "50%"}], **fields})
