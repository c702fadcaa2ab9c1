"""OpenAI's API of a pool's servers."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault
from argosy.api.values.meta import Name

KEYS_FLAG = "--openai-api-keys-file"
SECRET_KEY = r"^[-._a-zA-Z0-9]+$"
SecretKey = Annotated[str, StringConstraints(pattern=SECRET_KEY, max_length=253)]
"""A key of a Secret's data."""


class ApiKeys(ApiModel):
    """The API keys that clients of OpenAI's API need, from a Secret of the pool's namespace."""

    secret_name: Name = Field(
        description="The Secret. Its changes are read without a restart; without it new servers do not start."
    )
    key: SecretKey = Field(
        default="keys",
        description="Its key whose value has one hash a line: sha256:HEX or NAME:sha256:HEX. Default: keys.",
    )


class OpenAi(ApiModel):
    """OpenAI's API of the bundled server."""

    api_keys: ApiKeys | None = Field(
        default=None,
        description="The API keys that its clients need. They guard /v1 alone. Default: it is open to all clients.",
    )


def api_key_faults(keys: ApiKeys | None, *, on_nvidias_server: bool, arguments: Sequence[str]) -> Iterator[Fault]:
    """Yield what keeps servers from requiring these keys."""
    if keys is None:
        return
    if on_nvidias_server:
        message = "NVIDIA's server has no OpenAI API; remove it, or set spec.runtime.name to argosy"
        yield Fault(message, ("openai", "apiKeys"))
    for index, argument in enumerate(arguments):
        if argument.partition("=")[0] == KEYS_FLAG:
            yield Fault(f"{KEYS_FLAG} is set by spec.openai.apiKeys; remove one of them", ("runtime", "args", index))
