"""An ensemble is released as one unit: its revisions pin the versions of its steps, whole and next to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import text_format
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.rolling import STEPS, hundredths
from tests.operator.planning.simulated_cluster import POOL, Cluster
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import EnsembleStatus, Resource
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.rollout.state import Phase, RolloutState
from argosy.rollout.verdict import Outcome, Verdict

ROLLOUT = {"steps": STEPS}
RECORDS = {Outcome.FAILED: "12 of 400 requests failed"}


def step(name: str, at: int, nested: bool = False, **more: Any) -> dict[str, Any]:
    """Return a step of a chain; an inner ensemble of two steps is `nested`."""
    first, last = ("T0", "T2") if nested else ("X", "Y")
    return {"model": name, "inputs": {first: f"T{at}"}, "outputs": {last: f"T{at + 1}"}, **more}


def unit(name: str = "e", steps: Sequence[str] = ("tokenizer", "m"), **spec: Any) -> Resource:
    """Return an ensemble whose revisions are released in steps."""
    chain = [step(one, at, nested=one in ("inner",)) for at, one in enumerate(steps)]
    return ensemble(name, *steps, steps=chain, **{"rollout": ROLLOUT, **spec})


class Fleet:
    """A cluster with ensembles. Times are virtual."""

    def __init__(self, *resources: Resource, gpus: int = 1) -> None:
        self.cluster = Cluster((gpu_node("a", gpus),))
        self.resources: dict[str, Resource] = {"p": pool()}
        self.push(*resources)
        self.cluster.settle(self.declared)

    @property
    def declared(self) -> list[Resource]:
        """All resources."""
        return list(self.resources.values())

    def push(self, *resources: Resource) -> None:
        """Declare these, in place of those of the same name."""
        self.resources |= {one.name: one for one in resources}

    def tick(self, rounds: int = 1) -> None:
        """Run rounds of a second each, in which every request is answered by one revision."""
        for _ in range(rounds):
            self.cluster.tick(self.declared)
            for server in self.cluster.servers.values():
                assert not lacking(server.loaded)

    def until(self, phase: Phase, name: str = "e", rounds: int = 200) -> None:
        """Run rounds until a rollout is in a phase."""
        for _ in range(rounds):
            self.tick()
            if self.state(name).phase is phase:
                return
        raise AssertionError(f"it is not {phase}: {self.state(name)}")

    def settle(self) -> None:
        """Run rounds until nothing changes any more."""
        self.cluster.settle(self.declared)

    def judge(self, outcome: Outcome, *names: str) -> None:
        """Let the analyses of ensembles' present steps come to a verdict."""
        evidence = {
            f"Ensemble default/{name}": CandidateEvidence(
                Verdict(outcome, self.state(name).analysis, "ErrorRate", RECORDS.get(outcome, "")), 1000
            )
            for name in names or ("e",)
        }
        self.cluster.snapshot = replace(self.cluster.snapshot, evidence=evidence)

    def promote(self, *names: str) -> None:
        """Let each step pass until the rollouts have ended."""
        for _ in range(200):
            self.judge(Outcome.SUCCESSFUL, *names)
            self.tick()
            if not any(self.state(name).under_way for name in names or ("e",)):
                return
        raise AssertionError("it does not end")

    def state(self, name: str = "e") -> RolloutState:
        """Return the state of an ensemble's rollout."""
        assert self.cluster.outcome is not None
        return self.cluster.outcome.rollouts.members[f"Ensemble default/{name}"].state

    def status(self, name: str = "e") -> EnsembleStatus:
        """Return an ensemble's status."""
        assert self.cluster.outcome is not None
        status = self.cluster.outcome.statuses[f"Ensemble default/{name}"]
        assert isinstance(status, EnsembleStatus)
        return status

    def weights(self, name: str = "e") -> dict[int, int]:
        """Return how the server is to divide requests, in hundredths."""
        assert self.cluster.outcome is not None
        (server,) = self.cluster.outcome.steps[POOL]
        rendered = server.repository.model(name)
        return hundredths(rendered.config_text) if rendered is not None else {}

    def pins(self, name: str = "e") -> dict[int, dict[str, int]]:
        """Return the versions of an ensemble that the server has, each with the versions of its steps."""
        (server,) = self.cluster.servers.values()
        loaded = server.loaded[name]
        return {version: dict(loaded.steps_of(version)) for version in sorted(loaded.versions)}

    def loaded(self, name: str) -> set[int]:
        """Return the versions of a model that the server has."""
        (server,) = self.cluster.servers.values()
        return set(server.loaded[name].versions)


def lacking(loaded: Mapping[str, Any]) -> list[str]:
    """Return the revisions of ensembles that run a version which is not loaded."""
    return [
        f"{name}:{version} lacks {one}:{at}"
        for name, revision in loaded.items()
        for version in revision.versions
        for one, at in revision.steps_of(version).items()
        if one not in loaded or at not in loaded[one].versions
    ]


