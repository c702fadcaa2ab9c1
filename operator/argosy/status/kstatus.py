"""Ready, Reconciling and Stalled, as kstatus reads them, from the parts."""

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.api import ConditionType, Reason
from argosy.status.conditions import Finding

_NEEDED = (
    ConditionType.VALID,
    ConditionType.ENGINE_READY,
    ConditionType.ACCURACY_VERIFIED,
    ConditionType.PLACED,
    ConditionType.LOADED,
    ConditionType.AVAILABLE,
)
_STUCK = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.UNKNOWN_POOL,
        Reason.NAME_CONFLICT,
        Reason.INVALID_GRAPH,
        Reason.STEP_INVALID,
        Reason.UNSUPPORTED_FORMAT,
        Reason.ENGINE_NOT_BUILT,
        Reason.ACCURACY_TOO_LOW,
        Reason.BUILD_FAILED,
        Reason.NO_NODES,
        Reason.NO_GPUS,
        Reason.NO_MATCHING_NODE,
        Reason.NO_GPU_OF_TYPE,
        Reason.COMPUTE_TOO_LARGE,
        Reason.GPU_TOO_SMALL,
        Reason.TOO_FEW_GPUS_ON_A_NODE,
        Reason.NO_NVLINK,
        Reason.SERVER_TOO_SMALL,
        Reason.GROUP_TOO_LARGE,
        Reason.SERVER_LIMIT,
        Reason.REPLICAS_APART,
        Reason.ANTI_AFFINITY,
        Reason.NO_FREE_GPUS,
        Reason.NO_FREE_MEMORY,
        Reason.CONFIG_TOO_LARGE,
        Reason.NO_CONFIG_SPACE,
        Reason.NO_ENGINE_FOR_ARCHITECTURE,
        Reason.PARTIALLY_PLACED,
        Reason.LOAD_FAILED,
        Reason.DOWNLOAD_FAILED,
        Reason.DIGEST_MISMATCH,
        Reason.CRASH_LOOP,
        Reason.DEVICE_ERROR,
    }
)
"""Reasons that waiting does not change."""
_AT_REST = frozenset({Reason.SUSPENDED, Reason.SCALED_TO_ZERO})
"""Reasons that are as asked for: nothing serves, and nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """Why a resource whose parts are all so does not serve what it declares.

    `stalled`: waiting does not change it; else it is on its way.
    """

    reason: Reason
    message: str
    stalled: bool = False


def verdict(
    parts: Sequence[Finding], serving: str, rolling: str = "", rollout: Deviation | None = None
) -> tuple[Finding, ...]:
    """Return Ready, Reconciling and Stalled. `serving` is Ready's message; `rolling` names what is still being
    replaced, and `rollout` is the rollout where the stable revision is not the declared one.

    Ready only if every needed part is so and nothing is rolling, unknown if nothing but an unknown part is missing;
    Stalled if a part is not so for a reason that waiting does not change.
    """
    missing = [part for part in parts if part.type in _NEEDED and not part.so]
    rest = next((part for part in missing if part.reason in _AT_REST), None)
    if rest is not None:
        return _three(rest.reason, rest.message, ready=rest.reason is Reason.SCALED_TO_ZERO)
    stuck = next((part for part in missing if part.reason in _STUCK), None)
    if stuck is not None:
        return _three(stuck.reason, stuck.message, stalled=True)
    wrong = next((part for part in missing if part.so is not None), None)
    if wrong is not None:
        return _three(Reason.PROGRESSING, wrong.message, reconciling=True)
    if missing:
        return _three(missing[0].reason, missing[0].message, ready=None)
    if rollout is not None:
        return _three(rollout.reason, rollout.message, reconciling=not rollout.stalled, stalled=rollout.stalled)
    if rolling:
        return _three(Reason.ROLLING_OUT, rolling, reconciling=True)
    return _three(Reason.SERVING, serving, ready=True)


def _three(
    reason: Reason, message: str, ready: bool | None = False, reconciling: bool = False, stalled: bool = False
) -> tuple[Finding, ...]:
    settled = "nothing is left to do"
    return (
        Finding(ConditionType.READY, ready, reason, message),
        Finding(
            ConditionType.RECONCILING,
            reconciling,
            reason if reconciling else Reason.SETTLED,
            message if reconciling else settled,
        ),
        Finding(ConditionType.STALLED, stalled, reason if stalled else Reason.SETTLED, message if stalled else ""),
    )
