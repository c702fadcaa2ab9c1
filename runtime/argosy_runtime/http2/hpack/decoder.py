"""Header blocks to header fields."""

from typing import Final

from argosy_runtime.http2.errors import ErrorCode, PeerError, too_much

from . import huffman
from .tables import DynamicTable, Field, size_of

_INDEXED: Final = 0x80
_INCREMENTAL: Final = 0x40
_TABLE_SIZE: Final = 0x20
_MAX_SHIFT: Final = 28


class Decoder:
    """One connection's decoder. Blocks that are not needed must be decoded, too: they may change the table.

    `max_list` bounds the fields of a block, as SETTINGS_MAX_HEADER_LIST_SIZE counts them.
    """

    __slots__ = ("_max_list", "table")

    def __init__(self, max_list: int) -> None:
        self.table = DynamicTable()
        self._max_list = max_list

    def decode(self, block: bytes) -> list[Field]:
        """Return the fields of a block, in order. Raises PeerError."""
        try:
            return self._decode(block)
        except IndexError:
            raise PeerError(ErrorCode.COMPRESSION_ERROR, "a header block cut short") from None

    def _decode(self, block: bytes) -> list[Field]:
        fields: list[Field] = []
        position, left = self._sizes(block), self._max_list
        while position < len(block):
            field, position = self._field(block, position)
            fields.append(field)
            left -= size_of(field)
            if left < 0:
                raise too_much("a header list larger than allowed")
        return fields

    def _sizes(self, block: bytes) -> int:
        """Apply the table sizes that a block may begin with. Return where its fields begin."""
        position = 0
        while position < len(block) and block[position] & 0xE0 == _TABLE_SIZE:
            size, position = read_integer(block, position, 0x1F)
            self.table.resize(size)
        return position

    def _field(self, block: bytes, position: int) -> tuple[Field, int]:
        first = block[position]
        if first & _INDEXED:
            index, position = read_integer(block, position, 0x7F)
            return self.table.field(index), position
        if first & 0xE0 == _TABLE_SIZE:
            raise PeerError(ErrorCode.COMPRESSION_ERROR, "a size of the table behind a field")
        index, position = read_integer(block, position, 0x3F if first & _INCREMENTAL else 0x0F)
        if index:
            name = self.table.field(index)[0]
        else:
            name, position = _string(block, position)
        value, position = _string(block, position)
        if first & _INCREMENTAL:
            self.table.insert((name, value))
        return (name, value), position


def read_integer(block: bytes, position: int, mask: int) -> tuple[int, int]:
    """Return an integer whose first bits are those of `mask`, and the position behind it (RFC 7541, 5.1)."""
    value = block[position] & mask
    position += 1
    if value < mask:
        return value, position
    shift = 0
    while True:
        byte = block[position]
        position += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > _MAX_SHIFT:
            raise PeerError(ErrorCode.COMPRESSION_ERROR, "an integer too large")


def _string(block: bytes, position: int) -> tuple[bytes, int]:
    coded = block[position] & 0x80
    size, start = read_integer(block, position, 0x7F)
    stop = start + size
    if stop > len(block):
        raise IndexError
    text = block[start:stop]
    return (huffman.decode(text) if coded else text), stop
