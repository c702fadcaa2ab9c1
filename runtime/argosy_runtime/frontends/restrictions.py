"""The groups of the API that only clients with a secret header may use."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Api(StrEnum):
    """The groups that can be restricted, as the flags spell them."""

    HEALTH = "health"
    METADATA = "metadata"
    INFERENCE = "inference"
    SHARED_MEMORY = "shared-memory"
    MODEL_CONFIG = "model-config"
    MODEL_REPOSITORY = "model-repository"
    MODEL_INDEX = "model-index"
    STATISTICS = "statistics"
    TRACE = "trace"
    LOGGING = "logging"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class Restriction:
    """A header and the value it must have. Header names match in any case.

    `flag`: the flag to name where a request is refused as not authorized; empty for Triton's own restrictions, which
    have a message and a status of their own.
    """

    header: str
    value: str = field(repr=False)
    flag: str = ""

    def allows(self, value: str | None) -> bool:
        """Return whether a header's value, one character a byte, is the right one. The time reveals nothing."""
        return value is not None and hmac.compare_digest(value.encode("latin-1"), self.value.encode())

    def refusal(self, what: str) -> str:
        """Return the message for a client without the value; `what` is API or protocol, as Triton calls it."""
        if not self.flag:
            return f"This {what} is restricted, expecting header '{self.header}'"
        return (
            f"This {what} controls the server and is restricted: send the header '{self.header}: Bearer <token>' with "
            f"the token in the file that the server's flag {self.flag} names"
        )


Restrictions = Mapping[Api, Restriction]

CONTROL_TOKEN_FLAG = "--control-token-file"
_CONTROL = (Api.MODEL_REPOSITORY, Api.LOGGING, Api.TRACE, Api.SHARED_MEMORY)
"""The groups that change a server. The index changes nothing, and stays open."""


def control_restrictions(token: str) -> Restrictions:
    """Return the restrictions under which only clients with this token control the server."""
    restriction = Restriction("authorization", f"Bearer {token}", CONTROL_TOKEN_FLAG)
    return dict.fromkeys(_CONTROL, restriction)
