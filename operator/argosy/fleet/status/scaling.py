"""How many replicas or servers there are to be, and which field decides it."""

from argosy.api import ConditionType, Ensemble, InferenceModel, Reason, ServingPool
from argosy.api.status import ScalingStatus
from argosy.fleet.status.conditions import Finding
from argosy.fleet.status.unsupported import unused_scaling_settings


def scaling(member: InferenceModel | Ensemble) -> Finding:
    """The condition Scaling of a model or an ensemble."""
    kind, how_many = ConditionType.SCALING, decided_by(member)
    unused = unused_scaling_settings(member)
    if unused:
        message = f"without effect in this release: {unused}; {how_many}"
        return Finding(kind, False, Reason.SETTING_WITHOUT_EFFECT, message)
    return Finding(kind, True, Reason.FIXED_REPLICAS, how_many)


def scaling_status(member: InferenceModel | Ensemble, desired: int) -> ScalingStatus:
    """`desired` replicas, with the field that says so."""
    return ScalingStatus(replicas=desired, desired=desired, reason=Reason.FIXED_REPLICAS, message=decided_by(member))


def decided_by(member: InferenceModel | Ensemble) -> str:
    """The field that decides how many replicas there are, in words."""
    spec = member.spec
    others = "its models ask for" if isinstance(member, Ensemble) else "an ensemble asks for"
    if spec.replicas is None:
        return f"replicas stay at minReplicas ({spec.min_replicas}) or what {others}"
    return (
        f"spec.replicas is {spec.replicas}, and decides, or what {others} if that is more; minReplicas and maxReplicas "
        "count again when it is removed"
    )


def pool_scaling(pool: ServingPool) -> Finding:
    """The condition Scaling of a pool."""
    spec, kind = pool.spec, ConditionType.SCALING
    if spec.replicas is not None:
        message = (
            f"spec.replicas is {spec.replicas}, and decides how many servers there are; minServers and maxServers "
            "count again when it is removed"
        )
        return Finding(kind, True, Reason.FIXED_REPLICAS, message)
    most = "" if spec.max_servers is None else f", at most maxServers ({spec.max_servers})"
    return Finding(
        kind, True, Reason.STEADY, f"as many servers as its models need, at least minServers ({spec.min_servers}){most}"
    )
