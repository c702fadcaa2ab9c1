"""The rollout of a model or an ensemble in its status: its state, its traffic, and why it is not Ready meanwhile."""

from argosy.api import Reason
from argosy.api.rolloutstatus import RolloutStatus
from argosy.planning.rollouts.member import MemberRollout
from argosy.rollout.state import Phase, Waiting
from argosy.rollout.statuses import to_status
from argosy.status.conditions import bounded
from argosy.status.kstatus import Unsettled

_PER_THOUSAND = 1000
"""Millionths in a thousandth."""


def rollout_status(rollout: MemberRollout) -> RolloutStatus:
    """Return the status of a rollout: the machine's state, the candidate's traffic, the strategy and its reason."""
    settings, candidate, chosen = rollout.settings, rollout.state.candidate, rollout.chosen
    steps = len(settings.steps) if settings is not None else 0
    update: dict[str, object] = {"steps": steps} if steps else {}
    if chosen is not None:
        update |= {"strategy": chosen.strategy or "", "strategy_message": chosen.message}
    if candidate is not None:
        update["desired_traffic"] = rollout.action.weights.get(candidate.version, 0) // _PER_THOUSAND
    if candidate is not None and rollout.traffic is not None:
        update["traffic"] = round(rollout.traffic * _PER_THOUSAND)
    return to_status(rollout.state).model_copy(update=update)


def unsettled(rollout: MemberRollout | None) -> Unsettled | None:
    """Return why a member does not serve what it declares though all of it is loaded; None if it does."""
    if rollout is None or rollout.state.stable is None:
        return None
    state = rollout.state
    if state.phase is Phase.HELD:
        return Unsettled(Reason.ROLLED_BACK, bounded(state.message), stalled=True)
    if not state.under_way:
        return None
    reason = Reason.PAUSED if state.waiting == Waiting.PAUSED else Reason.ROLLING_OUT
    return Unsettled(reason, bounded(f"{state.phase}: {state.message}" if state.message else state.phase))


def measured_traffic(rollout: MemberRollout | None) -> dict[int, int] | None:
    """Return the percentage of the requests without a version that each version was sent, as measured; None without a
    rollout. The stable version is sent what the candidate is not.
    """
    if rollout is None or rollout.state.stable is None:
        return None
    stable, candidate = rollout.state.stable.version, rollout.state.candidate
    if candidate is None or candidate.version == stable:
        return {stable: 100}
    share = round(100 * (rollout.traffic or 0.0))
    return {stable: 100 - share, candidate.version: share}
