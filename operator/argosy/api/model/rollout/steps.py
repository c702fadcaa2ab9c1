"""The steps of a rollout, and the requests that stay with the version that answered the first of them."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Int, Rule
from argosy.api.values.quantity import Duration, Share

PAUSE_MS = 60_000
HEADER = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
REQUESTS: Any = Field(
    default=None,
    ge=1,
    le=2**31 - 1,
    description="Requests that the candidate must have answered before it goes on. One that passes its analysis waits "
    "for them after analysis.timeout, too, unless onInconclusive is Promote. Default: analysis.minRequests.",
)


def some_traffic(what: str) -> Rule:
    """Return the rule that a step or shadow, `what` in its message, has traffic."""

    def check(part: Any) -> Iterator[Fault]:
        if not part.traffic:
            yield Fault("must be more than 0%", ("traffic",))

    return Rule(
        ("traffic",),
        check,
        cel="!self.traffic.matches('^0+([.]0)?%$')",
        says=f"a {what} has more than 0% of the traffic",
    )


def _for_a_time(value: object) -> object:
    """Return the value of a pause. Raises ValueError for one without an end, which other projects write as {}."""
    if value == {}:
        raise ValueError(
            "a step's pause has a duration, such as 5m; to wait for a person, set rollout.paused, or the annotation "
            "argosy.dev/pause at any time"
        )
    return value


class RolloutStep(ApiModel):
    """A share of the traffic for the candidate, and how long it lasts."""

    traffic: Share = Field(description='The share of requests for the candidate, as "5%".')
    pause: Annotated[Duration, BeforeValidator(_for_a_time)] = Field(
        default=PAUSE_MS,
        description="The minimum duration of the step, such as 5m. Default: 1m.",
        json_schema_extra={"default": "1m"},
    )
    min_requests: Int | None = REQUESTS

    rules: ClassVar[tuple[Rule, ...]] = (some_traffic("step"),)


def _one_key(sticky: "StickyKey") -> Iterator[Fault]:
    if (sticky.header is None) == (sticky.parameter is None):
        yield Fault("set header or parameter, and not both")


class StickyKey(ApiModel):
    """A key of requests: all requests with one value of it are answered by one version while the weights are the same.

    A request without the key is divided like others.
    """

    header: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=HEADER)] | None = Field(
        default=None, description="A header of HTTP, and key of gRPC's metadata, such as x-user. Case does not matter."
    )
    parameter: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = Field(
        default=None,
        description="A request parameter, or a field of the body of OpenAI's API, such as user.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("header", "parameter"),
            _one_key,
            cel="has(self.header) != has(self.parameter)",
            says="set header or parameter, and not both",
        ),
    )
