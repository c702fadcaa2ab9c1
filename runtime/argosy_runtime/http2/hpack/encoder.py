"""Header fields to header blocks, without a dynamic table.

A server of one application sends few distinct blocks, which are made once and sent as they are; so a block must mean
the same at any time, and no table is kept.
"""

from collections.abc import Iterable
from typing import Final

from .tables import STATIC, Field

_FIELDS: Final = {field: index for index, field in reversed(tuple(enumerate(STATIC, 1)))}
_NAMES: Final = {name: index for index, (name, _) in reversed(tuple(enumerate(STATIC, 1)))}


def encode(fields: Iterable[Field]) -> bytes:
    """Return a header block of these fields; none of them enters the peer's table."""
    return b"".join(_field(field) for field in fields)


def _field(field: Field) -> bytes:
    name, value = field
    if field in _FIELDS and value:
        return _integer(_FIELDS[field], 0x7F, 0x80)
    if name in _NAMES:
        return _integer(_NAMES[name], 0x0F, 0) + _string(value)
    return b"\0" + _string(name) + _string(value)


def _string(text: bytes) -> bytes:
    return _integer(len(text), 0x7F, 0) + text


def _integer(value: int, mask: int, bits: int) -> bytes:
    if value < mask:
        return bytes((bits | value,))
    encoded = bytearray((bits | mask,))
    value -= mask
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
