"""Compressed bytes that may end too early or be damaged: what can be read is given, and then what is wrong is told."""

from __future__ import annotations

import zlib

from harness.importers.json_stream import Reader

GZIP, RAW = 31, -15  # zlib's words for a gzip file, and for a bare stream as in a ZIP
_PIECE = 4096  # what stands in a piece before a damaged place is lost


class Inflating:
    """Deflated data as a stream. `fault` says why it ended, where that was too early; gzip files may be several in a
    row. `crc` is what the content's CRC-32 has to be, where the format keeps it elsewhere."""

    def __init__(self, packed: Reader, form: int, crc: int | None = None) -> None:
        self._packed, self._form, self._crc = packed, form, crc
        self._inflate = zlib.decompressobj(form)
        self._seen_crc = 0
        self._rest = b""
        self._over = False
        self.fault = ""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        pieces: list[bytes] = []
        wanted = size
        while wanted > 0 and not self._over:
            piece = self._piece(wanted)
            wanted -= len(piece)
            pieces.append(piece)
        data = b"".join(pieces)
        self._seen_crc = zlib.crc32(data, self._seen_crc)
        if self._over and not self.fault and self._crc is not None and self._seen_crc != self._crc:
            self.fault = "its checksum differs"
        return data

    def _piece(self, most: int) -> bytes:
        packed = self._rest or self._packed.read(_PIECE)
        self._rest = b""
        if not packed:
            self._end("" if self._inflate.eof else "the compressed data ends before its end")
            return b""
        if self._inflate.eof:
            packed = packed.lstrip(b"\0")
            if not packed:  # padding
                return b""
            if self._form != GZIP or packed[:1] != b"\x1f":
                self._end("" if self._form == RAW else "other data stand behind its end")
                return b""
            self._inflate = zlib.decompressobj(self._form)
        try:
            data = self._inflate.decompress(packed, most)
        except zlib.error as error:
            self._end(f"the compressed data are damaged ({error})")
            return b""
        self._rest = self._inflate.unconsumed_tail or self._inflate.unused_data
        return data

    def _end(self, fault: str) -> None:
        self._over, self.fault = True, fault
