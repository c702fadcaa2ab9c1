"""Decompressing .xz files within a limit of memory: how much that takes is for the file to say, up to 4 GiB."""

import io
import lzma
from typing import BinaryIO

_MOST_MEMORY = 128 << 20
"""In bytes. The highest level of xz, -9, takes 65 MiB."""
_PIECE = 1 << 16


class Unxz(io.RawIOBase):
    """What an .xz or .lzma file holds; to go back is to begin again.

    Reading raises ValueError where it takes too much memory, lzma.LZMAError where the file is damaged, and EOFError
    where it is cut off.
    """

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._begin()

    def _begin(self) -> None:
        self._packed.seek(0)
        self._decoder = _decoder()
        self._at = 0
        self._ended = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed: any buffer
        """Decompress into a buffer, and return the bytes written."""
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, which may not be relative to the unknown end."""
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end of a compressed file is not known")
        position = offset + (self._at if whence == io.SEEK_CUR else 0)
        if position < self._at:
            self._begin()
        while self._at < position and self._read(min(_PIECE, position - self._at)):
            pass
        return self._at

    def close(self) -> None:
        """Close the compressed file."""
        self._packed.close()
        super().close()

    def _read(self, most: int) -> bytes:
        data = b""
        while most and not data and not self._ended:
            data = self._next(most)
        self._at += len(data)
        return data

    def _next(self, most: int) -> bytes:
        """Return some of what is left, b"" where more of the file is needed, or it has `_ended`."""
        if not self._decoder.eof:
            packed = self._packed.read(_PIECE) if self._decoder.needs_input else b""
            if not packed and self._decoder.needs_input:
                raise EOFError("the archive is cut off")
            return self._decompressed(packed, most)
        # Streams may stand one behind the other, with zeros between them.
        packed = self._decoder.unused_data.lstrip(b"\0") or self._packed.read(_PIECE).lstrip(b"\0")
        if packed:
            self._decoder = _decoder()
            return self._decompressed(packed, most)
        self._ended = True
        return b""

    def _decompressed(self, packed: bytes, most: int) -> bytes:
        try:
            return self._decoder.decompress(packed, most)
        except lzma.LZMAError as error:
            if "memory" not in str(error).lower():
                raise
            raise ValueError(
                f"to unpack it takes more than {_MOST_MEMORY >> 20} MiB of memory: pack it by xz -9 or less"
            ) from error


def _decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=_MOST_MEMORY)
