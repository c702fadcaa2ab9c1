"""Documents of a model in the middle of a rollout, as an API server or a state folder has them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from argosy.api.rolloutstatus import RolloutStatus
from argosy.rollout.state import Ending, FailedRevision, Phase, Record, Revision, RolloutState
from argosy.rollout.statuses import to_status
from argosy.rollout.verdict import Measurement, Outcome, Verdict

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ONE, TWO, THREE = Revision("aaa1", 1), Revision("bbb2", 2), Revision("ccc3", 3)
STEPS = {"steps": [{"traffic": "5%"}, {"traffic": "50%"}]}


def stepping(**more: Any) -> RolloutState:
    """Return the state of a rollout of version 2 at its second step."""
    values: dict[str, Any] = {
        "phase": Phase.STEPPING,
        "since": NOW - timedelta(minutes=3),
        "stable": ONE,
        "candidate": TWO,
        "number": 4,
        "step": 1,
        "waiting": "Verdict",
        "message": "there is no verdict yet: 100 requests",
        "verdict": Verdict(
            Outcome.INCONCLUSIVE,
            "4/bbb2/1",
            "Errors",
            "100 requests",
            (Measurement("errorRate", 0.0, "<= 0.001", 100, "SPRT", Outcome.INCONCLUSIVE, 0.0005, progress=-0.5),),
        ),
        "history": (Record(ONE, Ending.PROMOTED, "400 requests", NOW - timedelta(hours=2)),),
    }
    return RolloutState(**{**values, **more})


def held(**more: Any) -> RolloutState:
    """Return the state after version 2 was taken back."""
    values: dict[str, Any] = {
        "phase": Phase.HELD,
        "since": NOW,
        "stable": ONE,
        "message": "revision bbb2 (version 2) is not tried again: 12 of 300 requests failed",
        "failed": (FailedRevision(TWO, "ErrorRate", "12 of 300 requests failed", NOW - timedelta(minutes=1)),),
    }
    return RolloutState(**{**values, **more})


def promoted(**more: Any) -> RolloutState:
    """Return the state after version 2 was promoted."""
    values: dict[str, Any] = {
        "phase": Phase.PROMOTED,
        "since": NOW,
        "stable": TWO,
        "former": ONE,
        "message": "revision bbb2 (version 2) serves",
    }
    return RolloutState(**{**values, **more})


def body(
    state: RolloutState | None,
    ready: str = "False",
    kind: str = "InferenceModel",
    name: str = "chat",
    annotations: dict[str, str] | None = None,
    rollout: dict[str, Any] | None = STEPS,
    **status: Any,
) -> dict[str, Any]:
    """Return the document of a member with such a rollout."""
    shown = to_status(state) if state is not None else None
    part = {"rollout": _document(shown, **status.pop("shown", {}))} if shown is not None else {}
    conditions = [{"type": "Ready", "status": ready, "reason": "RollingOut", "message": "version 2 is proven"}]
    return {
        "apiVersion": "argosy.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "generation": 2, "annotations": annotations or {}},
        "spec": {"version": 2, **({"rollout": rollout} if rollout is not None else {})},
        "status": {"observedGeneration": 2, "conditions": conditions, **part, **status},
    }


def _document(status: RolloutStatus, **more: Any) -> dict[str, Any]:
    return {**_written(status.model_dump(mode="json", by_alias=True, exclude_none=True)), **more}


def _written(value: Any) -> Any:
    """Return a value without empty texts, as the operator writes it."""
    if isinstance(value, list):
        return [_written(item) for item in value]
    return {name: _written(item) for name, item in value.items() if item != ""} if isinstance(value, dict) else value
