"""Headers of clients that become parameters of their inference requests."""

from collections.abc import Iterable
from typing import Any, Final

import re2

RESERVED: Final = frozenset(
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
"""Names of parameters that are not the model's own."""


class HeaderForwarding:
    """Chooses headers by their names. An empty pattern chooses none.

    A pattern has RE2's syntax, whose time is linear in the length of a name. As in Triton it may match anywhere in a
    name, in any case. Raises ValueError where it is malformed.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern: Any = _compiled(pattern) if pattern else None

    @property
    def is_on(self) -> bool:
        """Whether any header could be chosen."""
        return self._pattern is not None

    def of(self, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return the chosen headers, names as the client wrote them. The last one of equal names counts."""
        pattern = self._pattern
        return {} if pattern is None else {name: value for name, value in headers if pattern.search(name)}


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"'{pattern}' is no regular expression of RE2: {text}") from None


def refusal(headers: Iterable[str]) -> str:
    """Return why one of the chosen headers may not become a parameter; empty where all may."""
    for header in headers:
        if header in RESERVED or header.startswith("triton_"):
            return f"Header '{header}' is reserved for Triton usage and cannot be forwarded."
    return ""
