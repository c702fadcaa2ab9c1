"""The verdict on a candidate at one step, with the evidence that it is based on."""

from dataclasses import dataclass
from enum import StrEnum

from argosy.api.rolloutstatus import ShadowStatus


class Outcome(StrEnum):
    """The result of an analysis."""

    SUCCESSFUL = "Successful"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"

    @property
    def passes(self) -> bool:
        """Whether the candidate may go on."""
        return self is Outcome.SUCCESSFUL


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement that a verdict is based on.

    `value` is the candidate's, and `stable` that of the stable revision where the two are compared; None if it could
    not be measured. `limit` is in words, such as `<= 1.5`; `test` names the statistical test. `progress`: its log
    likelihood ratio as a part of the one that decides, so that 1 fails and -1 passes; None of what is no such test.
    """

    name: str
    value: float | None = None
    limit: str = ""
    samples: int = 0
    test: str = ""
    outcome: Outcome | None = None
    stable: float | None = None
    message: str = ""
    progress: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the analysis `analysis` (`RolloutState.analysis`), with its evidence.

    A verdict on another analysis than the state's present one is ignored. `shadow`: the comparison of mirrored
    requests in this rollout, if there were any.
    """

    outcome: Outcome
    analysis: str
    reason: str = ""
    message: str = ""
    measurements: tuple[Measurement, ...] = ()
    shadow: ShadowStatus | None = None