@pytest.fixture
def fleet() -> Fleet:
    """Return a cluster on which version 1 of an ensemble serves, which runs version 1 of both models."""
    return Fleet(model("tokenizer", 1, 5), model("m", 1, 5), unit())


def test_a_step_that_changes_makes_a_new_revision_without_a_new_version_by_hand(fleet: Fleet) -> None:
    assert fleet.pins() == {1: {"tokenizer": 1, "m": 1}}
    fleet.push(model("m", 2, 5))
    fleet.until(Phase.STEPPING)
    assert fleet.pins() == {1: {"tokenizer": 1, "m": 1}, 2: {"tokenizer": 1, "m": 2}}
    assert fleet.weights() == {1: 90, 2: 10}
    fleet.promote()
    fleet.settle()
    assert fleet.pins() == {2: {"tokenizer": 1, "m": 2}}
    assert fleet.loaded("m") == {2}
    assert fleet.status().ready


def test_a_version_has_a_configuration_that_pins_its_steps(fleet: Fleet) -> None:
    fleet.push(model("m", 2, 5), model("tokenizer", 7, 5))
    fleet.until(Phase.STEPPING)
    (server,) = fleet.cluster.servers.values()
    texts = {version: source.own.text for version, source in server.loaded["e"].versions.items() if source.own}
    assert texts.keys() == {1, 2}
    assert "model_version: 7" in texts[2]
    assert "model_version: 7" not in texts[1]
    assert "version_policy" not in texts[1] + texts[2]
    config = text_format.Parse(server.loaded["e"].config_text, ModelConfig())
    assert list(config.version_policy.specific.versions) == [1, 2]


def test_a_revision_that_fails_is_unloaded_and_a_step_without_a_rollout_keeps_its_new_version(fleet: Fleet) -> None:
    fleet.push(model("tokenizer", 2, 5))
    fleet.until(Phase.STEPPING)
    fleet.judge(Outcome.FAILED)
    fleet.tick()
    assert fleet.weights() == {1: 100}
    fleet.until(Phase.HELD)
    fleet.settle()
    assert fleet.pins() == {1: {"tokenizer": 1, "m": 1}}
    assert fleet.loaded("tokenizer") == {1, 2}
    assert [held.version for held in fleet.status().rollout.held] == [2]  # type: ignore[union-attr]


def test_a_step_that_its_own_rollout_takes_back_is_no_longer_proposed(fleet: Fleet) -> None:
    fleet.push(model("m", 1, 5, rollout=ROLLOUT))
    fleet.settle()
    fleet.push(model("m", 2, 5, rollout=ROLLOUT))
    fleet.until(Phase.STEPPING)
    outcome = fleet.cluster.outcome
    assert outcome is not None
    analysis = outcome.rollouts.members["InferenceModel default/m"].state.analysis
    verdict = Verdict(Outcome.FAILED, analysis, "ErrorRate", "")
    fleet.cluster.snapshot = replace(
        fleet.cluster.snapshot, evidence={"InferenceModel default/m": CandidateEvidence(verdict, 1000)}
    )
    fleet.tick(2)
    assert fleet.state().candidate is None or fleet.state().phase is Phase.ROLLING_BACK
    fleet.settle()
    assert fleet.pins() == {1: {"tokenizer": 1, "m": 1}}
    assert fleet.loaded("m") == {1}
    assert fleet.state().failed == ()


def test_another_push_in_the_middle_starts_again_with_a_number_of_its_own(fleet: Fleet) -> None:
    fleet.push(model("m", 2, 5))
    fleet.until(Phase.STEPPING)
    fleet.push(model("m", 3, 5))
    fleet.until(Phase.STEPPING)
    assert fleet.pins() == {1: {"tokenizer": 1, "m": 1}, 3: {"tokenizer": 1, "m": 3}}
    fleet.promote()
    fleet.settle()
    assert fleet.pins() == {3: {"tokenizer": 1, "m": 3}}


def test_a_spec_that_is_not_accepted_stops_the_rollout_of_the_one_before_it(fleet: Fleet) -> None:
    fleet.push(model("m", 2, 5))
    fleet.until(Phase.STEPPING)
    fleet.push(unit(steps=("tokenizer", "unknown")))
    for _ in range(60):
        fleet.judge(Outcome.SUCCESSFUL)
        fleet.tick()
    assert (fleet.state().phase, fleet.state().step, fleet.state().waiting) == (Phase.STEPPING, 0, "InvalidSpec")
    assert fleet.weights() == {1: 90, 2: 10}
    assert "spec.steps[1].model " in fleet.state().message
    assert fleet.state().message.endswith("correct it, or declare the former one again")
    fleet.push(unit())
    fleet.promote()
    fleet.settle()
    assert fleet.pins() == {2: {"tokenizer": 1, "m": 2}}


