"""Every row of the transition table, and what it does."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.api.model.rollout.rollout import Rollout
from argosy.rollout.context import Context
from argosy.rollout.machine import TRANSITIONS, advance
from argosy.rollout.state import Action, FailedRevision, FailureFact, Phase, Revision, RolloutInputs, RolloutState
from argosy.rollout.verdict import Outcome, Verdict

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ONE, TWO, THREE = Revision("one", 1), Revision("two", 2), Revision("three", 3)
STEPS: dict[str, Any] = {"steps": [{"traffic": "5%"}, {"traffic": "50%"}]}
SHADOW = {"shadow": {"traffic": "10%"}}
ROLLBACK = {"analysis": {"onInconclusive": "Rollback"}}
HELD = FailedRevision(TWO, "errorRate", "5 of 100 requests failed", NOW - timedelta(hours=1))
HOUR = timedelta(hours=1)


def state(phase: Phase, **fields: Any) -> RolloutState:
    proving = phase not in (Phase.STABLE, Phase.PROMOTED, Phase.HELD)
    fields_of_phase = {"stable": ONE, "candidate": TWO if proving else None, "number": 1, "observed_at": NOW}
    return RolloutState(phase, **({"since": NOW} | fields_of_phase | fields))


def inputs(declared: Revision = TWO, **fields: Any) -> RolloutInputs:
    return RolloutInputs(declared, **({"now": NOW, "candidate_ready": True, "candidate_loaded": True} | fields))


def verdict(outcome: Outcome, analysis: str) -> Verdict:
    return Verdict(outcome, analysis, "errorRate", "5 of 100 requests failed")


@dataclass(frozen=True, slots=True)
class Case:
    """A state, a spec and inputs; the row that they take."""

    state: RolloutState
    target: Phase
    when: str
    inputs: RolloutInputs
    spec: dict[str, Any] | None = None


PASSED = verdict(Outcome.SUCCESSFUL, "1/two/0")
FAILED = verdict(Outcome.FAILED, "1/two/0")
LAST = verdict(Outcome.SUCCESSFUL, "1/two/1")
MIRRORED = verdict(Outcome.SUCCESSFUL, "1/two/shadowing")
DIFFERS = verdict(Outcome.FAILED, "1/two/shadowing")
EARLIER = NOW - HOUR
UNDO, OTHER = "the annotation undo names it", "another revision is declared"
BACK = "the stable revision is declared again"
HELD_DECLARED, BROKEN = "a held revision is declared", "it fails to load or run"
CRASHED = FailureFact("CrashLoop", "it exited 5 times")


def proving(phase: Phase) -> list[Case]:
    return [
        Case(state(phase), Phase.STABLE, BACK, inputs(ONE)),
        Case(state(phase), Phase.ROLLING_BACK, UNDO, inputs(undo="two"), STEPS),
        Case(
            state(phase, failed=(replace(HELD, revision=THREE),)),
            Phase.HELD,
            HELD_DECLARED,
            inputs(THREE, candidate_ready=False),
            STEPS,
        ),
        Case(state(phase), Phase.LOADING, OTHER, inputs(THREE, candidate_ready=False), STEPS),
        Case(state(phase), Phase.ROLLING_BACK, BROKEN, inputs(candidate_failed=CRASHED), STEPS),
    ]


CASES = [
    Case(state(Phase.STABLE, stable=TWO, former=ONE), Phase.ROLLING_BACK, UNDO, inputs(undo="two")),
    Case(state(Phase.STABLE, failed=(HELD,)), Phase.HELD, HELD_DECLARED, inputs()),
    Case(state(Phase.STABLE), Phase.LOADING, OTHER, inputs()),
    Case(state(Phase.PROMOTED, stable=TWO, former=ONE), Phase.ROLLING_BACK, UNDO, inputs(undo="two@12:00")),
    Case(state(Phase.PROMOTED, failed=(HELD,)), Phase.HELD, HELD_DECLARED, inputs()),
    Case(state(Phase.PROMOTED), Phase.LOADING, OTHER, inputs()),
    Case(state(Phase.HELD, failed=(HELD,)), Phase.STABLE, BACK, inputs(ONE)),
    Case(state(Phase.HELD, failed=(HELD,)), Phase.LOADING, "the annotation retry names it", inputs(retry="two")),
    Case(state(Phase.HELD, failed=(HELD,)), Phase.LOADING, OTHER, inputs(THREE)),
    Case(state(Phase.LOADING, stable=None), Phase.STABLE, "the first revision is ready", inputs(), STEPS),
    Case(
        state(Phase.LOADING, stable=None),
        Phase.STABLE,
        "another revision is declared while the first one serves",
        inputs(THREE, candidate_ready=False),
    ),
    *proving(Phase.LOADING),
    Case(state(Phase.LOADING), Phase.PROMOTING, "the annotation promote names it", inputs(promote="two"), STEPS),
    Case(state(Phase.LOADING), Phase.SHADOWING, "ready, with spec.rollout.shadow", inputs(), SHADOW | STEPS),
    Case(state(Phase.LOADING), Phase.STEPPING, "ready, with steps", inputs(), STEPS),
    Case(state(Phase.LOADING), Phase.PROMOTING, "ready, and nothing to prove", inputs()),
    *proving(Phase.SHADOWING),
    Case(state(Phase.SHADOWING), Phase.ROLLING_BACK, "the verdict is Failed", inputs(verdict=DIFFERS), SHADOW),
    Case(state(Phase.SHADOWING), Phase.PROMOTING, "the annotation promote names it", inputs(promote="two"), SHADOW),
    Case(
        state(Phase.SHADOWING, since=EARLIER),
        Phase.STEPPING,
        "passed, with steps",
        inputs(verdict=MIRRORED),
        SHADOW | STEPS,
    ),
    Case(
        state(Phase.SHADOWING, since=EARLIER),
        Phase.PROMOTING,
        "passed, without steps",
        inputs(verdict=MIRRORED),
        SHADOW,
    ),
    Case(
        state(Phase.SHADOWING, since=EARLIER),
        Phase.ROLLING_BACK,
        "no verdict in time, Rollback",
        inputs(),
        SHADOW | ROLLBACK,
    ),
    *proving(Phase.STEPPING),
    Case(state(Phase.STEPPING), Phase.ROLLING_BACK, "the verdict is Failed", inputs(verdict=FAILED), STEPS),
    Case(state(Phase.STEPPING), Phase.PROMOTING, "the annotation promote names it", inputs(promote="two"), STEPS),
    Case(
        state(Phase.STEPPING, since=EARLIER),
        Phase.STEPPING,
        "passed, and not the last step",
        inputs(verdict=PASSED),
        STEPS,
    ),
    Case(
        state(Phase.STEPPING, since=EARLIER, step=1),
        Phase.PROMOTING,
        "passed the last step",
        inputs(verdict=LAST),
        STEPS,
    ),
    Case(
        state(Phase.STEPPING, since=EARLIER),
        Phase.ROLLING_BACK,
        "no verdict in time, Rollback",
        inputs(),
        STEPS | ROLLBACK,
    ),
    Case(
        state(Phase.PROMOTING),
        Phase.PROMOTED,
        "another revision is declared while it is ready",
        inputs(THREE),
        STEPS,
    ),
    *proving(Phase.PROMOTING),
    Case(state(Phase.PROMOTING), Phase.ROLLING_BACK, "the verdict is Failed", inputs(verdict=FAILED), STEPS),
    Case(state(Phase.PROMOTING), Phase.PROMOTED, "all traffic reaches it", inputs(), STEPS),
    Case(
        state(Phase.ROLLING_BACK, failed=(HELD,)),
        Phase.LOADING,
        "another revision is declared, and the stable one is ready, or fails to load",
        inputs(THREE),
        STEPS,
    ),
    Case(
        state(Phase.ROLLING_BACK, failed=(HELD,)),
        Phase.STABLE,
        "the candidate is unloaded, and the stable revision is declared",
        inputs(ONE, candidate_loaded=False),
        STEPS,
    ),
    Case(
        state(Phase.ROLLING_BACK, failed=(HELD,)),
        Phase.HELD,
        "the candidate is unloaded",
        inputs(candidate_loaded=False),
        STEPS,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.state.phase}-{case.target}-{case.when}")
def test_a_row_is_taken(case: Case) -> None:
    after, action = taken(case)
    assert after.phase is case.target
    assert sum(action.weights.values()) == 1_000_000
    assert {version for version, weight in action.weights.items() if weight} <= action.keep


def test_every_row_has_a_case() -> None:
    rows = {(row.source, row.target, row.when) for row in TRANSITIONS}
    assert len(rows) == len(TRANSITIONS)
    assert {(case.state.phase, case.target, case.when) for case in CASES} == rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.state.phase}-{case.target}-{case.when}")
def test_no_earlier_row_applies(case: Case) -> None:
    seen = replace(case.state, verdict=case.inputs.verdict)
    context = Context(seen, spec_of(case), case.inputs)
    rows = [row for row in TRANSITIONS if row.source is seen.phase and all(holds(context) for holds in row.conditions)]
    assert rows[0].when == case.when


def spec_of(case: Case) -> Rollout | None:
    return Rollout.model_validate(case.spec) if case.spec is not None else None


def taken(case: Case) -> tuple[RolloutState, Action]:
    return advance(case.state, spec_of(case), case.inputs)
