"""Traces of requests, which a pool's servers send to an OpenTelemetry receiver."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Int

WEB = r"^https?://[^ ]+$"
_FLAG = "--trace-config"


class Tracing(ApiModel):
    """Spans of requests, by OTLP over HTTP. A request whose client sent a W3C context is always traced."""

    endpoint: Annotated[str, StringConstraints(pattern=WEB, max_length=2048)] = Field(
        description="The receiver's URL, such as http://otel-collector.monitoring:4318/v1/traces."
    )
    rate: Int = Field(
        default=1000,
        ge=0,
        le=2**31 - 1,
        description="One request in so many is traced of those without a context; 0 traces none of them. "
        "Default: 1000.",
    )


def tracing_flags(tracing: Tracing | None) -> list[str]:
    """Return the settings as flags of both runtimes."""
    if tracing is None:
        return []
    return [
        f"{_FLAG}=mode=opentelemetry",
        f"{_FLAG}=opentelemetry,url={tracing.endpoint}",
        f"{_FLAG}=level=TIMESTAMPS",
        f"{_FLAG}=rate={tracing.rate}",
    ]


def tracing_faults(tracing: Tracing | None, arguments: Sequence[str]) -> Iterator[Fault]:
    """Yield an error for each flag that the settings give, too."""
    if tracing is None:
        return
    for index, argument in enumerate(arguments):
        if argument.startswith("--trace-"):
            flag = argument.partition("=")[0]
            yield Fault(f"{flag} is set by spec.tracing; remove one of them", ("runtime", "args", index))
