"""Header fields to header blocks, without a dynamic table.

What a server of one application sends is few distinct blocks, made once and sent as they are; so a block must mean the
same at any time, and nothing is remembered.
"""

from collections.abc import Iterable
from typing import Final

from .tables import STATIC, Field

_WHOLE: Final = {field: index for index, field in reversed(tuple(enumerate(STATIC, 1)))}
_NAMES: Final = {name: index for index, (name, _) in reversed(tuple(enumerate(STATIC, 1)))}


def encode(fields: Iterable[Field]) -> bytes:
    """Return a header block of these fields; none of them enters the peer's table."""
    return b"".join(_field(field) for field in fields)


def _field(field: Field) -> bytes:
    name, value = field
    if field in _WHOLE and value:
        return _integer(_WHOLE[field], 0x7F, 0x80)
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
