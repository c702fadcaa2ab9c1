"""The rollout of a model or an ensemble in its status: its state, its traffic, and why it is not Ready meanwhile."""

from argosy.api import Reason
from argosy.api.rolloutstatus import RolloutStatus, revision_in_words
from argosy.api.values.quantity import THOUSANDTHS, format_percent
from argosy.planning.rollouts.member import MemberRollout
from argosy.rollout.state import ALL_TRAFFIC, Phase, Revision, Waiting
from argosy.rollout.statuses import to_status
from argosy.status.conditions import bounded
from argosy.status.kstatus import Deviation

_LONGEST = 2000
"""Characters of a message."""


def rollout_status(rollout: MemberRollout) -> RolloutStatus:
    """Return the status of a rollout: the machine's state, the candidate's traffic, the strategy and its reason."""
    candidate, chosen = rollout.state.candidate, rollout.chosen
    update: dict[str, object] = {"steps": rollout.action.steps} if rollout.action.steps else {}
    if chosen is not None:
        update |= {"strategy": chosen.strategy or "", "strategy_message": chosen.message}
    if candidate is not None:
        update["desired_traffic"] = _share(rollout)
    if candidate is not None and rollout.traffic is not None:
        update["traffic"] = round(rollout.traffic * THOUSANDTHS)
    return to_status(rollout.state).model_copy(update=update)


def unsettled(rollout: MemberRollout | None) -> Deviation | None:
    """Return why a member does not serve what it declares though all of it is loaded; None if it does."""
    if rollout is None or rollout.state.stable is None:
        return None
    state = rollout.state
    if state.phase is Phase.HELD:
        return Deviation(Reason.ROLLED_BACK, bounded(state.message, _LONGEST), stalled=True)
    if not state.under_way:
        return None
    reason = Reason.PAUSED if state.waiting == Waiting.PAUSED else Reason.ROLLING_OUT
    return Deviation(reason, bounded("; ".join(filter(None, (_progress(rollout), state.message))), _LONGEST))


def _progress(rollout: MemberRollout) -> str:
    """Return which revision replaces which one, and how far it is."""
    state = rollout.state
    if state.phase is Phase.ROLLING_BACK:
        return f"{_name(state.stable)} serves in place of {_name(state.candidate)}"
    return f"{_name(state.candidate)} is to replace {_name(state.stable)}: {_how_far(rollout)}"


def _how_far(rollout: MemberRollout) -> str:
    match rollout.state.phase:
        case Phase.SHADOWING:
            return "requests are mirrored to it"
        case Phase.STEPPING:
            share = format_percent(_share(rollout))
            return f"step {rollout.state.step + 1} of {rollout.action.steps}, {share} of requests"
        case phase:
            return phase.lower()


def _share(rollout: MemberRollout) -> int:
    """Return the share of requests that the candidate is to get, in thousandths."""
    candidate = rollout.state.candidate
    return rollout.action.weights.get(candidate.version, 0) * THOUSANDTHS // ALL_TRAFFIC if candidate is not None else 0


def _name(revision: Revision | None) -> str:
    return revision_in_words(revision.name, revision.version) if revision is not None else "nothing"


def measured_traffic(rollout: MemberRollout) -> dict[int, int]:
    """Return the percentage of the requests without a version that each version was sent; empty where none was
    measured. The stable version is sent what the candidate is not.
    """
    stable, candidate = rollout.state.stable, rollout.state.candidate
    if stable is None or candidate is None or candidate.version == stable.version or rollout.traffic is None:
        return {}
    share = round(100 * rollout.traffic)
    return {stable.version: 100 - share, candidate.version: share}