def test_a_revert_in_the_middle_leaves_the_revision_that_serves(fleet: Fleet) -> None:
    fleet.push(model("m", 2, 5))
    fleet.until(Phase.STEPPING)
    fleet.push(model("m", 1, 5))
    fleet.settle()
    assert fleet.pins() == {1: {"tokenizer": 1, "m": 1}}
    assert fleet.weights() == {1: 100}
    assert fleet.loaded("m") == {1}


@pytest.mark.parametrize("at", [Phase.LOADING, Phase.STEPPING, Phase.PROMOTED, Phase.HELD])
def test_a_restarted_operator_goes_on(fleet: Fleet, at: Phase) -> None:
    fleet.push(model("m", 2, 5))
    fleet.until(Phase.LOADING if at is Phase.LOADING else Phase.STEPPING)
    if at is Phase.PROMOTED:
        fleet.promote()
        fleet.settle()
    elif at is Phase.HELD:
        fleet.judge(Outcome.FAILED)
        fleet.until(Phase.HELD)
    before, pins, weights = fleet.state(), fleet.pins(), fleet.weights()
    fleet.cluster.forget()
    fleet.tick()
    assert (fleet.state().phase, fleet.state().stable, fleet.state().candidate) == (
        before.phase,
        before.stable,
        before.candidate,
    )
    assert fleet.weights() == weights
    if at is not Phase.LOADING:
        assert fleet.pins() == pins


def test_two_ensembles_that_share_a_step_are_released_apart() -> None:
    fleet = Fleet(
        model("tokenizer", 1, 5),
        model("m", 1, 5),
        model("n", 1, 5),
        unit(),
        unit("f", ("tokenizer", "n")),
    )
    fleet.push(model("tokenizer", 2, 5))
    fleet.until(Phase.STEPPING)
    fleet.until(Phase.STEPPING, "f")
    fleet.promote("e")
    fleet.tick(5)
    assert fleet.pins("e") == {2: {"tokenizer": 2, "m": 1}}
    assert fleet.pins("f") == {1: {"tokenizer": 1, "n": 1}, 2: {"tokenizer": 2, "n": 1}}
    assert fleet.loaded("tokenizer") == {1, 2}
    fleet.judge(Outcome.FAILED, "f")
    fleet.until(Phase.HELD, "f")
    fleet.settle()
    assert fleet.pins("f") == {1: {"tokenizer": 1, "n": 1}}
    assert fleet.pins("e") == {2: {"tokenizer": 2, "m": 1}}
    assert fleet.loaded("tokenizer") == {1, 2}


def test_an_inner_ensemble_exists_in_the_revisions_that_the_outer_one_runs() -> None:
    inner = unit("inner", ("tokenizer", "m"), rollout=None)
    fleet = Fleet(model("tokenizer", 1, 5), model("m", 1, 5), model("n", 1, 5), inner, unit("e", ("inner", "n")))
    assert fleet.pins("e") == {1: {"inner": 1, "n": 1}}
    fleet.push(model("m", 2, 5))
    fleet.until(Phase.STEPPING)
    assert fleet.pins("e") == {1: {"inner": 1, "n": 1}, 2: {"inner": 2, "n": 1}}
    assert fleet.pins("inner") == {1: {"tokenizer": 1, "m": 1}, 2: {"tokenizer": 1, "m": 2}}
    fleet.promote("e")
    fleet.settle()
    assert fleet.pins("e") == {2: {"inner": 2, "n": 1}}
    assert fleet.pins("inner") == {2: {"tokenizer": 1, "m": 2}}
    assert fleet.loaded("m") == {2}


def test_an_ensemble_without_a_rollout_runs_what_its_steps_promoted() -> None:
    fleet = Fleet(model("tokenizer", 1, 5), model("m", 1, 5, rollout=ROLLOUT), unit(rollout=None))
    fleet.push(model("m", 2, 5, rollout=ROLLOUT))
    fleet.tick(60)
    assert fleet.pins() == {1: {"tokenizer": 1, "m": 1}}
    assert fleet.loaded("m") == {1, 2}


def test_the_status_names_the_steps_of_both_revisions(fleet: Fleet) -> None:
    fleet.push(model("m", 2, 5))
    fleet.until(Phase.STEPPING)
    rollout = fleet.status().rollout
    assert rollout is not None
    assert rollout.stable is not None
    assert rollout.candidate is not None
    assert [(one.model, one.version) for one in rollout.stable.steps] == [("m", 1), ("tokenizer", 1)]
    assert [(one.model, one.version) for one in rollout.candidate.steps] == [("m", 2), ("tokenizer", 1)]
