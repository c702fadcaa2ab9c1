"""Which groups of the API only clients with a secret header may use."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Api(StrEnum):
    """The groups that can be restricted, as the flags spell them."""

    HEALTH = "health"
    METADATA = "metadata"
    INFERENCE = "inference"
    SHARED_MEMORY = "shared-memory"
    MODEL_CONFIG = "model-config"
    MODEL_REPOSITORY = "model-repository"
    STATISTICS = "statistics"
    TRACE = "trace"
    LOGGING = "logging"


@dataclass(frozen=True, slots=True)
class Restriction:
    """A header and the value it must have. Header names match in any case."""

    header: str
    value: str


Restrictions = Mapping[Api, Restriction]

RESERVED_PARAMETERS = frozenset(
    (
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "priority",
        "timeout",
        "headers",
        "binary_data_output",
    )
)


def cannot_forward(header: str) -> str | None:
    """Why a header may not become a request parameter; None if it may."""
    if header in RESERVED_PARAMETERS or header.startswith("triton_"):
        return f"Header '{header}' is reserved for Triton usage and cannot be forwarded."
    return None
