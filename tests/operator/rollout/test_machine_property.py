"""Random histories of a rollout: pushes, reverts, crashes, verdicts, annotations, restarts, clocks that jump."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from argosy.api.model.rollout.analysis import OnInconclusive
from argosy.api.model.rollout.rollout import Rollout
from argosy.api.rolloutstatus import RolloutStatus
from argosy.rollout import clock
from argosy.rollout.clock import READING
from argosy.rollout.machine import advance
from argosy.rollout.state import (
    ALL_TRAFFIC,
    PROVING,
    RESTING,
    FailureFact,
    Phase,
    Revision,
    RolloutInputs,
    RolloutState,
)
from argosy.rollout.statuses import from_status, to_status
from argosy.rollout.verdict import Outcome, Verdict

REVISIONS = [Revision(f"r{version}", version, (("m", 4),)) for version in range(1, 5)] + [Revision("r4b", 4)]
_STEPS = [{"traffic": "5%"}, {"traffic": "20%", "minRequests": 10}, {"traffic": "60%", "pause": "10m"}]
SPECS = [
    None,
    Rollout(),
    Rollout.model_validate({"steps": _STEPS}),
    Rollout.model_validate({"steps": _STEPS[:1], "shadow": {"traffic": "10%"}}),
    Rollout.model_validate({"shadow": {"traffic": "10%"}, "analysis": {"onInconclusive": "Promote"}}),
    Rollout.model_validate({"steps": _STEPS, "analysis": {"onInconclusive": "Rollback"}}),
    Rollout.model_validate({"steps": _STEPS, "paused": True}),
]
PLACEMENTS = [(True, False), (False, True), (False, False)]
"""Both revisions on a server; each on some servers; the candidate in place of the stable one."""
_revisions, _specs = st.sampled_from(REVISIONS), st.sampled_from(SPECS)
_names = st.sampled_from(["", *(revision.name for revision in REVISIONS), "r2@1", "r2@2", "unknown"])
_FORWARD = [Phase.LOADING, Phase.SHADOWING, Phase.STEPPING, Phase.PROMOTING, Phase.PROMOTED]


class Rollouts(RuleBasedStateMachine):
    """A member whose servers load what is to be kept, and unload the rest once something of it is ready."""

    @initialize(spec=_specs)
    def begin(self, spec: Rollout | None) -> None:
        self.spec, self.edited = spec, False
        self.inputs = RolloutInputs(REVISIONS[0], datetime(2026, 1, 1, tzinfo=UTC))
        self.ready: set[int] = set()
        self.banned: set[str] = set()
        self.lost: set[int] = set()
        self.missing: set[int] = set()
        self.over: set[tuple[str, str]] = set()
        self.former: RolloutInputs | None = None
        self.judging: Outcome | None = None
        self.stood = False
        self.state, self.action = advance(None, spec, self.inputs)

    # What happens to it.

    @rule(revision=_revisions)
    def push(self, revision: Revision) -> None:
        self.inputs = replace(self.inputs, declared=revision)
        self.step()

    @rule(revision=_revisions)
    def push_and_load(self, revision: Revision) -> None:
        self.push(revision)
        self.load()
        self.step()

    @rule()
    def revert(self) -> None:
        if self.state.stable is not None:
            self.push(self.state.stable)

    @rule(spec=_specs)
    def edit(self, spec: Rollout | None) -> None:
        self.spec, self.edited = spec, True
        self.step()
        self.edited = False

    @rule(text=_names, which=st.sampled_from(["promote", "retry", "undo"]))
    def annotate(self, which: str, text: str) -> None:
        self.over.discard((which, text if text != getattr(self.inputs, which) else ""))
        self.inputs = replace(self.inputs, **{which: text})
        self.step()

    @rule()
    def release(self) -> None:
        """Let a revision that is held be tried again."""
        self.annotate("retry", f"{self.inputs.declared.name}@{self.state.number}")

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.inputs = replace(self.inputs, paused=paused)
        self.step()

    @rule(split=st.booleans())
    def split(self, split: bool) -> None:
        self.inputs = replace(self.inputs, split=split)
        self.step()

    @rule(placement=st.sampled_from(PLACEMENTS))
    def fit(self, placement: tuple[bool, bool]) -> None:
        together, by_replicas = placement
        self.inputs = replace(self.inputs, together=together, by_replicas=by_replicas)
        self.step()

    @rule(reason=st.sampled_from([None, FailureFact("NoRoom", "0 of 1 GPUs are free"), FailureFact("NodeLost")]))
    def obstruct(self, reason: FailureFact | None) -> None:
        self.inputs = replace(self.inputs, unrelated=reason)
        self.step()

    @rule(seconds=st.integers(0, 4000), micros=st.integers(0, 999_999))
    def wait(self, seconds: int, micros: int) -> None:
        self.inputs = replace(self.inputs, now=self.inputs.now + timedelta(seconds=seconds, microseconds=micros))
        self.step()

    @rule(hours=st.integers(-48, 48))
    def jump(self, hours: int) -> None:
        self.inputs = replace(self.inputs, now=self.inputs.now + timedelta(hours=hours))
        self.step()

    @rule()
    def load(self) -> None:
        """Unload what is not to be kept, and then load what is, each in a round of its own."""
        self.unload()
        for version in sorted(self.action.keep):
            self.load_one(version)

    @rule()
    def unload(self) -> None:
        """Unload what is not to be kept, once something that is to be kept is ready."""
        if self.action.keep & self.ready:
            stable = self.state.stable
            if stable is not None and stable.version in self.ready - self.action.keep:
                self.lost.add(stable.version)  # the candidate takes its place
            self.ready &= self.action.keep
        self.step()

    @rule(version=st.sampled_from([1, 2, 3, 4]))
    def load_one(self, version: int) -> None:
        """Load a version that is to be kept; loads of others come later, or fail."""
        if version in self.action.keep - self.missing:
            self.ready.add(version)
            self.lost.discard(version)
        self.step()

    @rule(version=st.sampled_from([1, 2, 3, 4]))
    def clean_up(self, version: int) -> None:
        """Delete the files of a version: what is loaded of it stays, and it is not loaded again."""
        self.missing.add(version)
        self.step()

    @rule()
    def restore(self) -> None:
        """Restore all files."""
        self.missing.clear()
        self.step()

    @rule()
    def lose_specs(self) -> None:
        """Lose the specs of all revisions but the declared one."""
        if self.state.stable is not None and self.state.stable != self.inputs.declared:
            self.state = self.state.without_stable()
            self.step()

    @rule(version=st.sampled_from([1, 2, 3, 4]))
    def crash(self, version: int) -> None:
        """Lose a version for a while; the last one that is ready stays."""
        if version in self.ready and self.ready - {version}:
            self.ready.discard(version)
            self.lost.add(version)
        self.step()

    @precondition(lambda self: self.state.candidate is not None)
    @rule()
    def fail(self) -> None:
        self.step(candidate_failed=FailureFact("CrashLoop", "exited 5 times"))

    @rule(outcome=st.sampled_from(Outcome), analysis=st.sampled_from(["", "1/r2/0", "present"]))
    def judge(self, outcome: Outcome, analysis: str) -> None:
        analysis = self.state.analysis if analysis == "present" else analysis
        self.step(verdict=Verdict(outcome, analysis, "errorRate", "2 of 100 requests failed"), requests=20)

    @rule()
    def prove(self) -> None:
        """Let the present step pass."""
        self.watch(Outcome.SUCCESSFUL, 1000)

    @rule(outcome=st.sampled_from(Outcome), requests=st.sampled_from([5, 1000]))
    def watch(self, outcome: Outcome, requests: int) -> None:
        """Let twelve minutes pass with one verdict on the present step."""
        for _ in range(12):
            self.inputs = replace(self.inputs, now=self.inputs.now + timedelta(minutes=1))
            self.step(verdict=Verdict(outcome, self.state.analysis), requests=requests)

    @rule(outcome=st.sampled_from([Outcome.SUCCESSFUL, Outcome.FAILED]))
    def end(self, outcome: Outcome) -> None:
        """Take every obstacle away, and let the analyses of all steps come to one verdict: a rollout ends."""
        stable = self.state.stable
        self.inputs = replace(self.inputs, unrelated=None, paused=False)
        self.missing.clear()
        if self.spec is not None and self.spec.paused:
            self.spec = self.spec.model_copy(update={"paused": False})
        self.judging = outcome
        for _ in range(120):
            self.load()
            if self.state.phase in RESTING and self.action.wake is None:
                break
            self.inputs = replace(self.inputs, now=self.inputs.now + timedelta(minutes=1))
            self.step()
        self.judging = None
        assert self.state.phase in RESTING, "a rollout ends"
        declared = self.inputs.declared.name
        assert self.state.stable.name == declared or declared in {one.revision.name for one in self.state.failed}
        undone = any(one.reason == "Undone" for one in self.state.failed)
        assert outcome is not Outcome.FAILED or stable in (None, self.state.stable) or undone, "it fails"

    @rule()
    def restart(self) -> None:
        self.state = restarted(self.state)

    def step(self, **facts: object) -> None:
        """Run one round, and check what it decided against what was before."""
        before = self.state
        candidate = before.candidate or self.inputs.declared
        if self.judging is not None:
            facts = {"verdict": Verdict(self.judging, before.analysis), "requests": 1000, **facts}
        gone = before.stable is not None and before.stable.version in self.missing - self.ready
        missing = FailureFact("NoFiles", "it has no files") if gone else None
        inputs = replace(
            self.inputs,
            candidate_ready=candidate.version in self.ready,
            candidate_loaded=candidate.version in self.ready,
            stable_ready=before.stable is None or before.stable.version in self.ready,
            stable_failed=missing,
            **facts,
        )
        former = replace(before, waiting="Before") if before.under_way else before
        share = self.share(before.candidate)
        self.state, self.action = advance(former, self.spec, inputs)
        assert self.state.waiting != "Before", "each round says what it waits for"
        state, action = advance(restarted(former), self.spec, inputs)
        assert (to_status(state), action) == (to_status(self.state), self.action), "a restart changes nothing"
        self.timed(before, inputs)
        self.proven(before, inputs)
        self.convicted(before, inputs, share)
        self.requested(before, inputs)
        self.settled(inputs)
        self.remember(before, inputs)
        self.former, self.stood = inputs, self.stands(self.state, inputs)

    def share(self, candidate: Revision | None) -> int:
        """Return a candidate's share of the requests."""
        return self.action.weights.get(candidate.version, 0) if candidate is not None else 0

    def stands(self, state: RolloutState, inputs: RolloutInputs) -> bool:
        """Return whether the clock of a step must stand still."""
        paused = inputs.paused or (self.spec is not None and self.spec.paused)
        proving = state.phase in (Phase.SHADOWING, Phase.STEPPING)
        return proving and (paused or inputs.unrelated is not None or not inputs.candidate_ready)

    def timed(self, before: RolloutState, inputs: RolloutInputs) -> None:
        """Check that a step's clock stands still while nothing can be proven, and follows no jump."""
        same = (self.state.phase, self.state.analysis) == (before.phase, before.analysis)
        if self.former is None or not same or not before.analysis:
            return
        gap = inputs.now - self.former.now
        ran = clock.elapsed(self.state, inputs.now) - clock.elapsed(before, self.former.now)
        stood = self.stood and self.stands(self.state, inputs)
        most = gap if not stood and timedelta() <= gap <= clock.LONGEST_GAP else timedelta()
        assert ran <= most + timedelta(milliseconds=1)
        assert ran >= -READING
        assert not stood or not ran

    def convicted(self, before: RolloutState, inputs: RolloutInputs, share: int) -> None:
        """Check that a candidate that fails is taken back in that round, whatever else happens in it."""
        if before.stable is None or before.phase not in PROVING:
            return
        verdict, judged = inputs.verdict or before.verdict, before.phase is not Phase.LOADING
        present = verdict is not None and verdict.analysis == before.analysis
        broken = inputs.candidate_failed is not None and self.spec is not None
        if broken or (judged and present and verdict.outcome is Outcome.FAILED):
            self.banned.add(before.candidate.name)
            assert self.state.phase is Phase.ROLLING_BACK
            assert self.state.failure_of(before.candidate) is not None
            if before.stable.version != before.candidate.version:
                assert self.share(before.candidate) == 0
        elif judged and verdict is not None and present and not verdict.outcome.passes:
            assert self.share(before.candidate) <= share or self.moved(before, inputs)

    def moved(self, before: RolloutState, inputs: RolloutInputs) -> bool:
        """Return whether a share may be another one without a verdict."""
        former, spec = self.former, self.spec
        promotes = spec is None or not spec.proves or spec.analysis.on_inconclusive is OnInconclusive.PROMOTE
        placements = ("split", "together", "by_replicas")
        fits = former is not None and all(getattr(former, name) == getattr(inputs, name) for name in placements)
        return promotes or self.state.by_hand or not fits or self.edited

    def requested(self, before: RolloutState, inputs: RolloutInputs) -> None:
        """Check that an annotation acts once, and only on the rollout that it was set for."""
        state = self.state
        goes_back = before.phase is not Phase.ROLLING_BACK and state.phase is Phase.ROLLING_BACK
        acts = {
            "promote": state.by_hand and not before.by_hand,
            "undo": goes_back and state.failed[0].reason == "Undone",
            "retry": before.phase is Phase.HELD
            and before.failure_of(inputs.declared) is not None
            and state.number > before.number,
        }
        for which, acted in acts.items():
            request = which, getattr(inputs, which)
            assert not acted or request not in self.over, f"{request} acts on another rollout"
            names = request[1].partition("@")[0]
            ended = before.phase in PROVING and (state.phase not in PROVING or state.number != before.number)
            begun = state.number > before.number and which != "promote" and state.candidate is not None
            if acted or (ended and names == before.candidate.name) or (begun and names == state.candidate.name):
                self.over.add(request)

    def remember(self, before: RolloutState, inputs: RolloutInputs) -> None:
        """Keep which revisions failed, and check that none of them returns."""
        goes_back = before.phase is not Phase.ROLLING_BACK and self.state.phase is Phase.ROLLING_BACK
        undone = goes_back and self.state.failed[0].reason == "Undone"
        if goes_back:
            assert self.state.stable is not None
            if not undone:
                self.banned.add(self.state.candidate.name)
        if before.stable is None and self.state.stable is not None:
            self.banned.discard(self.state.stable.name)  # nothing else was there to serve
        retried = before.phase is Phase.HELD and self.state.phase is Phase.LOADING and bool(inputs.retry)
        if retried and inputs.retry.partition("@")[0] == self.state.candidate.name:
            self.banned.discard(self.state.candidate.name)
        same = before.phase in PROVING and self.state.phase in _FORWARD and self.state.candidate == before.candidate
        paused = inputs.paused or (self.spec is not None and self.spec.paused)
        if same and paused and self.state.phase is not before.phase:
            assert self.state.message.startswith("promoted by hand")

    def proven(self, before: RolloutState, inputs: RolloutInputs) -> None:
        """Check that a candidate is promoted for a reason."""
        if self.state.phase is Phase.PROMOTED and before.phase is not Phase.PROMOTED:
            assert before.phase is Phase.PROMOTING
        if self.state.number == before.number and self.state.step > before.step:
            assert self.state.step == before.step + 1
        advanced = self.state.phase is Phase.STEPPING and self.state.step > before.step
        if not advanced and (self.state.phase is not Phase.PROMOTING or before.phase is Phase.PROMOTING):
            return
        verdict, analyzed = inputs.verdict, self.spec is not None and self.spec.proves
        verdict = verdict if verdict is not None and verdict.analysis == before.analysis else before.verdict
        passed = verdict is not None and verdict.outcome.passes and verdict.analysis == before.analysis
        if (
            self.spec is not None
            and before.phase is Phase.STEPPING
            and not self.state.by_hand
            and len(self.action.keep) > 1
        ):
            self.completed(before, inputs)
        replaced = before.stable.version == before.candidate.version  # by what has the same version
        assert (
            not analyzed
            or replaced
            or (passed and before.phase is not Phase.LOADING)
            or self.state.message.startswith("promoted by hand")
            or self.timed_out(before, inputs)
        )

    def completed(self, before: RolloutState, inputs: RolloutInputs) -> None:
        """Check that a step lasted as long as it says, and had its requests."""
        divides = inputs.split and (inputs.together or inputs.by_replicas)
        if not self.spec.steps or not divides or before.step >= len(self.spec.steps):
            return
        step = self.spec.steps[before.step]
        elapsed = clock.elapsed(clock.read(before, inputs.now, stopped=False), inputs.now)
        assert elapsed >= timedelta(milliseconds=step.pause)
        assert inputs.requests >= (step.min_requests or 0) or self.timed_out(before, inputs)

    def timed_out(self, before: RolloutState, inputs: RolloutInputs) -> bool:
        """Return whether the timeout of a step that is promoted then has passed."""
        analysis = self.spec.analysis
        elapsed = clock.elapsed(clock.read(before, inputs.now, stopped=False), inputs.now)
        proving = before.phase in (Phase.SHADOWING, Phase.STEPPING)
        promotes = analysis.on_inconclusive is OnInconclusive.PROMOTE
        return proving and promotes and elapsed >= timedelta(milliseconds=analysis.timeout)

    def settled(self, inputs: RolloutInputs) -> None:
        """Check that the machine comes to rest with unchanged inputs, and says what it waits for."""
        state = self.state
        for _ in range(10):
            if state.phase in RESTING or state.waiting:
                break
            following, _ = advance(state, self.spec, replace(inputs, verdict=None, candidate_failed=None))
            if following == state:
                break
            state = following
        assert state.phase in RESTING or state.waiting, state

    # What always holds.

    @invariant()
    def weights_sum_to_all_requests(self) -> None:
        assert sum(self.action.weights.values()) == ALL_TRAFFIC
        assert all(weight >= 0 for weight in self.action.weights.values())

    @invariant()
    def what_gets_requests_is_loaded(self) -> None:
        assert {version for version, weight in self.action.weights.items() if weight} <= self.action.keep

    @invariant()
    def both_revisions_are_loaded_while_one_is_proven(self) -> None:
        if self.state.phase in PROVING:
            assert self.state.candidate is not None
            assert self.state.candidate.version in self.action.keep
            both = self.inputs.together or (self.inputs.split and self.inputs.by_replicas)
            assert not both or self.state.stable is None or self.state.stable.version in self.action.keep

    @invariant()
    def some_ready_version_serves(self) -> None:
        """Servers answer with a version that has a weight, or with one of weight 0 while none of these is ready; if all
        of them were lost, with what else is loaded.
        """
        if self.state.stable is not None:
            assert self.action.weights.keys() & (self.ready | self.lost)

    @invariant()
    def no_revision_that_failed_returns(self) -> None:
        if self.state.phase in PROVING and self.state.stable is not None:
            assert self.state.candidate.name not in self.banned
        if self.state.phase is Phase.PROMOTED:
            assert self.state.stable.name not in self.banned

    @invariant()
    def a_rollout_under_way_is_looked_at_again(self) -> None:
        if self.state.phase in RESTING:
            assert self.action.wake is None or self.action.wake == self.inputs.now
        else:
            assert self.inputs.now <= self.action.wake <= self.inputs.now + READING

    @invariant()
    def a_candidate_gets_no_more_than_its_step(self) -> None:
        divides = self.inputs.split and (self.inputs.together or self.inputs.by_replicas)
        if self.state.phase is Phase.STEPPING and self.spec is not None and divides:
            mirrored = (self.spec.shadow.traffic,) if self.spec.shadow is not None else ()
            shares = tuple(step.traffic for step in self.spec.steps) or mirrored
            if shares:
                assert self.action.weights[self.state.candidate.version] <= max(shares) * 1000

    @invariant()
    def what_is_recorded_is_bounded(self) -> None:
        assert len(self.state.failed) <= 20
        assert len(self.state.history) <= 10
        assert len(self.state.handled) <= 3


def restarted(state: RolloutState) -> RolloutState:
    """Return the state that another operator reads in the status."""
    restored = from_status(RolloutStatus.model_validate_json(to_status(state).model_dump_json(by_alias=True)))
    assert restored == state
    return restored


Rollouts.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestRollouts = Rollouts.TestCase
