"""A state with its spec and inputs, and the conditions on which it changes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from argosy.api.model.rollout.analysis import Analysis, OnInconclusive
from argosy.api.model.rollout.rollout import Rollout
from argosy.rollout import clock
from argosy.rollout.requests import handled_entry, names
from argosy.rollout.state import Phase, Revision, RolloutInputs, RolloutState
from argosy.rollout.trials import Trial, Trials
from argosy.rollout.verdict import Outcome


@dataclass(frozen=True, slots=True)
class Context:
    """One state, its spec and inputs."""

    state: RolloutState
    spec: Rollout | None
    inputs: RolloutInputs

    @property
    def now(self) -> datetime:
        """The time."""
        return self.inputs.now

    @property
    def trials(self) -> Trials:
        """What is asked of the candidate."""
        return Trials(self.state, self.spec, self.inputs)

    @property
    def steps(self) -> tuple[Trial, ...]:
        """The steps. Where servers cannot divide requests, one step with all of them."""
        return self.trials.steps

    @property
    def shadow(self) -> Trial | None:
        """The mirroring before the first step; None if there is none."""
        return self.trials.mirroring

    @property
    def trial(self) -> Trial | None:
        """What the present phase asks of the candidate; None if the phase asks nothing."""
        return self.trials.present

    @property
    def loads_both(self) -> bool:
        """Whether both revisions are loaded while the candidate is proven, on one server or on several."""
        return self.inputs.together or (self.inputs.split and self.inputs.by_replicas)

    @property
    def analysis(self) -> Analysis:
        """The analysis that the spec declares, or its defaults."""
        return self.spec.analysis if self.spec is not None else Analysis()

    @property
    def paused(self) -> bool:
        """Whether the spec or an annotation pauses the rollout."""
        return self.inputs.paused or (self.spec is not None and self.spec.paused)

    @property
    def stopped(self) -> bool:
        """Whether the clock of the step stands still."""
        if self.state.phase not in (Phase.SHADOWING, Phase.STEPPING):
            return False
        return self.paused or self.inputs.unrelated is not None or not self.inputs.candidate_ready

    @property
    def elapsed(self) -> timedelta:
        """How long the step has lasted."""
        return clock.elapsed(self.state, self.now)

    @property
    def timeout(self) -> timedelta:
        """How long the step may last without a verdict."""
        return timedelta(milliseconds=self.analysis.timeout)

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the present analysis, if there is one."""
        verdict = self.state.verdict
        return verdict.outcome if verdict is not None and verdict.analysis == self.state.analysis else None

    # The conditions of transitions.

    def is_back(self) -> bool:
        """Return whether the stable revision is ready, or fails, so that a rollout need not wait for it."""
        return self.inputs.stable_ready or self.inputs.stable_failed is not None

    def is_first(self) -> bool:
        """Return whether there is no stable revision yet."""
        return self.state.stable is None

    def declares_stable(self) -> bool:
        """Return whether the stable revision is declared."""
        return _same(self.inputs.declared, self.state.stable)

    def declares_failed(self) -> bool:
        """Return whether a revision is declared that is not tried again, since there is a stable one."""
        return self.state.stable is not None and self.state.failure_of(self.inputs.declared) is not None

    def declares_other(self) -> bool:
        """Return whether neither the stable revision nor the candidate is declared."""
        declared, state = self.inputs.declared, self.state
        return not _same(declared, state.stable) and not _same(declared, state.candidate)

    def declares_new(self) -> bool:
        """Return whether another revision is declared, and may be tried."""
        return self.declares_other() and not self.declares_failed()

    def declares_held(self) -> bool:
        """Return whether another revision is declared that is not tried again."""
        return self.declares_other() and self.declares_failed()

    def is_ready(self) -> bool:
        """Return whether the candidate is ready wherever it is to serve."""
        return self.inputs.candidate_ready

    def is_switched(self) -> bool:
        """Return whether the candidate is ready and gets all traffic."""
        return self.inputs.candidate_ready and self.inputs.applied

    def is_unloaded(self) -> bool:
        """Return whether no server has the candidate, and the stable revision is ready. Of two revisions with one
        version a server has one.
        """
        stable, candidate = self.state.stable, self.state.candidate
        replaced = stable is not None and candidate is not None and stable.version == candidate.version
        return self.inputs.stable_ready and (replaced or not self.inputs.candidate_loaded)

    def failed_to_run(self) -> bool:
        """Return whether the candidate caused a failure, and there is a revision to go back to."""
        declared = self.spec is not None and self.state.stable is not None
        return declared and self.inputs.candidate_failed is not None

    def is_convicted(self) -> bool:
        """Return whether the verdict on the candidate is Failed."""
        return self.state.stable is not None and self.outcome is Outcome.FAILED

    def is_undone(self) -> bool:
        """Return whether an annotation takes back the revision that is declared, and there is another one."""
        return self._undo_requested() and self.previous is not None and not self.undo_refusal

    def _undo_requested(self) -> bool:
        current = self.state.candidate or self.state.stable
        return (
            current is not None
            and _same(self.inputs.declared, current)
            and self._requested("undo", self.inputs.undo, current)
        )

    @property
    def undo_refusal(self) -> str:
        """Why an annotation that takes back the declared revision is not acted upon: the revision to go back to is not
        known, or failed; empty if it is acted upon, or there is none.
        """
        target, name = self.inputs.undo_to, self.inputs.undo_name
        if not name or not self._undo_requested():
            return ""
        if target is None:
            return f"the annotation argosy.dev/undo is not followed: there is no revision {name} to go back to"
        failed = self.state.failure_of(target)
        if failed is None:
            return ""
        return (
            f"the annotation argosy.dev/undo is not followed: revision {name} failed before ({failed.reason}); declare "
            f"it, and try it again with the annotation argosy.dev/retry: {name}"
        )

    @property
    def previous(self) -> Revision | None:
        """The revision that an undo goes back to."""
        current = self.state.candidate or self.state.stable
        fallback = self.state.stable if self.state.candidate is not None else self.state.former
        target = self.inputs.undo_to or fallback
        return target if not _same(target, current) else None

    def is_retried(self) -> bool:
        """Return whether an annotation releases the revision that is declared and held."""
        return self.declares_failed() and self._requested("retry", self.inputs.retry, self.inputs.declared)

    def is_promoted_by_hand(self) -> bool:
        """Return whether an annotation promotes the candidate, and it is ready."""
        candidate = self.state.candidate
        return (
            candidate is not None
            and self.inputs.candidate_ready
            and self._requested("promote", self.inputs.promote, candidate)
        )

    def _requested(self, request: str, text: str, revision: Revision) -> bool:
        return names(text, revision) and handled_entry(request, text) not in self.state.handled

    def may_start(self) -> bool:
        """Return whether the candidate is ready, and nothing stops the rollout."""
        return self.inputs.candidate_ready and not self.paused

    def passes(self) -> bool:
        """Return whether the candidate has done what its step asks."""
        trial = self.trial
        if trial is None:
            return not self.stopped
        if self.stopped or self.elapsed < trial.duration:
            return False
        if self.outcome is Outcome.SUCCESSFUL and self.inputs.requests >= trial.min_requests:
            return True
        return self._timed_out and self.analysis.on_inconclusive is OnInconclusive.PROMOTE

    @property
    def _timed_out(self) -> bool:
        """Return whether the step's timeout has passed."""
        return not self.stopped and self.trial is not None and self.elapsed >= self.timeout

    def is_overdue(self) -> bool:
        """Return whether the step's timeout has passed, and the candidate did not pass its analysis."""
        return self._timed_out and self.outcome is not Outcome.SUCCESSFUL

    def is_to_go_back(self) -> bool:
        """Return whether there was no verdict in time, and the rollout is to go back."""
        return self.is_overdue() and self.analysis.on_inconclusive is OnInconclusive.ROLLBACK


def _same(one: Revision | None, other: Revision | None) -> bool:
    return one is not None and other is not None and one.name == other.name
