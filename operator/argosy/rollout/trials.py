"""What a rollout asks of its candidate: mirroring and steps, as far as servers can divide requests."""

from dataclasses import dataclass
from datetime import timedelta

from argosy.api.model.rollout.rollout import Rollout
from argosy.api.model.rollout.shadow import Shadow
from argosy.api.model.rollout.steps import PAUSE_MS
from argosy.api.values.quantity import THOUSANDTHS
from argosy.rollout.state import ALL_TRAFFIC, Phase, RolloutInputs, RolloutState

_UNIT = ALL_TRAFFIC // THOUSANDTHS
"""Millionths in a thousandth, in which the spec has shares."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a step, or mirroring, asks of the candidate: its traffic in millionths, a duration, requests."""

    traffic: int
    duration: timedelta
    min_requests: int


@dataclass(frozen=True, slots=True)
class Trials:
    """The trials of a candidate, by what the spec declares and what servers can do."""

    state: RolloutState
    spec: Rollout | None
    inputs: RolloutInputs

    @property
    def steps(self) -> tuple[Trial, ...]:
        """The steps. Where servers cannot divide requests, one step with all of them."""
        if self.spec is None or not self._provable:
            return ()
        steps = tuple(
            Trial(step.traffic * _UNIT, _span(step.pause), step.min_requests or self._least) for step in self.spec.steps
        )
        if not steps and self.spec.shadow is None:
            return ()
        if self._divisible:
            return steps or self._unmirrored
        duration = max((step.duration for step in steps), default=_span(PAUSE_MS))
        return (Trial(ALL_TRAFFIC, duration, max((step.min_requests for step in steps), default=self._least)),)

    @property
    def mirroring(self) -> Trial | None:
        """The mirroring before the first step; None if there is none. Only a server with both revisions can mirror."""
        shadow = self.spec.shadow if self.spec is not None else None
        possible = self._provable and self._divisible and self.inputs.together
        return self._of_shadow(shadow) if shadow is not None and possible else None

    @property
    def present(self) -> Trial | None:
        """What the present phase asks of the candidate; None if the phase asks nothing."""
        if self.state.phase is Phase.SHADOWING:
            return self.mirroring
        steps = self.steps
        if self.state.phase is not Phase.STEPPING or not steps:
            return None
        return steps[min(self.state.step, len(steps) - 1)]

    @property
    def _unmirrored(self) -> tuple[Trial, ...]:
        """The one step that proves a candidate which is only to be mirrored, where no server has both revisions, or
        once a step has begun: there is no way back from it to mirroring.
        """
        shadow = self.spec.shadow if self.spec is not None else None
        if shadow is None or (self.inputs.together and self.state.phase is not Phase.STEPPING):
            return ()
        return (self._of_shadow(shadow),)

    def _of_shadow(self, shadow: Shadow) -> Trial:
        return Trial(shadow.traffic * _UNIT, _span(shadow.duration), shadow.min_requests or self._least)

    @property
    def _least(self) -> int:
        """The requests that a trial needs which names no number."""
        return (self.spec.analysis.min_requests if self.spec is not None else None) or 0

    @property
    def _divisible(self) -> bool:
        """Whether servers can divide requests between the two revisions."""
        return self.inputs.split and (self.inputs.together or self.inputs.by_replicas)

    @property
    def _provable(self) -> bool:
        """Whether two revisions can be told apart: by their versions, while the stable one exists."""
        stable, candidate = self.state.stable, self.state.candidate or self.inputs.declared
        return stable is not None and stable.version != candidate.version


def _span(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)
