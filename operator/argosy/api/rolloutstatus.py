"""Parts of a status that describe a rollout: what is proven, how far, by what evidence, and what came of earlier ones.

The rollout goes on from them when the operator is restarted.
"""

from typing import Annotated

from pydantic import Field

from argosy.api.conditions import camel_case
from argosy.api.statusparts import StatusPart
from argosy.api.values.base import Flag, Int, Number
from argosy.api.values.quantity import MeasuredDuration, MeasuredShare

Word = Annotated[str, camel_case(64)]
"""A CamelCase word, so that a status of another release is valid too."""
OptionalWord = Annotated[str, Field(max_length=64)]


def revision_in_words(name: str, version: int) -> str:
    """Return a revision as messages, Events and commands call it."""
    return f"revision {name} (version {version})"


class StepVersion(StatusPart):
    """A model that a revision of an ensemble runs."""

    model: str = Field(description="The model, or the inner ensemble.")
    version: Int = Field(ge=1, description="Its version.")


class RevisionStatus(StatusPart):
    """A revision of a model or an ensemble."""

    revision: str = Field(description="Its name: a digest of what it is. Annotations and commands take it.")
    version: Int = Field(ge=1, description="The version that it has on servers.")
    steps: tuple[StepVersion, ...] = Field(
        default=(), description="Of an ensemble: the models that it runs, with their versions."
    )


class MeasurementStatus(StatusPart):
    """One measurement that a verdict is based on."""

    name: str = Field(description="What was measured, such as errorRate, serviceTime, p99 or the name of a query.")
    value: Number | None = Field(default=None, description="The candidate's value, if there is one.")
    stable: Number | None = Field(default=None, description="The stable revision's value, if it is compared.")
    limit: str = Field(default="", description="The limit, such as <= 1.5.")
    samples: Int = Field(default=0, ge=0, description="The number of the candidate's samples.")
    test: str = Field(default="", description="The test by which it was decided.")
    outcome: OptionalWord = Field(default="", description="Successful, Failed, Inconclusive or Error.")
    message: str = Field(default="", description="What it says, in words.")
    progress: Number | None = Field(
        default=None,
        description="How far the sequential test is: from 1 on the candidate fails, and down from -1 it passes.",
    )


class AnalysisStatus(StatusPart):
    """A verdict on a candidate at one step."""

    outcome: Word = Field(description="Successful, Failed, Inconclusive or Error.")
    reason: OptionalWord = Field(default="", description="The measurement or failure that decided, as one word.")
    message: str = Field(default="", description="The verdict in a sentence, with the numbers.")
    analysis: str = Field(default="", description="Which rollout and step it is about.")
    measurements: tuple[MeasurementStatus, ...] = Field(default=(), description="The evidence; the first fifty.")


class ShadowCount(StatusPart):
    """Mirrored requests with one reason."""

    reason: str = Field(description="The reason, as servers' metrics have it.")
    requests: Int = Field(ge=0, description="How many requests.")


class ShadowLatency(StatusPart):
    """Percentiles of the latency, in seconds."""

    p50: Number | None = Field(default=None, description="The median.")
    p95: Number | None = Field(default=None, description="95 percent of the requests took at most that long.")
    p99: Number | None = Field(default=None, description="99 percent of the requests took at most that long.")


class ShadowExampleStatus(StatusPart):
    """A request to which two revisions gave different answers."""

    request_id: str = Field(
        description="The request's id. A request that came without one has an id that the server's log explains."
    )
    kind: str = Field(description="Value, Top1, Elements, Text, Shape, Datatype, Missing or Responses.")
    size: Number = Field(description="How far the answers are apart, by the kind.")


class ShadowOutputStatus(StatusPart):
    """One output of the mirrored requests."""

    output: str = Field(description="The output's name.")
    different: Int = Field(default=0, ge=0, description="Requests whose output differs by more than the tolerance.")
    largest_difference: Number | None = Field(
        default=None, description="The largest absolute difference of its numbers."
    )
    rows: Int = Field(default=0, ge=0, description="Rows whose largest elements were compared.")
    agreeing_rows: Int = Field(default=0, ge=0, description="Of these, rows with the same largest element.")
    examples: tuple[ShadowExampleStatus, ...] = Field(default=(), description="The five worst answers.")


