"""The state of a rollout, what it is advanced by, and what is to be done."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from argosy.api.values.quantity import MILLIONTHS
from argosy.rollout.verdict import Verdict

ALL_TRAFFIC: Final = MILLIONTHS
"""All traffic, in millionths."""


class Phase(StrEnum):
    """How far a rollout is."""

    STABLE = "Stable"
    LOADING = "Loading"
    SHADOWING = "Shadowing"
    STEPPING = "Stepping"
    PROMOTING = "Promoting"
    PROMOTED = "Promoted"
    ROLLING_BACK = "RollingBack"
    HELD = "Held"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a phase is: in words, the candidate's traffic, and which revisions are loaded."""

    what: str
    traffic: str
    loaded: str


_BOTH = "both"
MEANINGS: Mapping[Phase, Meaning] = {
    Phase.STABLE: Meaning("The stable revision is declared, and serves.", "none", "the stable one"),
    Phase.LOADING: Meaning("The candidate is being loaded. The first one of all has no stable one.", "none", _BOTH),
    Phase.SHADOWING: Meaning("Requests are mirrored to the candidate.", "none", _BOTH),
    Phase.STEPPING: Meaning("The candidate answers the step's share of requests.", "the step's", _BOTH),
    Phase.PROMOTING: Meaning("The candidate passed, and gets all requests.", "all", _BOTH),
    Phase.PROMOTED: Meaning("The candidate became the stable revision.", "", "the stable one"),
    Phase.ROLLING_BACK: Meaning(
        "The candidate failed or was undone. It answers only where the stable one is not loaded.",
        "none",
        "both until the stable one is ready",
    ),
    Phase.HELD: Meaning("A revision is declared that is not tried again.", "", "the stable one"),
}
PROVING = frozenset({Phase.LOADING, Phase.SHADOWING, Phase.STEPPING, Phase.PROMOTING})
"""Phases with a candidate that may still be promoted."""
RESTING = frozenset({Phase.STABLE, Phase.PROMOTED, Phase.HELD})
"""Phases that last until a spec or an annotation changes."""


class Waiting(StrEnum):
    """What a rollout waits for; an obstacle that the candidate did not cause has its own reason instead."""

    NOTHING = ""
    LOADED = "Loaded"
    PAUSED = "Paused"
    DURATION = "Duration"
    REQUESTS = "Requests"
    VERDICT = "Verdict"
    INCONCLUSIVE = "Inconclusive"
    TRAFFIC = "Traffic"
    UNLOADED = "Unloaded"

    @property
    def meaning(self) -> str:
        """What it stands for, in a sentence."""
        return _WAITS[self]


_WAITS: Mapping[Waiting, str] = {
    Waiting.NOTHING: "nothing",
    Waiting.LOADED: "the candidate is not ready on every server that is to have it",
    Waiting.PAUSED: "`spec.rollout.paused` or the annotation `argosy.dev/pause`; the step's clock stands still",
    Waiting.DURATION: "the step has not lasted as long as `pause`, or `shadow.duration`, says",
    Waiting.REQUESTS: "the candidate passes its analysis, and has not answered `minRequests` requests. It waits for "
    "them after `analysis.timeout`, too, unless `onInconclusive` is `Promote`",
    Waiting.VERDICT: "there are not enough measurements for a verdict, or they cannot be read",
    Waiting.INCONCLUSIVE: "there was no verdict within `analysis.timeout`, and `onInconclusive` is `Hold`: promote or "
    "undo the candidate, or wait for a verdict",
    Waiting.TRAFFIC: "servers do not divide requests as desired yet",
    Waiting.UNLOADED: "the candidate is taken back, and a server still has it",
}


class Ending(StrEnum):
    """What came of a rollout."""

    PROMOTED = "Promoted"
    ROLLED_BACK = "RolledBack"
    SUPERSEDED = "Superseded"
    WITHDRAWN = "Withdrawn"
    UNDONE = "Undone"


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of a model or an ensemble: `name` is the digest of what it is, `version` its version on servers.
    `steps`: of an ensemble, the models that it runs, with their versions.
    """

    name: str
    version: int
    steps: tuple[tuple[str, int], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class FailureFact:
    """A failure: its reason in one CamelCase word, and a message with the numbers."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class FailedRevision:
    """A revision that is not tried again, why, and since when."""

    revision: Revision
    reason: str
    message: str
    time: datetime


