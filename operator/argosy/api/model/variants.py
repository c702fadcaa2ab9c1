"""Variants of a model: what differs among them, and how requests are divided."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from argosy.api.engine.engine import Engine
from argosy.api.model.batching.dynamic import Batching
from argosy.api.model.configfields import ConfigFields
from argosy.api.model.footprint import Footprint, Parallelism
from argosy.api.model.instancegroups import InstanceGroup
from argosy.api.model.modelformat import ModelFormat
from argosy.api.values.base import ApiModel, Fault, Int, Number, Rule
from argosy.api.values.meta import LABEL
from argosy.api.values.quantity import Duration, Share
from argosy.api.values.storage import Digest, ModelStorage, StorageUri
from argosy.api.values.times import parse_time
from argosy_runtime.modelconfig.parameters.variants import MAX_VARIANTS

HYSTERESIS, MIN_DWELL_MS, IDLE_MS = 100, 1_000, 600_000
SEPARATE_DWELL_MS = 15_000
"""The least `minDwell` between servers: three readings, and the time that endpoints take to follow."""
LONGEST_NAME = 40

TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}(Z|[+-][0-9]{2}:[0-9]{2})$"

MeasuredTime = Annotated[str, StringConstraints(max_length=40, pattern=TIME)]
VariantName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=LABEL)]


def _time_of_measurement(measurement: "Measurement") -> Iterator[Fault]:
    if parse_time(measurement.time) is None:
        yield Fault("is no time of RFC 3339, such as 2026-05-04T12:00:00Z", ("time",))


class Measurement(ApiModel):
    """The measurement of a crossover: the numbers of `argosy bench`, and when and on what it ran."""

    time: MeasuredTime = Field(description="When it was measured, RFC 3339.")
    hardware: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        description="What the measured servers ran on, such as 1x H100."
    )
    concurrency: Number = Field(
        ge=1, le=1_000_000, description="Requests in flight at which both variants are equal; maxConcurrency is below."
    )
    low: Number | None = Field(
        default=None, ge=0, description="The least of its 95 % interval. Default: it was measured once."
    )
    high: Number | None = Field(
        default=None, ge=0, description="The most of its 95 % interval. Default: it was measured once."
    )
    prompt_tokens: Int = Field(ge=1, description="Tokens of each prompt.")
    output_tokens: Int = Field(ge=1, description="Tokens of each answer.")

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("time",), _time_of_measurement),)


def _measured_crossover(variant: "Variant") -> Iterator[Fault]:
    if variant.measurement is not None and int(variant.measurement.concurrency) != variant.max_concurrency:
        yield Fault(
            f"is of a crossover of {int(variant.measurement.concurrency)}, which maxConcurrency is not; set "
            "maxConcurrency to it, or leave the measurement out",
            ("measurement",),
        )


class Variant(ApiModel):
    """One variant: the fields in which it differs from the model's spec. It is served as `<model>--<name>`, too."""

    name: VariantName = Field(description="Its name, unique in the model, such as compiled.")
    max_concurrency: Int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Crossover: the most requests in flight on a server for which it is better than the next variant, "
        "as argosy bench measures it. Required of all variants but the last; without it only the first that can answer "
        "is used.",
    )
    measurement: Measurement | None = Field(
        default=None,
        description="How maxConcurrency was measured, as argosy bench -o patch writes it; the status reports it. "
        "Default: maxConcurrency is declared without a measurement.",
    )
    model_format: ModelFormat | None = Field(
        default=None,
        description="The format of its files. Default: the model's, with the model's engine and config; a variant that "
        "sets this field has neither unless it sets them.",
    )
    storage_uri: StorageUri | None = Field(
        default=None, description="The URI of its files, as in spec.storageUri. Default: the model's."
    )
    digest: Digest | None = Field(
        default=None, description="Its files' digest. Default: the model's, or not checked if storageUri is set."
    )
    storage: ModelStorage | None = Field(default=None, description="Credentials for its files. Default: the model's.")
    engine: Engine | None = Field(
        default=None, description="An engine to build for it. Default: the model's, unless modelFormat is set."
    )
    footprint: Footprint | None = Field(default=None, description="What one instance uses. Default: the model's.")
    parallelism: Parallelism | None = Field(
        default=None, description="How it is split over whole GPUs. Default: the model's."
    )
    max_batch_size: Int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="Its largest batch. Default: the model's."
    )
    batching: Batching | None = Field(
        default=None, description="How its requests are joined into batches. Default: the model's."
    )
    instances: Int | None = Field(
        default=None, ge=1, le=256, description="Instances on each of its devices. Default: the model's."
    )
    instance_groups: tuple[InstanceGroup, ...] | None = Field(
        default=None, max_length=32, description="Groups of its instances. Default: the model's."
    )
    config: ConfigFields | None = Field(
        default=None,
        description="Further fields of its config.pbtxt, in place of spec.config. Default: the model's, unless "
        "modelFormat is set.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("max_concurrency", "measurement"),
            _measured_crossover,
            cel="!has(self.measurement) || (has(self.maxConcurrency) && "
            "self.maxConcurrency == int(self.measurement.concurrency))",
            says="maxConcurrency is the concurrency of the measurement, rounded down",
        ),
    )

    @property
    def overrides(self) -> dict[str, Any]:
        """The fields of the model's spec that it sets, by attribute."""
        fields = type(self).model_fields.keys() - {"name", "max_concurrency", "measurement"}
        return {field: value for field in sorted(fields) if (value := getattr(self, field)) is not None}


class VariantPlacement(StrEnum):
    """Where the variants of a model are placed."""

    SAME_SERVER = "SameServer"
    SEPARATE = "Separate"


class Routing(ApiModel):
    """How requests are divided among variants, by requests in flight."""

    placement: VariantPlacement = Field(
        default=VariantPlacement.SAME_SERVER,
        description="SameServer: every server of the model has all variants, and chooses one for each request. "
        "Separate: each variant has replicas of its own, as many as the model's fields say, and the model's Service "
        "leads to the servers of one variant; such a model takes no adapters, and no Ensemble runs it. Default: "
        "SameServer.",
    )
    hysteresis: Share = Field(
        default=HYSTERESIS,
        description="How far below a crossover the requests in flight must fall before requests go back, as a share of "
        'it. Default: "10%".',
        json_schema_extra={"default": "10%"},
    )
    min_dwell: Duration = Field(
        default=MIN_DWELL_MS,
        description="The shortest time between two changes, and how long requests in flight must stay low before "
        "requests go back. Default: 1s; with placement Separate 15s, which is the least there.",
        json_schema_extra={"default": "1s"},
    )
    idle_timeout: Duration = Field(
        default=IDLE_MS,
        description="The time without use after which a variant is put to sleep: on vLLM with GPUs its process stays, "
        "with the weights in the host's memory; other variants are unloaded. It is woken before it is needed. "
        "0s: never. Not with placement Separate, where no variant sleeps. Default: 10m.",
        json_schema_extra={"default": "10m"},
    )


Variants = Annotated[
    tuple[Variant, ...],
    Field(
        max_length=MAX_VARIANTS,
        description="Variants of the model, such as a compiled engine for few requests in flight and vLLM for many, "
        "those for the fewest first; routing says where they are placed. Default: none.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
]
