"""The rollout of a model or an ensemble in its status."""

from argosy.api.rolloutstatus import RolloutStatus
from argosy.planning.rollouts.member import MemberRollout
from argosy.rollout.statuses import to_status


def rollout_status(rollout: MemberRollout) -> RolloutStatus:
    """Return the status of a rollout: the machine's state."""
    return to_status(rollout.state)
