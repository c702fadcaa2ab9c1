"""Parts of a model's status: its engines, its adapters and its regime."""

from typing import Annotated

from pydantic import ConfigDict, Field

from argosy.api.conditions import camel_case
from argosy.api.values.base import FrozenModel, Int, Number
from argosy.api.values.identity import in_pool


class StatusPart(FrozenModel):
    """A part of a status. Fields of other releases are ignored."""

    model_config = ConfigDict(extra="ignore")


class PreemptionStatus(StatusPart):
    """A place that went to what comes first, as one of the two sees it."""

    name: str = Field(default="", description="The other model or ensemble; empty where it is in another namespace.")
    pool: str = Field(default="", description="Its ServingPool as namespace/name; empty where it is the same pool.")
    priority: Int = Field(description="Its priority.")
    time: str = Field(description="When, RFC 3339.", json_schema_extra={"format": "date-time"})
    drain_seconds: Int = Field(
        default=0, ge=0, description="How long the one that lost the place had to end its requests."
    )

    @property
    def other(self) -> str:
        """The other model or ensemble as messages name it."""
        return in_pool(self.name, self.pool) if self.pool else self.name


class AccuracyStatus(StatusPart):
    """The result of the accuracy gate for an engine and its baseline."""

    metric: str = Field(description="How they were compared: a metric, or script.")
    value: Number = Field(description="The value that is compared with the bounds.")
    passed: bool = Field(description="Whether it passed.")
    minimum: Number | None = Field(default=None, description="The lowest passing value.")
    maximum: Number | None = Field(default=None, description="The highest passing value.")
    baseline: Number | None = Field(default=None, description="The baseline's own figure, if the metric has one.")
    engine: Number | None = Field(default=None, description="The engine's own figure, if the metric has one.")
    delta: Number | None = Field(default=None, description="The difference of the two figures.")
    samples: Int = Field(default=0, ge=0, description="The number of compared samples.")
    data_digest: str = Field(default="", description="The digest of the data.")
    time: str = Field(default="", description="When it was measured, RFC 3339.")


class EngineStatus(StatusPart):
    """An engine of one version for one architecture, and its build."""

    version: Int = Field(default=1, ge=1, description="The model's version.")
    architecture: str = Field(description='The GPU\'s compute capability, as "9.0", or the CPU\'s name, as "amd64".')
    state: str = Field(description="Pending, Building, Verifying, Ready or Failed.")
    serving: bool = Field(default=False, description="Whether servers load the engine at storageUri.")
    build: str = Field(default="", description="The build: the value of its objects' label argosy.dev/build.")
    phase: str = Field(default="", description="The current phase of the build.")
    percent: Int = Field(default=0, ge=0, le=100, description="The progress of the build, in percent.")
    last_line: str = Field(default="", description="The last line of the compiler's output.")
    message: str = Field(default="", description="Why it waits or failed, and what to do.")
    storage_uri: str = Field(
        default="", description="The engine's URI; until it is ready, that of the former one for the same request."
    )
    digest: str = Field(default="", description="The digest of its files.")
    size: Int = Field(default=0, ge=0, description="The size of its files, in bytes.")
    cached: bool = Field(default=False, description="Whether it was in the cache, so that nothing was built.")
    build_seconds: Number = Field(default=0, description="The duration of the build, in seconds.")
    compiler: str = Field(default="", description="The name and version of the compiler.")
    key: str = Field(
        default="",
        description="Its key in the engine cache, made of model digest, options, calibration, architecture and "
        "compiler.",
    )
    request_digest: str = Field(
        default="", description="The digest of the request, regardless of the image that builds it and the cache."
    )
    accuracy: AccuracyStatus | None = Field(default=None, description="The result of the accuracy gate.")
    accuracy_skipped: str = Field(
        default="", description="The reason in spec.engine.accuracy.skip why nothing was compared."
    )


class AdapterStatus(StatusPart):
    """One adapter of a model."""

    name: str = Field(description="The adapter, as clients name it.")
    state: Annotated[str, camel_case(64)] = Field(description="Serving, Loading, Failed or Pending.")
    message: str = Field(
        default="", description="Why it does not serve, such as another base model or too high a rank."
    )
    replicas: Int = Field(default=0, ge=0, description="Servers that should have it.")
    available_replicas: Int = Field(default=0, ge=0, description="Servers on which it is loaded.")
    digests: tuple[str, ...] = Field(default=(), description="The files that servers have loaded.")


class RegimeStatus(StatusPart):
    """The variant that new requests go to, by requests in flight."""

    variant: str = Field(
        default="",
        description="The variant: on most servers, of two alike the first; of variants with servers of their own, the "
        "one that the Service leads to.",
    )
    servers: Int = Field(default=0, ge=0, description="Servers on which it is that variant.")
    since: str | None = Field(
        default=None, description="Since when, on the server that changed last, or between servers, RFC 3339."
    )
    crossover: str = Field(
        default="",
        description="The numbers of requests in flight beyond which the next variant is chosen, such as 8, 32; Unknown "
        "if a variant but the last declares none.",
    )
    measured_at: str | None = Field(
        default=None, description="When the crossovers were measured, the oldest one, RFC 3339; unset if one was not."
    )
    measured: str = Field(
        default="", description="How the crossovers were measured that declare it: with which load, and on what."
    )
    observed_crossover: str = Field(
        default="",
        description="The crossovers that traffic shows, in their order, such as 6.5 or at most 6; unknown if too few "
        "requests can be compared.",
    )
    observed_requests: Int = Field(
        default=0, ge=0, description="The requests that were compared, of the variant with the fewest."
    )
    observed_message: str = Field(
        default="", description="Which declared crossover no longer fits what is observed, and what to do; or empty."
    )
    message: str = Field(
        default="",
        description="Why requests go to it, between servers; or what is missing for a choice, and how to add it.",
    )
    advice: str = Field(
        default="",
        description="The variant that suits the measured traffic on average, by the requests in flight: their rate "
        "times their duration.",
    )