class ShadowStatus(StatusPart):
    """What became of the requests that were chosen to be mirrored to the candidate."""

    equal: Int = Field(default=0, ge=0, description="Both revisions answered alike.")
    different: Int = Field(default=0, ge=0, description="The answers differ by more than the tolerances.")
    failed: Int = Field(default=0, ge=0, description="The candidate failed, and the stable revision answered.")
    uncompared: Int = Field(default=0, ge=0, description="Both answered, and the answers were not compared.")
    skipped: Int = Field(default=0, ge=0, description="They were not mirrored, as while other requests waited.")
    canceled: Int = Field(default=0, ge=0, description="They were withdrawn, as by their clients.")
    failures: tuple[ShadowCount, ...] = Field(default=(), description="Why the candidate failed.")
    not_compared: tuple[ShadowCount, ...] = Field(default=(), description="Why requests were skipped or not compared.")
    stable_latency: ShadowLatency | None = Field(
        default=None, description="The stable revision's latency of the requests that both answered."
    )
    candidate_latency: ShadowLatency | None = Field(
        default=None, description="The candidate's latency of the same requests."
    )
    outputs: tuple[ShadowOutputStatus, ...] = Field(
        default=(), description="The outputs, those first in which most answers differ; at most eight."
    )


class HeldRevision(StatusPart):
    """A revision that failed.

    It is not tried again until its spec changes, or the annotation argosy.dev/retry names it.
    """

    revision: str = Field(description="Its name.")
    version: Int = Field(ge=1, description="Its version.")
    reason: OptionalWord = Field(default="", description="Why it failed, in one CamelCase word.")
    message: str = Field(default="", description="Why it failed, with the numbers.")
    time: str = Field(default="", description="When it failed, RFC 3339.")


class RolloutRecord(StatusPart):
    """What came of an earlier rollout."""

    revision: str = Field(description="The revision that was rolled out.")
    version: Int = Field(ge=1, description="Its version.")
    steps: tuple[StepVersion, ...] = Field(
        default=(), description="Of an ensemble: the models that it ran, with their versions."
    )
    outcome: Word = Field(description="Promoted, RolledBack, Superseded, Withdrawn or Undone.")
    message: str = Field(default="", description="Why, with the numbers.")
    time: str = Field(default="", description="When it ended, RFC 3339.")
    analysis: AnalysisStatus | None = Field(default=None, description="The last verdict on it, if there was one.")


class RolloutStatus(StatusPart):
    """The rollout of a model or an ensemble."""

    phase: Word = Field(description="Stable, Loading, Shadowing, Stepping, Promoting, Promoted, RollingBack or Held.")
    step: Int | None = Field(default=None, ge=0, description="The present step, counted from 1; 0 before the first.")
    steps: Int | None = Field(default=None, ge=0, description="The number of steps.")
    stable: RevisionStatus | None = Field(default=None, description="The revision that was promoted last.")
    candidate: RevisionStatus | None = Field(default=None, description="The revision that is proven.")
    former: RevisionStatus | None = Field(default=None, description="The stable revision before the present one.")
    number: Int = Field(default=0, ge=0, description="The number of the rollout, counted from 1.")
    since: str = Field(default="", description="When the step began, RFC 3339.")
    paused_at: str = Field(default="", description="Since when the step's clock stands still, RFC 3339.")
    paused_for: MeasuredDuration = Field(
        default=0, description="The time since then that does not count, because the clock stood still."
    )
    observed_at: str = Field(default="", description="When the clock was last read, RFC 3339.")
    waiting: OptionalWord = Field(default="", description="What it waits for, in one CamelCase word.")
    message: str = Field(default="", description="What it does or waits for, with the numbers.")
    desired_traffic: MeasuredShare | None = Field(
        default=None, description="The candidate's share of the requests that name no version, as desired."
    )
    traffic: MeasuredShare | None = Field(
        default=None, description="The candidate's share of those requests, as measured at the servers."
    )
    strategy: OptionalWord = Field(default="", description="Where the candidate gets its memory.")
    strategy_message: str = Field(default="", description="Why that strategy, and what follows from it.")
    analysis: AnalysisStatus | None = Field(default=None, description="The last verdict, if there is one.")
    shadow: ShadowStatus | None = Field(
        default=None, description="The comparison of mirrored requests, since the candidate gets any."
    )
    promoted_by_hand: Flag = Field(
        default=False, description="Whether the candidate is promoted by the annotation argosy.dev/promote."
    )
    handled: tuple[str, ...] = Field(
        default=(), description="Annotations that were acted upon, or came too late, while they are set."
    )
    held: tuple[HeldRevision, ...] = Field(default=(), description="Revisions that failed; the last twenty.")
    history: tuple[RolloutRecord, ...] = Field(
        default=(),
        description="Ten earlier rollouts, newest first: the last three, and of those before them first of all the "
        "promoted ones, which can be gone back to.",
    )
