"""Argosy's own decisions, by the functions that the operator calls."""

from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import NO_EJECTION, Allocation
from argosy.autoscaling.memory import MemberMemory
from argosy.autoscaling.policy import Policy
from argosy.simulation.autoscalers.autoscaler import Seen
from argosy.simulation.recorder import date

INTERVAL_S = 5.0
"""Seconds between two decisions of the operator."""
WINDOW_S = 30.0
"""Seconds that signals are measured over."""


class Own:
    """One member under a policy; `reason` is the sentence of its status."""

    wakes = True
    ejection = NO_EJECTION

    def __init__(self, policy: Policy, interval_s: float = INTERVAL_S, window_s: float = WINDOW_S) -> None:
        self._policy, self._memory = policy, MemberMemory()
        self.interval_s, self._window_s = interval_s, window_s
        self.reason = ""

    def decide(self, seen: Seen) -> Allocation:
        """Return the replicas, instances and batching that are decided."""
        signals = seen.recorder.signals(seen.measured, self._window_s) if seen.ready else None
        decision, self._memory = decide(
            self._policy,
            seen.allocation,
            signals,
            seen.spare,
            self._memory,
            date(seen.now),
            queued=seen.queued_requests,
        )
        own = decision.own
        self.reason, self.ejection = own.message, own.ejection
        return own.allocation
