"""Ranges of NVIDIA's compute capability, such as `>= 8.9` or `>= 8.0, < 9.0`."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

PATTERN = r"^(>=|<=|>|<|==)? ?[0-9]{1,2}\.[0-9]( ?, ?(>=|<=|>|<|==)? ?[0-9]{1,2}\.[0-9]){0,3}$"
_TERM = re.compile(r"(>=|<=|>|<|==)? ?([0-9]{1,2})\.([0-9])")
_COMPARE: dict[str, Callable[["Capability", "Capability"], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_LARGEST = 99
Capability = tuple[int, int]
"""Major and minor number: 8.9 is (8, 9), and less than (12, 0)."""


@dataclass(frozen=True, slots=True)
class CapabilityRange:
    """The compute capabilities that all terms, a comparison and a number each, accept. Without terms all of them."""

    terms: tuple[tuple[str, Capability], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "CapabilityRange":
        """Return the range of a text such as `>= 8.9` or `9.0`. Raises ValueError if it is none, or is empty."""
        parts = [_TERM.fullmatch(part.strip()) for part in text.split(",")]
        if not all(parts):
            raise ValueError(f'{text!r} is no range of compute capabilities; write it as ">= 8.9" or ">= 8.0, < 9.0"')
        result = cls(tuple((part[1] or "==", (int(part[2]), int(part[3]))) for part in parts if part))
        if not result.any():
            raise ValueError(f"no compute capability is in {text!r}; correct one of its numbers")
        return result

    def accepts(self, capability: str) -> bool:
        """Return whether a node's compute capability, such as `9.0`, is in the range. An unknown one is not."""
        match = _TERM.fullmatch(capability)
        return not self.terms or (match is not None and self._has((int(match[2]), int(match[3]))))

    def any(self) -> bool:
        """Return whether the range has a capability at all."""
        return any(self._has((major, minor)) for major in range(_LARGEST + 1) for minor in range(10))

    def also(self, other: "CapabilityRange") -> "CapabilityRange":
        """Return the capabilities that are in both ranges."""
        return CapabilityRange(tuple(dict.fromkeys((*self.terms, *other.terms))))

    def _has(self, capability: Capability) -> bool:
        return all(_COMPARE[sign](capability, number) for sign, number in self.terms)

    def __str__(self) -> str:
        return ", ".join(f"{sign} {major}.{minor}" for sign, (major, minor) in self.terms)


def at_least(capability: float) -> CapabilityRange:
    """Return the range from a capability on."""
    return CapabilityRange.parse(f">= {capability:.1f}")


def _is_range(text: str) -> str:
    CapabilityRange.parse(text)
    return text


CapabilityText = Annotated[str, StringConstraints(max_length=64, pattern=PATTERN), AfterValidator(_is_range)]
"""A range of compute capabilities as manifests have it."""