@dataclass(frozen=True, slots=True)
class Record:
    """What came of an earlier rollout, when, and the last verdict on its candidate."""

    revision: Revision
    outcome: Ending
    message: str
    time: datetime
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class RolloutState:
    """The state of the rollout of one model or ensemble.

    `number` counts its rollouts. `since` is when the present step began; `paused_for` is the time since then that does
    not count, `paused_at` since when the clock stands still, and `observed_at` when it was last read. `step` counts
    from 0. `by_hand`: whether an annotation promoted the candidate. `handled`: the requests by annotations that were
    acted upon, or are over, and are still set.
    """

    phase: Phase
    since: datetime
    stable: Revision | None = None
    candidate: Revision | None = None
    former: Revision | None = None
    number: int = 0
    step: int = 0
    paused_at: datetime | None = None
    paused_for: timedelta = timedelta()
    observed_at: datetime | None = None
    waiting: str = ""
    message: str = ""
    verdict: Verdict | None = None
    by_hand: bool = False
    failed: tuple[FailedRevision, ...] = ()
    history: tuple[Record, ...] = ()
    handled: tuple[str, ...] = ()

    @property
    def analysis(self) -> str:
        """The name of the present analysis: rollout and step. Evidence begins from zero when it changes; "" if none."""
        if self.candidate is None or self.phase not in PROVING:
            return ""
        step = self.phase.lower() if self.phase in (Phase.LOADING, Phase.SHADOWING) else str(self.step)
        return f"{self.number}/{self.candidate.name}/{step}"

    @property
    def under_way(self) -> bool:
        """Whether the rollout has not ended."""
        return self.phase not in RESTING

    def without_stable(self) -> "RolloutState":
        """Return the state once nothing is known of the stable revision: what is declared is loaded as the first one.

        What failed and the history stay.
        """
        return replace(self, phase=Phase.STABLE, stable=None, candidate=None, former=None, step=0, verdict=None)

    def failure_of(self, revision: Revision) -> FailedRevision | None:
        """Return why a revision is not tried again; None if it may be."""
        return next((failed for failed in self.failed if failed.revision.name == revision.name), None)


@dataclass(frozen=True, slots=True)
class RolloutInputs:
    """What a round knows of a rollout.

    `declared`: the revision that the resource declares. `candidate` in the names of other fields is the state's, or
    `declared` where the state has none. `candidate_ready`: it is ready wherever it is to serve; `candidate_loaded`:
    some server still has it. `stable_ready`: the stable revision is ready on some server; `stable_failed`: why none can
    load it. `candidate_failed`: a failure that it caused (load, crash, out of memory); `unrelated`: an obstacle that it
    did not cause (a lost node, no room). `requests`: those that it answered in the present analysis. `applied`: servers
    divide requests as desired. `split`: servers can divide requests among versions; `together`: both revisions can be
    loaded at once on a server; without that, `by_replicas`: some servers have the one and some the other.

    `promote`, `retry` and `undo` are the values of annotations: the name of a revision, and, after `@`, anything that
    tells one request from the next. `undo_to` is the revision to go back to, by default the one before; `undo_name` is
    its name in the annotation, be it known or not.
    `serving` is what serves before there is a state. `resource`: the member as commands take it, such as `model/chat`.
    """

    declared: Revision
    now: datetime
    resource: str = ""
    candidate_ready: bool = False
    candidate_loaded: bool = False
    stable_ready: bool = True
    stable_failed: FailureFact | None = None
    candidate_failed: FailureFact | None = None
    unrelated: FailureFact | None = None
    verdict: Verdict | None = None
    requests: int = 0
    applied: bool = True
    split: bool = True
    together: bool = True
    by_replicas: bool = False
    paused: bool = False
    promote: str = ""
    retry: str = ""
    undo: str = ""
    undo_to: Revision | None = None
    undo_name: str = ""
    serving: Revision | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done in a state.

    `weights`: each version's share of the requests that name none, in millionths; they sum to a million. `shadow`: the
    share of requests to mirror to the candidate, in millionths. `keep`: the versions to have loaded; any other is to be
    unloaded once one of these is ready. `steps`: their number. `min_requests`: those that the candidate must answer in
    the present step, or while it is mirrored. `wake`: when the state is to be advanced again at the latest; None if
    only a change of its inputs matters.
    """

    weights: Mapping[int, int]
    keep: frozenset[int]
    shadow: int | None = None
    steps: int = 0
    min_requests: int = 0
    wake: datetime | None = None
