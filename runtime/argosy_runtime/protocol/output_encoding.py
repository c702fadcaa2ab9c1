"""The requested encoding of a response's outputs."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class OutputEncoding:
    """The outputs to send as binary, and those to send as their `k` best classes.

    `binary_default` is for outputs the request does not list; a listed one is binary where it is in `binary`.
    `classes` maps an output to the number of requested classes.
    """

    binary_default: bool = False
    listed: frozenset[str] = frozenset()
    binary: frozenset[str] = frozenset()
    classes: dict[str, int] = field(default_factory=dict)

    def is_binary(self, output: str) -> bool:
        """Return whether this output's data follows the JSON instead of being part of it."""
        return output in self.binary if output in self.listed else self.binary_default
